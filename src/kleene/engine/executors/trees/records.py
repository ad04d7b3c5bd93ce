"""Buffers of records (ZStream §4.2), in the order of their right, and lists of events that records refer to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kleene.engine.state.growing import Growing, with_room
from kleene.engine.state.memory import empty
from kleene.kernels.expression import Ints
from kleene.kernels.joins import RIGHT, START, TIMES, Numbers, Records
from kleene.pattern.expressions import Which

Flags = npt.NDArray[np.bool_]
# A buffer is cleared when it has twice as many records as after it was last cleared, and this many more.
_WORTH_IT = 4096


class RecordBuffer:
    """The records of a node: those up to `fresh` were seen by its parent before this round."""

    def __init__(self, columns: int) -> None:
        self._none = Records(np.zeros((0, columns), np.int32), np.zeros((0, TIMES), np.int64))
        self._refs, self._times = self._none
        self.size = 0
        self.fresh = 0
        self._cleared_at = 0

    def append(self, records: Records) -> None:
        size = self.size + len(records.times)
        if not self.size:
            self._refs, self._times = np.ascontiguousarray(records.refs), np.ascontiguousarray(records.times)
        else:
            self._refs, self._times = with_room(self._refs, size), with_room(self._times, size)
            self._refs[self.size : size], self._times[self.size : size] = records
        self.size = size

    @property
    def all(self) -> Records:
        """All records, with room behind them."""
        return Records(self._refs, self._times)

    @property
    def used(self) -> Records:
        return Records(self._refs[: self.size], self._times[: self.size])

    @property
    def delta(self) -> Records:
        """The records that are new in this round."""
        return Records(self._refs[self.fresh : self.size], self._times[self.fresh : self.size])

    def clear(self) -> None:
        """Drop all records, and the memory that they took: a round of many would be held until the next one."""
        self._refs, self._times = self._none
        self.size = self.fresh = 0

    def clear_before(self, earliest: int) -> bool:
        """Drop records that start too early, when that is worth the work; whether it was done, which renumbers them."""
        if self.size < 2 * self._cleared_at + _WORTH_IT:
            return False
        survivors = self._times[: self.size, START] >= earliest
        self.fresh = int(np.count_nonzero(survivors[: self.fresh]))
        self._refs, self._times = self._refs[: self.size][survivors], self._times[: self.size][survivors]
        self.size = self._cleared_at = len(self._times)
        return True

    def numbers(self, column: int) -> Numbers:
        return self._refs[: self.size, column]

    def renumber(self, column: int, live: Numbers) -> None:
        """Renumber lists by their places among the live ones."""
        self._refs[: self.size, column] = renumbered(self.numbers(column), live)

    @property
    def nbytes(self) -> int:
        return int(self._refs.nbytes + self._times.nbytes)


def renumbered(numbers: Numbers, live: Numbers) -> Numbers:
    return np.where(numbers >= 0, np.searchsorted(live, numbers), -1).astype(np.int32)


def taken(records: Records, places: Ints | Flags) -> Records:
    return Records(records.refs[places], records.times[places])


def together(parts: Sequence[Records]) -> Records:
    """Records of several parts, sorted by their right."""
    some = [part for part in parts if len(part.times)] or list(parts[:1])
    if len(some) == 1:
        return some[0]
    refs, times = np.concatenate([part.refs for part in some]), np.concatenate([part.times for part in some])
    rights = times[:, RIGHT]
    if bool(np.all(rights[1:] >= rights[:-1])):
        return Records(refs, times)
    order = np.argsort(rights, kind="stable")
    return Records(refs[order], times[order])


class ListPool:
    """The lists of one variable, by number."""

    def __init__(self) -> None:
        self._offsets = Growing(np.zeros(1, np.int64))
        self._members = Growing(np.zeros(0, np.int32))

    def add(self, sizes: Ints, members: Numbers) -> Numbers:
        """Add lists; their numbers."""
        first = self._offsets.size - 1
        last = int(self._offsets.used[-1])
        self._offsets.append(last + np.cumsum(sizes))
        if len(members):
            self._members.append(members)
        return np.arange(first, first + len(sizes), dtype=np.int32)

    def expanded(self, numbers: Numbers) -> tuple[Numbers, Ints]:
        """The events of these lists, and where those of each begin; the number −1 stands for no list."""
        offsets = self._offsets.used
        known = np.maximum(numbers, 0)
        sizes = np.where(numbers >= 0, offsets[np.minimum(known + 1, len(offsets) - 1)] - offsets[known], 0)
        begins = np.zeros(len(numbers) + 1, np.int64)
        np.cumsum(sizes, out=begins[1:])
        at = np.repeat(offsets[known] - begins[:-1], sizes) + np.arange(begins[-1])
        return self._members.used[at], begins

    def keep(self, numbers: Numbers) -> None:
        """Keep only these lists, renumbered in their order."""
        members, begins = self.expanded(numbers)
        self._offsets, self._members = Growing(np.zeros(1, np.int64)), Growing(np.zeros(0, np.int32))
        self.add(np.diff(begins), members)

    @property
    def nbytes(self) -> int:
        return self._offsets.nbytes + self._members.nbytes


@dataclass(frozen=True, eq=False)
class NamedRecords:
    """Records with the variables of their columns."""

    records: Records
    # The column of each variable; which of them hold lists.
    columns: Mapping[str, int]
    pools: Mapping[str, ListPool]

    def __len__(self) -> int:
        return len(self.records.times)

    def events(self, variable: str, which: Which) -> Numbers:
        """[record]: the event that an identifier stands for, −1 where it is absent."""
        if variable not in self.columns:
            return np.full(len(self), -1, np.int32)
        numbers = self.records.refs[:, self.columns[variable]]
        if variable not in self.pools:
            return numbers
        rows, begins = self.pools[variable].expanded(numbers)
        if not len(rows):
            return np.full(len(self), -1, np.int32)
        at = begins[1:] - 1 if which is Which.LAST else begins[:-1]
        return np.where(begins[1:] > begins[:-1], rows[np.clip(at, 0, len(rows) - 1)], np.int32(-1))

    def covered(self, variable: str) -> tuple[Numbers, Ints]:
        """All events of a variable, and where those of each record begin."""
        if variable not in self.columns:
            return np.zeros(0, np.int32), np.zeros(len(self) + 1, np.int64)
        numbers = self.records.refs[:, self.columns[variable]]
        if variable in self.pools:
            return self.pools[variable].expanded(numbers)
        begins = np.zeros(len(self) + 1, np.int64)
        np.cumsum(numbers >= 0, out=begins[1:])
        return numbers[numbers >= 0], begins

    def references(self, variables: Sequence[str]) -> tuple[Numbers, Ints, Ints]:
        """The events of these variables, record by record, in their order; where each record begins; whose they are."""
        parts = [self.covered(variable) for variable in variables]
        sizes = np.zeros((len(variables), len(self)), np.int64)
        for place, (_, begins) in enumerate(parts):
            sizes[place] = np.diff(begins)
        offsets = np.zeros(len(self) + 1, np.int64)
        np.cumsum(sizes.sum(axis=0), out=offsets[1:])
        events, whose = empty(int(offsets[-1]), np.int32), empty(int(offsets[-1]), np.int64)
        at = offsets[:-1].copy()
        for place, (rows, begins) in enumerate(parts):
            where = np.repeat(at - begins[:-1], sizes[place]) + np.arange(len(rows))
            events[where], whose[where] = rows, place
            at += sizes[place]
        return events, offsets, whose
