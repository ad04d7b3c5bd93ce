"""A stream that is told to stop finishes its batch."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, current_thread, main_thread
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def told_to_stop() -> Iterator[Event]:
    """Set by Ctrl-C or SIGTERM; the second one interrupts at once. The handlers that were there come back."""
    told = Event()
    if current_thread() is not main_thread():
        yield told
        return

    def handle(_: int, __: FrameType | None) -> None:
        if told.is_set():
            raise KeyboardInterrupt
        told.set()

    before = {number: signal.signal(number, handle) for number in _SIGNALS}
    try:
        yield told
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
