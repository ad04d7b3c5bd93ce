"""Records by key (ZStream §5.2.2): equal keys have equal codes, and records of a code are linked, newest first.

Equalities on several attributes make one key of all of them, so that the paper's secondary tables are not needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kleene.engine.executors.equal_values import Flags, are_comparable, equal_numbers
from kleene.engine.executors.trees.records import RecordBuffer
from kleene.engine.executors.trees.rounds import Round
from kleene.engine.intake.keys import Interner
from kleene.engine.state.growing import with_room
from kleene.kernels.expression import Ints
from kleene.kernels.joins import FIRST, LinkedEvents, Links, Numbers, Records, link, link_up_to
from kleene.pattern.expressions import Attribute, Clause, Comparison
from kleene.pattern.types import ValueType
from kleene.plan.layout import Column
from kleene.plan.program import NotCompilable


@dataclass(frozen=True, slots=True)
class Read:
    """One attribute of a record's event."""

    # The column of the record that holds the event.
    place: int
    column: Column
    # Whether it is compared with a real number.
    as_real: bool

    def values(self, records: Records, at: Round) -> tuple[Ints, Flags]:
        """The values as integers that are equal where the values are, and which records have none."""
        return equal_numbers(self.column, at.events, records.refs[:, self.place], as_real=self.as_real)


class Lookup:
    """The codes of both sides of a join."""

    def __init__(
        self, equalities: Sequence[Clause], sides: tuple[Mapping[str, int], Mapping[str, int]],
        columns: Mapping[str, Column], *, keyed: bool,
    ) -> None:  # fmt: skip
        self._keyed = keyed
        self._reads: tuple[list[Read], list[Read]] = ([], [])
        for clause in equalities:
            attributes = _sides(clause, sides)
            kinds = [columns[attribute.attribute] for attribute in attributes]
            if not are_comparable(*kinds):
                raise NotCompilable("a lookup needs two columns of the same kind")
            as_real = any(column.type is ValueType.FLOAT for column in kinds)
            for side, attribute, column in zip((0, 1), attributes, kinds, strict=True):
                self._reads[side].append(Read(sides[side][attribute.variable], column, as_real))
        self.forget()

    @property
    def is_trivial(self) -> bool:
        """Whether all records have the same code."""
        return not self._keyed and not self._interners

    def forget(self) -> None:
        """Forget all codes; they are given anew."""
        self._interners = [Interner() for _ in self._reads[0]]

    def codes(self, side: int, records: Records, at: Round) -> Ints:
        codes = at.time.keys[records.times[:, FIRST]] if self._keyed else np.zeros(len(records.times), np.int64)
        for interner, read in zip(self._interners, self._reads[side], strict=True):
            codes = interner.codes(codes, *read.values(records, at))
        return codes

    def number(self, at: Round) -> int:
        """The number of codes."""
        if self._interners:
            return int(self._interners[-1].number[0])
        return at.keys if self._keyed else 1


def fits_lookup(clause: Clause, columns: Mapping[str, Column]) -> bool:
    """Whether equal values of both columns are equal integers."""
    return are_comparable(*(columns[attribute.attribute] for attribute in _attributes(clause)))


def _attributes(clause: Clause) -> tuple[Attribute, Attribute]:
    (literal,) = clause.literals
    assert isinstance(literal, Comparison)
    assert isinstance(literal.left, Attribute)
    assert isinstance(literal.right, Attribute)
    return literal.left, literal.right


def _sides(clause: Clause, sides: tuple[Mapping[str, int], Mapping[str, int]]) -> tuple[Attribute, Attribute]:
    one, other = _attributes(clause)
    return (one, other) if one.variable in sides[0] else (other, one)


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

    def take(self, buffer: RecordBuffer, begin: int, at: Round) -> None:
        """Add the records of a buffer from `begin` on."""
        if self._lookup.is_trivial:
            return
        link_up_to(begin, self.links)
        whole = buffer.all
        new = Records(whole.refs[begin : buffer.size], whole.times[begin : buffer.size])
        self._codes, self._base = self._lookup.codes(self._side, new, at), begin
        self._heads = with_room(self._heads, self._lookup.number(at), -1)
        self._previous = with_room(self._previous, buffer.size)

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
    """Events of one class by partition, which NSEQ, NEG and KSEQ search."""

    def __init__(self) -> None:
        self.events: Ints = np.zeros(0, np.int64)
        self.size = 0
        self.linked = RecordsByCode()

    def append(self, events: Ints, at: Round, *, keyed: bool) -> None:
        """Add events in order; where there are partitions, events outside of them are never found."""
        if not len(events):
            return
        codes = at.time.keys[events] if keyed else np.zeros(len(events), np.int64)
        self.linked.add(self.size, codes, at.keys if keyed else 1)
        self.events = with_room(self.events, self.size + len(events))
        self.events[self.size : self.size + len(events)] = events
        self.size += len(events)

    @property
    def arrays(self) -> LinkedEvents:
        return LinkedEvents(self.events, self.linked.heads, self.linked.previous)

    @property
    def nbytes(self) -> int:
        return int(self.events.nbytes) + self.linked.nbytes
