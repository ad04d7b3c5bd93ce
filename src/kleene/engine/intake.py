"""From a table of settled rows to the events that some component could use: in order, numbered, as arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kleene.engine.columns import ColumnStore
from kleene.engine.gathering import taken_rows
from kleene.engine.growing import with_room
from kleene.engine.keys import KeyCoder
from kleene.engine.memory import empty
from kleene.engine.row_types import row_types
from kleene.engine.store import Arrived
from kleene.engine.strings import StringPool
from kleene.engine.timeline import Order, canonical_order, order_of
from kleene.kernels.expression import Ints
from kleene.kernels.keys import COUNTED, STEP, count_positions, places_of
from kleene.lang.tree import SelectionStrategy
from kleene.pattern.query import BoundQuery


class Intake:
    def __init__(self, query: BoundQuery, columns: Sequence[str], strings: StringPool) -> None:
        """`columns` are those that programs read."""
        self._query, self._columns, self._strings = query, columns, strings
        self.partitions = KeyCoder(query.partition, strings)
        window = query.window
        by_position = window is not None and window.events
        # Whether places in the partition matter, so that every event is counted, irrelevant ones included.
        self.counts_all = by_position or query.strategy is SelectionStrategy.PARTITION_CONTIGUITY
        # [partition, COUNTED]
        self.counts = np.zeros((1, COUNTED), np.int64)
        # Steps met so far; to count it matters only whether two events have the same one.
        self._counted_steps = 1

    def arrived(self, table: pa.Table, step: int) -> tuple[Arrived, int]:
        """The events of a table that some component could use, and the step that comes after it."""
        schema = self._query.schema
        order = order_of(table, schema)
        names, codes = row_types(table, schema)
        wanted = np.array([name in self._query.types for name in names], np.bool_)
        useful = places_of(codes if order.rows is None else codes[order.rows], wanted)
        # None: all of them.
        chosen = None if len(useful) == table.num_rows else useful
        rows, numbers = order.of(chosen)
        if self.counts_all:
            numbers |= self._counted(table, order, names, codes, chosen)
        events = table if rows is None else taken_rows(table, rows)
        read = self._query.columns_read
        columns = events.column_names if read is None else read
        if order.step is not None:
            canonical = canonical_order(events, numbers["start"], numbers["step"], schema, columns)
            if canonical is not None:
                events = taken_rows(events, canonical)
                numbers = {name: array[canonical] for name, array in numbers.items()}
        if not self.counts_all:
            nothing = np.zeros(len(useful), np.int64)
            numbers |= {"partition": self.partitions.codes(events), "position": nothing, "ordinal": nothing}
        numbers["step"] = numbers["step"] + step
        read_columns = ColumnStore.from_table(events, self._columns, schema, self._strings)
        return Arrived(events, read_columns, **numbers), step + order.steps

    def _counted(
        self, table: pa.Table, order: Order, names: list[str | None], codes: npt.NDArray[np.int32], chosen: Ints | None
    ) -> dict[str, Ints]:
        """Places in the partition; an event of a type without the key is in none."""
        rows, numbers = order.of(None)
        keys = table.select(list(self.partitions.names)) if self.partitions.names else table
        partition = self.partitions.codes(keys if rows is None else taken_rows(keys, rows))
        has_key = np.array([self._has_key(name) for name in names], np.bool_)
        if not has_key.all():
            partition[~has_key[codes if rows is None else codes[rows]]] = -1
        self.counts = with_room(self.counts, self.partitions.number, 0)
        position, ordinal = empty(len(partition), np.int64), empty(len(partition), np.int64)
        count_positions(partition, numbers["step"] + self._counted_steps, self.counts, position, ordinal)
        self._counted_steps += order.steps
        counted = {"partition": partition, "position": position, "ordinal": ordinal}
        return counted if chosen is None else {name: array[chosen] for name, array in counted.items()}

    def _has_key(self, kind: str | None) -> bool:
        return all(self._query.schema.has(kind, name) for name in self._query.partition)

    def count_from(self, partition: Ints, counts: Ints) -> None:
        """Go on counting where someone else was: [event] the partition, and [event, COUNTED] how far it had come."""
        self.counts = with_room(self.counts, self.partitions.number, 0)
        self.counts[partition[partition >= 0]] = counts[partition >= 0]
        self._counted_steps = int(self.counts[:, STEP].max(initial=0)) + 1
