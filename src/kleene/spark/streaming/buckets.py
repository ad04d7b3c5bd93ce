"""How many buckets the keys of a stream go to: as many as Spark has tasks for its state, unless the settings say.

That number is not known when queries are bound. Spark fixes it in the checkpoint when a stream begins, and goes on with
it whatever the session says later; which checkpoint it is, is known only when the stream is started. Spark gives its
tasks the number, so tasks count the slots. Everything here is plain data: the operator needs it before Kleene's engine
is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from kleene.spark.worker import TaskSpec

# The properties in which Spark gives tasks the number, the surest first: a job of another session may bring the second.
_PARTITION_PROPERTIES = ("spark.sql.streaming.internal.stateStore.partitions", "spark.sql.shuffle.partitions")

PlainPart = Mapping[str, Any]


def state_tasks() -> int | None:
    """The number of tasks that keep the state of the stream whose task this is; None where Spark does not say."""
    from pyspark import TaskContext

    task = TaskContext.get()
    numbers = [] if task is None else [task.getLocalProperty(name) for name in _PARTITION_PROPERTIES]
    return next((int(number) for number in numbers if number is not None and number.isdigit()), None)


def counted(parts: Sequence[PlainPart], tasks: int | None) -> tuple[list[PlainPart], int]:
    """The parts with as many slots as there are, and the number of all: that of the slot behind them."""
    base = 0
    known: list[PlainPart] = []
    for part in parts:
        slots = tasks if part["per_task"] and tasks is not None else part["slots"]
        known.append({**part, "base": base, "slots": slots})
        base += slots
    return known, base


def with_buckets(task_spec: TaskSpec) -> TaskSpec:
    """The task spec with the slots that there are."""
    parts, bad_slot = counted(task_spec["parts"], state_tasks())
    return {**task_spec, "parts": parts, "bad_slot": bad_slot}


def stream_packer(
    groups: Sequence[Mapping[str, Any]], parts: Sequence[PlainPart], bad_columns: Sequence[str]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that packs events for these parts, and says what Spark is to call their slots.

    groups        one for each part
    bad_columns   what is known of rows that are no events, which the last column tells
    """

    def on_events(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import numpy as np

        from kleene.frames.numbers import to_arrow, to_numpy
        from kleene.spark.packing import PLACED, PackedGroup, pack
        from kleene.spark.streaming.spreading import places

        known, bad_slot = counted(parts, state_tasks())
        own = [
            replace(PackedGroup(**group), base=part["base"], buckets=part["slots"] if group["buckets"] else None)
            for group, part in zip(groups, known, strict=True)
        ]
        names = np.array(places(bad_slot + 1), np.int32)

        def aside(table: pa.Table) -> Iterator[pa.RecordBatch]:
            lines = table.column(table.num_columns - 1).drop_null()
            if len(lines):
                from kleene.spark.streaming.bad_rows import packed_aside

                yield packed_aside(lines, bad_columns, bad_slot)

        for packed in pack(batches, own, aside):
            place = to_arrow(names[to_numpy(packed.column(0))])
            yield pa.RecordBatch.from_arrays([*packed.columns, place], schema=PLACED)

    return on_events
