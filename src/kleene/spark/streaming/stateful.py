"""The stateful operator as Spark knows it: what it keeps by slot, and which calls it takes.

Spark makes one on the driver before the first batch, in a Python process of its own, only to ask what it keeps. So the
engine is not loaded before there are events.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType

from kleene.spark.streaming.buckets import with_buckets

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle, TimerValues

    from kleene.spark.worker import TaskSpec

_DATA = StructType([StructField("data", BinaryType())])
_PLACE = StructType(
    [StructField("kind", StringType()), StructField("number", LongType()), StructField("piece", IntegerType())]
)


class SlotProcessor(StatefulProcessor):
    def __init__(self, task_spec: TaskSpec) -> None:
        """The task spec is plain data, since it travels to each task."""
        self._task_spec = task_spec

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle, self._task_spec = handle, with_buckets(self._task_spec)
        self._page = handle.getValueState("page", _DATA)
        self._parts = handle.getMapState("parts", _PLACE, _DATA)

    # Names that Spark calls.

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: TimerValues) -> Iterator[Any]:  # noqa: N802, N803
        yield from self._called(self._slot(key), rows, timerValues)

    def handleExpiredTimer(self, key: Any, timerValues: TimerValues, expiredTimerInfo: Any) -> Iterator[Any]:  # noqa: N802, N803
        yield from self._called(self._slot(key), iter(()), timerValues, fired=expiredTimerInfo.getExpiryTimeInMs())

    def close(self) -> None:
        pass

    def _slot(self, key: Any) -> int:
        from kleene.spark.streaming.processor import slot_at

        # The slot of rows that are no events is the last one.
        return slot_at(int(key[0]), self._task_spec["bad_slot"] + 1)

    def _called(self, slot: int, rows: Iterator[Any], timers: TimerValues, fired: int | None = None) -> Iterator[Any]:
        from kleene.spark.streaming.processor import InSpark, called

        store = InSpark(self._handle, self._page, self._parts, fired)
        return called(self._task_spec, slot, rows, timers.getCurrentWatermarkInMs(), store)
