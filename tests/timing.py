"""How long something takes, measured so that other work on the machine does not decide whether a test passes."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable


def quickest(function: Callable[[], object], *, times: int = 5) -> float:
    """The least processor time of several runs, in seconds, after one that warms up, without collecting garbage."""
    function()
    seconds = []
    gc.collect()
    gc.disable()
    try:
        for _ in range(times):
            began = time.process_time()
            function()
            seconds.append(time.process_time() - began)
    finally:
        gc.enable()
    return min(seconds)
