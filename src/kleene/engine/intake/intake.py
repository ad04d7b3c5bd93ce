"""From a table of settled rows to the events that some component could use: in order, numbered, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kleene.engine.executors.windows import Passed
from kleene.engine.intake.columns import ColumnStore
from kleene.engine.intake.counting import counts_all, counts_by_step, counts_in_stream, keeps_past
from kleene.engine.intake.keys import KeyCoder
from kleene.engine.intake.past import Past
from kleene.engine.intake.row_types import Flags, RowTypes, row_types
from kleene.engine.intake.strings import StringPool
from kleene.engine.intake.timeline import Order, canonical_order, order_of
from kleene.engine.state.event_rows import AnyRows, EventRows
from kleene.engine.state.growing import with_room
from kleene.engine.state.memory import empty, shared_zeros
from kleene.engine.state.store import EventBatch, EventStore, taken
from kleene.kernels.expression import Ints
from kleene.kernels.gathering import Rows
from kleene.kernels.keys import COUNTED, count_positions
from kleene.pattern.query import BoundQuery


class _Placed(NamedTuple):
    """Useful events of a table, in order, with their times and places (`state.store.ORDERED`)."""

    rows: EventRows
    types: RowTypes
    order: Order
    numbers: dict[str, Ints]


class Intake:
    def __init__(self, query: BoundQuery, columns: Sequence[str], strings: StringPool) -> None:
        """`columns` are those that programs read."""
        self._query, self._columns, self._strings = query, columns, strings
        self.partitions = KeyCoder(query.partition, strings)
        self._by_step, self._in_stream = counts_by_step(query), counts_in_stream(query)
        self.counts_all = counts_all(query)
        # Whether events have places among all events of the stream, not only among the useful ones.
        self._orders_all = self.counts_all or self._by_step
        # [group, COUNTED]
        self.counts = np.zeros((1, COUNTED), np.int64)
        self.past = Past(self.partitions) if keeps_past(query) else None
        # Whether the rows of the last table, or the useful ones where only these are looked at, came in order.
        self.in_order = True
        # The events of the last table, kept where timeouts need to know when windows of positions closed.
        self.passed: Passed | None = None
        self._tells_closing = query.counts_events and query.schema.start is None and query.timeouts is not None

    def arrived(
        self, table: pa.Table, step: int, store: EventStore, own: Flags | None = None
    ) -> tuple[EventBatch, int]:
        """The events of a table that some component could use, and the step that comes after it.

        own   [row]: whether it counts, where no event is counted by its place; None: all do
        """
        schema = self._query.schema
        if self._orders_all:
            assert own is None, "positions are those of all events"
            placed = self._among_all(table, step, store)
        else:
            placed = self._among_useful(table, step, store, own)
        rows, types, numbers = placed.rows, placed.types, placed.numbers
        self.in_order = placed.order.in_order
        if placed.order.step is not None:
            columns = set(self._query.columns_compared(rows.column_names)) - schema.unordered
            canonical = canonical_order(rows, numbers["start"], numbers["step"], schema, columns)
            if canonical is not None:
                rows, types, numbers = rows.take(canonical), types.take(canonical), taken(numbers, canonical)
        if not self.counts_all:
            nothing = shared_zeros(rows.num_rows)
            numbers |= {"position": nothing, "place": nothing, "barrier": nothing}
            numbers["partition"] = self.partitions.codes(rows)
        if self._by_step:
            numbers["barrier"] = numbers["step"] - 1
        columns_read = ColumnStore.from_table(rows, self._columns, schema, self._strings, types=types)
        return EventBatch(rows, columns_read, **numbers), step + placed.order.steps

    def _among_useful(self, table: pa.Table, step: int, store: EventStore, own: Flags | None) -> _Placed:
        """The useful events, in order. Others are left where they are, in whatever order."""
        useful, types = self._useful(row_types(table, self._query.schema))
        if own is not None:
            among = own if useful is None else own[useful]
            useful, types = np.flatnonzero(own) if useful is None else useful[among], types.take(np.flatnonzero(among))
        rows = EventRows(table, useful)
        order = order_of(rows, self._query.schema)
        if order.rows is not None:
            rows, types = rows.take(order.rows), types.take(order.rows)
        return _Placed(rows, types, order, self._since(step, store, order.of(None)[1]))

    def _among_all(self, table: pa.Table, step: int, store: EventStore) -> _Placed:
        """The useful events, each with its place among all events of the stream."""
        every, order = row_types(table, self._query.schema), order_of(table, self._query.schema)
        every = every if order.rows is None else every.take(order.rows)
        useful, types = self._useful(every)
        if self.counts_all:
            rows, numbers = order.of(None)
            numbers = self._since(step, store, numbers)
            numbers |= self._counted(EventRows(table, rows), every, numbers)
            if self._tells_closing:
                self.passed = Passed(numbers["partition"], numbers["position"], numbers["end"])
            if useful is not None:
                rows, numbers = useful if rows is None else rows[useful], taken(numbers, useful)
        else:
            rows, numbers = order.of(useful)
            numbers = self._since(step, store, numbers)
        return _Placed(EventRows(table, rows), types, order, numbers)

    def _useful(self, types: RowTypes) -> tuple[Rows | None, RowTypes]:
        """The places of events that some component could use, None where all are, and the types of these."""
        places, useful = types.among(frozenset(self._query.types))
        return (None, types) if useful.size == types.size else (places, useful)

    def _since(self, step: int, store: EventStore, numbers: dict[str, Ints]) -> dict[str, Ints]:
        """The numbers of a table's events, with steps counted from the first table on."""
        if step:
            later = {id(numbers[name]): numbers[name] + step for name in ("step", "left", "right")}
            numbers |= {name: later[id(numbers[name])] for name in ("step", "left", "right")}
        if self._query.schema.start is not None:
            # An event that began before this table is not after held events that ended since it began.
            numbers["left"] = store.first_steps(numbers["start"], numbers["left"])
        return numbers

    def _counted(self, rows: EventRows, types: RowTypes, numbers: dict[str, Ints]) -> dict[str, Ints]:
        """The partition of each event and its place there; an event of a type without the key is in no partition."""
        partition = self._coded(rows, types)
        self.counts = with_room(self.counts, self.partitions.number, 0)
        place, barrier = empty(len(partition), np.int64), empty(len(partition), np.int64)
        count_positions(self.groups(partition), numbers["step"], numbers["left"], self.counts, place, barrier)
        position = place
        if self.past is not None:
            position, place = self.past.count(rows, partition, numbers["step"], numbers["start"], numbers["end"])
        return {"partition": partition, "position": position, "place": place, "barrier": barrier}

    def partition_of(self, rows: AnyRows) -> Ints:
        """The partitions of restored events, the same as when they first came."""
        return (
            self._coded(rows, row_types(rows, self._query.schema)) if self.counts_all else self.partitions.codes(rows)
        )

    def _coded(self, rows: AnyRows, types: RowTypes) -> Ints:
        partition = self.partitions.codes(rows)
        has_key = types.which(self._has_key)
        if not has_key.all():
            partition[~has_key[types.codes]] = -1
        return partition

    def _has_key(self, kind: str | None) -> bool:
        return all(self._query.schema.has(kind, name) for name in self._query.partition)

    def groups(self, partition: Ints) -> Ints:
        """[event]: the group in which it is counted: its partition, or the whole stream under strict contiguity."""
        return np.zeros(len(partition), np.int64) if self._in_stream else partition

    def count_from(self, partition: Ints, counts: Ints) -> None:
        """Continue the counts of another intake: [event] the partition, and [event, COUNTED] its counts."""
        groups = self.groups(partition)
        self.counts = with_room(self.counts, self.partitions.number, 0)
        self.counts[groups[groups >= 0]] = counts[groups >= 0]

    @property
    def nbytes(self) -> int:
        return int(self.counts.nbytes) + self.partitions.nbytes + (0 if self.past is None else self.past.nbytes)
