"""From a table of settled rows to the events that some component could use: in order, numbered, as arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kleene.engine.executors.windows import Passed
from kleene.engine.intake.columns import ColumnStore
from kleene.engine.intake.counting import counts_all, counts_by_step, counts_in_stream, keeps_past
from kleene.engine.intake.keys import KeyCoder
from kleene.engine.intake.past import Past
from kleene.engine.intake.row_types import row_types
from kleene.engine.intake.strings import StringPool
from kleene.engine.intake.timeline import canonical_order, order_of
from kleene.engine.output.gathering import taken_rows
from kleene.engine.state.growing import with_room
from kleene.engine.state.memory import empty
from kleene.engine.state.store import EventBatch, EventStore, taken
from kleene.kernels.expression import Ints
from kleene.kernels.keys import COUNTED, count_positions, places_of
from kleene.pattern.query import BoundQuery


class Intake:
    def __init__(self, query: BoundQuery, columns: Sequence[str], strings: StringPool) -> None:
        """`columns` are those that programs read."""
        self._query, self._columns, self._strings = query, columns, strings
        self.partitions = KeyCoder(query.partition, strings)
        self._by_step, self._in_stream = counts_by_step(query), counts_in_stream(query)
        self.counts_all = counts_all(query)
        # [group, COUNTED]
        self.counts = np.zeros((1, COUNTED), np.int64)
        self.past = Past(self.partitions) if keeps_past(query) else None
        # The events of the last table, kept where timeouts need to know when windows of positions closed.
        self.passed: Passed | None = None
        self._tells_closing = query.counts_events and query.schema.start is None and query.timeouts is not None

    def arrived(self, table: pa.Table, step: int, store: EventStore) -> tuple[EventBatch, int]:
        """The events of a table that some component could use, and the step that comes after it."""
        schema = self._query.schema
        order = order_of(table, schema)
        names, codes = row_types(table, schema)
        wanted = np.array([name in self._query.types for name in names], np.bool_)
        useful = places_of(codes if order.rows is None else codes[order.rows], wanted)
        # None: all of them.
        chosen = None if len(useful) == table.num_rows else useful
        rows, numbers = order.of(None if self.counts_all else chosen)
        later = {id(numbers[name]): numbers[name] + step for name in ("step", "left", "right")}
        numbers |= {name: later[id(numbers[name])] for name in ("step", "left", "right")}
        if schema.start is not None:
            # An event that began before this table is not after held events that ended since it began.
            numbers["left"] = store.first_steps(numbers["start"], numbers["left"])
        if self.counts_all:
            numbers |= self._counted(table, rows, numbers, names, codes)
            if self._tells_closing:
                self.passed = Passed(numbers["partition"], numbers["position"], numbers["end"])
            if chosen is not None:
                rows, numbers = chosen if rows is None else rows[chosen], taken(numbers, chosen)
        events = table if rows is None else taken_rows(table, rows)
        if order.step is not None:
            columns = set(self._query.columns_compared(events.column_names)) - schema.unordered
            canonical = canonical_order(events, numbers["start"], numbers["step"], schema, columns)
            if canonical is not None:
                events, numbers = taken_rows(events, canonical), taken(numbers, canonical)
        if not self.counts_all:
            nothing = np.zeros(len(useful), np.int64)
            numbers |= {"position": nothing, "place": nothing, "barrier": nothing}
            numbers["partition"] = self.partitions.codes(events)
        if self._by_step:
            numbers["barrier"] = numbers["step"] - 1
        read_columns = ColumnStore.from_table(events, self._columns, schema, self._strings)
        return EventBatch(events, read_columns, **numbers), step + order.steps

    def _counted(
        self,
        table: pa.Table,
        rows: Ints | None,
        numbers: dict[str, Ints],
        names: list[str | None],
        codes: npt.NDArray[np.int32],
    ) -> dict[str, Ints]:
        """The partition of each event and its place there; an event of a type without the key is in no partition."""
        keys = table.select(list(self.partitions.names)) if self.partitions.names else table
        keys = keys if rows is None else taken_rows(keys, rows)
        partition = self._coded(keys, names, codes if rows is None else codes[rows])
        self.counts = with_room(self.counts, self.partitions.number, 0)
        place, barrier = empty(len(partition), np.int64), empty(len(partition), np.int64)
        count_positions(self.groups(partition), numbers["step"], numbers["left"], self.counts, place, barrier)
        position = place
        if self.past is not None:
            position, place = self.past.count(keys, partition, numbers["step"], numbers["start"], numbers["end"])
        return {"partition": partition, "position": position, "place": place, "barrier": barrier}

    def partition_of(self, rows: pa.Table) -> Ints:
        """The partitions of restored events, the same as when they first came."""
        return (
            self._coded(rows, *row_types(rows, self._query.schema)) if self.counts_all else self.partitions.codes(rows)
        )

    def _coded(self, keys: pa.Table, names: list[str | None], codes: npt.NDArray[np.int32]) -> Ints:
        partition = self.partitions.codes(keys)
        has_key = np.array([self._has_key(name) for name in names], np.bool_)
        if not has_key.all():
            partition[~has_key[codes]] = -1
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
