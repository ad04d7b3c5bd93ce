"""From a table of settled rows to the events that some component could use: in order, numbered, as arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from kleene.engine.columns import ColumnStore
from kleene.engine.growing import with_room
from kleene.engine.keys import KeyCoder
from kleene.engine.row_types import row_types
from kleene.engine.store import Arrived
from kleene.engine.strings import StringPool
from kleene.engine.timeline import Order, canonical_order, order_of
from kleene.kernels.expression import Ints
from kleene.kernels.keys import COUNTED, count_positions
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

    def arrived(self, table: pa.Table, step: int) -> tuple[Arrived, int]:
        """The events of a table that some component could use, and the step that comes after it."""
        schema = self._query.schema
        order = order_of(table, schema)
        following = step + (int(order.step[-1]) + 1 if len(order.step) else 0)
        names, codes = row_types(table, schema)
        in_order = codes if order.as_given else codes[order.rows]
        wanted = np.array([name in self._query.types for name in names], np.bool_)
        useful = np.flatnonzero(wanted[in_order])
        # None: all of them.
        chosen = None if len(useful) == len(in_order) else useful
        nothing = np.zeros(len(in_order) if chosen is None else len(chosen), np.int64)
        numbers = {"start": order.start, "end": order.end, "step": order.step + step}
        if self.counts_all:
            numbers |= self._counted(table, order, names, in_order, numbers["step"])
        if chosen is not None:
            numbers = {name: array[chosen] for name, array in numbers.items()}
        events = table
        if not order.as_given or chosen is not None:
            events = table.take(pa.array(order.rows if chosen is None else order.rows[chosen]))
        read = self._query.columns_read
        columns = events.column_names if read is None else read
        canonical = canonical_order(events, numbers["start"], numbers["step"], schema, columns)
        if canonical is not None:
            events = events.take(pa.array(canonical))
            numbers = {name: array[canonical] for name, array in numbers.items()}
        if not self.counts_all:
            numbers |= {"partition": self.partitions.codes(events), "position": nothing, "ordinal": nothing}
        read_columns = ColumnStore.from_table(events, self._columns, schema, self._strings)
        return Arrived(events, read_columns, **numbers), following

    def _counted(
        self, table: pa.Table, order: Order, names: list[str | None], codes: Ints, steps: Ints
    ) -> dict[str, Ints]:
        """Places in the partition; an event of a type without the key is in none."""
        keys = table.select(list(self.partitions.names)) if self.partitions.names else table
        partition = self.partitions.codes(keys if order.as_given else keys.take(pa.array(order.rows)))
        has_key = np.array([self._has_key(name) for name in names], np.bool_)
        if not has_key.all():
            partition[~has_key[codes]] = -1
        self.counts = with_room(self.counts, self.partitions.number, 0)
        position, ordinal = np.empty(len(partition), np.int64), np.empty(len(partition), np.int64)
        count_positions(partition, steps, self.counts, position, ordinal)
        return {"partition": partition, "position": position, "ordinal": ordinal}

    def _has_key(self, kind: str | None) -> bool:
        attributes = None if kind is None else self._query.schema.attributes_of(kind)
        return attributes is None or all(name in attributes for name in self._query.partition)

    def count_from(self, partition: Ints, counts: Ints) -> None:
        """Go on counting where someone else was: [event] the partition, and [event, COUNTED] how far it had come."""
        self.counts = with_room(self.counts, self.partitions.number, 0)
        self.counts[partition[partition >= 0]] = counts[partition >= 0]
