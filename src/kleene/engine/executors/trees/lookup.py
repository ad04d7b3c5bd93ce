"""Records by key (ZStream §5.2.2): equal keys have equal codes, and records of a code are linked, newest first.

Equalities on several attributes make one key of all of them, so that the paper's secondary tables are not needed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kleene.engine.executors.equal_values import Bound, ValueEquality
from kleene.engine.executors.trees.records import NamedRecords
from kleene.engine.executors.trees.rounds import Round
from kleene.engine.intake.keys import Interner
from kleene.engine.state.growing import with_room
from kleene.kernels.expression import Ints
from kleene.kernels.joins import FIRST, LinkedEvents, Links, Numbers, link, link_up_to
from kleene.plan.layout import Identifier


class Lookup:
    """The codes of both sides of a join, or of records and of the events that are looked for beside them."""

    def __init__(self, equalities: Sequence[ValueEquality], *, keyed: bool) -> None:
        self._keyed = keyed
        self._values = [equality.own for equality in equalities], [equality.other for equality in equalities]
        self.forget()

    @property
    def is_trivial(self) -> bool:
        """Whether all records have the same code."""
        return not self._keyed and not self._interners

    @property
    def is_key(self) -> bool:
        """Whether codes are those of partitions, or one for all."""
        return not self._interners

    def forget(self) -> None:
        """Forget all codes; they are given anew."""
        self._interners = [Interner() for _ in self._values[0]]

    def codes(self, side: int, firsts: Ints, bound: Bound, at: Round) -> Ints:
        """The codes of records, or of events, of one side; −1: it meets nothing.

        firsts   [record]: an event of its partition
        """
        codes: Ints = at.time.keys[firsts] if self._keyed else np.zeros(len(firsts), np.int64)
        for interner, value in zip(self._interners, self._values[side], strict=True):
            codes = interner.codes(codes, *value.numbers(bound, at.events, at.texts))
        return codes

    def of_records(self, side: int, records: NamedRecords, at: Round) -> Ints:
        return self.codes(side, records.records.times[:, FIRST], lambda each: records.events(*each), at)

    def number(self, at: Round) -> int:
        """The number of codes."""
        if self._interners:
            return int(self._interners[-1].number[0])
        return at.keys if self._keyed else 1


class SideIndex:
    """The records of one side of a join by code. A join links new records as it reaches them."""

    def __init__(self, side: int, lookup: Lookup) -> None:
        self._side, self._lookup = side, lookup
        self.forget()

    def forget(self) -> None:
        self._heads: Numbers = np.full(1, -1, np.int32)
        self._previous: Numbers = np.zeros(0, np.int32)
        self._codes: Ints = np.zeros(0, np.int64)
        self._base = 0
        self._linked = np.zeros(1, np.int64)

    def take(self, begin: int, new: NamedRecords, at: Round) -> None:
        """Add the records of a buffer from `begin` on."""
        if self._lookup.is_trivial:
            return
        link_up_to(begin, self.links)
        self._codes, self._base = self._lookup.of_records(self._side, new, at), begin
        self._heads = with_room(self._heads, self._lookup.number(at), -1)
        self._previous = with_room(self._previous, begin + len(new))

    @property
    def links(self) -> Links:
        keyed = not self._lookup.is_trivial
        return Links(keyed, self._heads, self._previous, self._codes, self._base, self._linked)

    @property
    def nbytes(self) -> int:
        return int(self._heads.nbytes + self._previous.nbytes)


class RecordsByCode:
    """Records of each code, as lists linked from the newest back."""

    def __init__(self) -> None:
        self.heads: Numbers = np.full(1, -1, np.int32)
        self.previous: Numbers = np.zeros(0, np.int32)

    def add(self, begin: int, codes: Ints, number: int) -> None:
        """Add records from `begin` on, of `number` codes in all."""
        end = begin + len(codes)
        self.heads = with_room(self.heads, number, -1)
        self.previous = with_room(self.previous, end)
        link(begin, end, codes, self.heads, self.previous)

    @property
    def nbytes(self) -> int:
        return int(self.heads.nbytes + self.previous.nbytes)


class EventIndex:
    """Events of one class by code, which NSEQ, NEG and KSEQ search.

    identifier   what an event stands for in the equalities that it is looked up by: the second side of these
    """

    def __init__(self, identifier: Identifier, equalities: Sequence[ValueEquality], *, keyed: bool) -> None:
        self._identifier = identifier
        self.lookup = Lookup(equalities, keyed=keyed)
        self.events: Ints = np.zeros(0, np.int64)
        self.size = 0
        self.linked = RecordsByCode()
        # [place]: the code of each event, where it is not that of its partition.
        self._codes: Ints = np.zeros(0, np.int64)

    def append(self, events: Ints, at: Round) -> None:
        """Add events in order; those that have no partition, or equal nothing, are never found."""
        if not len(events):
            return
        codes = self.lookup.codes(1, events, lambda _: events, at)
        self.linked.add(self.size, codes, self.lookup.number(at))
        size = self.size + len(events)
        self.events = with_room(self.events, size)
        self.events[self.size : size] = events
        if not self.lookup.is_key:
            self._codes = with_room(self._codes, size)
            self._codes[self.size : size] = codes
        self.size = size

    def codes_from(self, begin: int, at: Round) -> Ints:
        """The codes of the events from `begin` on, where they have different ones."""
        return at.time.keys[self.events[begin : self.size]] if self.lookup.is_key else self._codes[begin : self.size]

    @property
    def arrays(self) -> LinkedEvents:
        return LinkedEvents(self.events, self.linked.heads, self.linked.previous)

    @property
    def nbytes(self) -> int:
        return int(self.events.nbytes + self._codes.nbytes) + self.linked.nbytes
