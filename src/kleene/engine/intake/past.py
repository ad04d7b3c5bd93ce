"""When the events of each partition ended: how many were before one that began long ago, in a window of positions.

Such an event may be of any length, so nothing of the past can be forgotten as long as an event from it is held.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kleene.engine.intake.keys import KeyCoder
from kleene.engine.state.event_rows import AnyRows
from kleene.engine.state.growing import with_room
from kleene.engine.state.memory import empty
from kleene.engine.state.state_contract import check_past_totals, key_columns
from kleene.frames.numbers import to_arrow, to_numpy
from kleene.kernels.expression import Ints
from kleene.kernels.keys import BELOW, END, JUMP, KEY, NEVER, PAST, POINTS, TOTAL, PastRows, count_before

_FOREVER = np.iinfo(np.int64).max


class Past:
    def __init__(self, partitions: KeyCoder) -> None:
        self._partitions = partitions
        # [row, PAST]
        self._rows = np.zeros((1, PAST), np.int64)
        self._rows[0, END] = NEVER
        self._size = 1
        # [partition]: the row of its last event.
        self._newest = np.zeros(1, np.int64)
        # The columns of the key, how many rows they have, and [partition] its row there, or −1.
        self._keys: list[pa.Table] = []
        self._number = 0
        self._known = np.full(1, -1, np.int64)

    def count(self, rows: AnyRows, partition: Ints, step: Ints, start: Ints, end: Ints) -> tuple[Ints, Ints]:
        """How many events of its partition are before each event, and how many are of an earlier step."""
        self._know(rows, partition)
        return self._add(partition, step, start, end)

    def _add(self, partition: Ints, step: Ints, start: Ints, end: Ints) -> tuple[Ints, Ints]:
        self._rows = with_room(self._rows, self._size + len(partition))
        position, place = empty(len(partition), np.int64), empty(len(partition), np.int64)
        known = PastRows(self._rows, self._newest, self._size)
        count_before(partition, step, start, end, known, position, place)
        self._size += int(np.count_nonzero(partition >= 0))
        return position, place

    def _know(self, rows: AnyRows, partition: Ints) -> None:
        """Remember the keys of partitions that are new."""
        self._newest = with_room(self._newest, self._partitions.number, 0)
        if not self._partitions.names:
            return
        self._known = with_room(self._known, self._partitions.number, -1)
        codes, first = np.unique(partition, return_index=True)
        new = np.flatnonzero((codes >= 0) & (self._known[codes] < 0))
        if len(new):
            self._known[codes[new]] = np.arange(self._number, self._number + len(new))
            self._number += len(new)
            some = to_arrow(first[new])
            self._keys.append(pa.table({name: rows.column(name).take(some) for name in self._partitions.names}))

    def saved(self, partition: Ints, end: Ints, positions: int) -> pa.Table:
        """The rows that are still needed while some events are held, given as [event] their partitions and ends.

        Those that end at or after the first event held in their partition, and the last `positions` of each partition:
        only these can count in a window with an event that is held or still to come.
        """
        rows = self._needed(partition, end, positions)
        point = rows[:, POINTS] > self._rows[rows[:, BELOW], POINTS]
        columns = {"end": rows[:, END], "total": rows[:, TOTAL], "point": point}
        keys = {}
        if self._keys:
            table = pa.concat_tables(self._keys).unify_dictionaries().combine_chunks()
            self._keys = [table]
            table = table.take(to_arrow(self._known[rows[:, KEY]]))
            keys = dict(zip(key_columns(self._partitions.names), table.columns, strict=True))
        return pa.table(columns | keys)

    def _needed(self, partition: Ints, end: Ints, positions: int) -> Ints:
        oldest = np.full(len(self._newest), _FOREVER)
        np.minimum.at(oldest, partition[partition >= 0], end[partition >= 0])
        rows = self._rows[: self._size]
        key, ended = rows[:, KEY], rows[:, END]
        needed = (ended >= oldest[key]) | (rows[:, TOTAL] >= rows[self._newest[key], TOTAL] - positions)
        needed_rows: Ints = rows[needed & (rows[:, BELOW] != np.arange(self._size))]
        return needed_rows

    def needed_bytes(self, partition: Ints, end: Ints, positions: int) -> int:
        """The bytes of the rows that `saved` keeps."""
        return int(self._needed(partition, end, positions).nbytes)

    def restore(self, saved: pa.Table) -> None:
        if not saved.num_rows:
            return
        names = self._partitions.names
        keys = saved.select(key_columns(names)).rename_columns(list(names))
        partition = self._partitions.codes(keys if names else saved)
        end, total, point = (to_numpy(saved.column(name)) for name in ("end", "total", "point"))
        check_past_totals(partition, total)
        self._know(keys, partition)
        # One row a partition stands for all events before the first saved one: only their number is known.
        codes, first = np.unique(partition, return_index=True)
        self._size = 1 + len(codes)
        self._rows = with_room(self._rows, self._size)
        self._rows[1 : self._size] = 0
        self._rows[1 : self._size, BELOW] = self._rows[1 : self._size, JUMP] = np.arange(1, self._size)
        self._rows[1 : self._size, END] = NEVER
        self._rows[1 : self._size, TOTAL] = total[first] - 1
        self._rows[1 : self._size, KEY] = codes
        self._newest[codes] = np.arange(1, self._size)
        self._add(partition, np.arange(len(end)), np.where(point, end, end - 1), end.copy())

    @property
    def nbytes(self) -> int:
        keys = sum(int(table.nbytes) for table in self._keys)
        return int(self._rows.nbytes + self._newest.nbytes + self._known.nbytes) + keys
