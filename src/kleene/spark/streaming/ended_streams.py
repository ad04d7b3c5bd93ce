"""The end of a stream, told to the workers of this machine: none of its slots stays in their memory.

Workers on other machines are not told; there a slot that is not used is forgotten after a quarter of an hour.

A stream that is started here is watched by a thread. Spark tells a listener of each batch, too, in a hundred calls of
the JVM, so there is one only for streams that users start themselves.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from pyspark.sql.streaming.listener import StreamingQueryListener

from kleene.spark.streaming.slot_owner import forget_stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_LOOK_SECONDS = 0.5


@cache
def _folder() -> Path:
    """The folder in which workers of this machine meet; only this user may enter it."""
    folder = tempfile.mkdtemp(prefix="kleene-slots-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def meeting_place(session: SparkSession) -> str | None:
    """The folder in which workers meet, and are told when a stream has ended.

    None on Spark Connect, where the driver is another process: workers then meet in a folder of Spark's.
    """
    return None if getattr(session, "sparkContext", None) is None else str(_folder())


def watch(running: StreamingQuery, folder: str | None) -> None:
    """Tell the workers who meet in this folder when a stream has ended, as soon as it has."""
    if folder is not None:
        arguments = running, str(running.id), Path(folder)
        Thread(target=_watch, args=arguments, name="kleene-stream-end", daemon=True).start()


def _watch(running: StreamingQuery, stream: str, folder: Path) -> None:
    # A session that is gone has no streams.
    with suppress(Exception):
        while running.isActive:
            time.sleep(_LOOK_SECONDS)
    with suppress(Exception):
        forget_stream(folder, stream)


def listen(session: SparkSession) -> None:
    """Tell the workers of this machine when any stream of the session ends, whoever starts it."""
    if meeting_place(session) is not None and session not in _LISTENED:
        session.streams.addListener(_Listener(_folder()))
        _LISTENED.add(session)


_LISTENED: WeakSet[SparkSession] = WeakSet()


class _Listener(StreamingQueryListener):
    """Hears of every stream of the session, in a thread of Spark's."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        forget_stream(self._folder, str(event.id))
