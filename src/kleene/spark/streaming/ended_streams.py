"""The end of a stream, told to the workers of this machine: none of its slots stays in their memory.

Workers on other machines are not told; there a slot that is not used is forgotten after a quarter of an hour.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from pyspark.sql.streaming.listener import StreamingQueryListener

from kleene.spark.streaming.slot_owner import forget_stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@cache
def _folder() -> Path:
    """The folder in which workers of this machine meet; only this user may enter it."""
    folder = tempfile.mkdtemp(prefix="kleene-slots-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def meeting_place(session: SparkSession) -> str | None:
    """The folder in which workers meet, who are told there when a stream of this session ends.

    None on Spark Connect, where the driver is another process: workers then meet in a folder of Spark's.
    """
    if getattr(session, "sparkContext", None) is None:
        return None
    if session not in _LISTENED:
        session.streams.addListener(_Listener(_folder()))
        _LISTENED.add(session)
    return str(_folder())


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
