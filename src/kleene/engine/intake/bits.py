"""Which components of an executor each event of a batch could stand for: one bit a component."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kleene.engine.intake.columns import NO_TYPE, ColumnStore
from kleene.engine.intake.masks import mask, members
from kleene.engine.intake.strings import StringPool
from kleene.engine.state.memory import empty
from kleene.kernels.expression import Ints
from kleene.pattern.expressions import Clause
from kleene.pattern.nodes import Component

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Bits:
    """[event], one bit each: positive components it can begin, Kleene ones that can take it, negated classes."""

    begins: Ints
    takes: Ints
    absents: Ints

    @property
    def any(self) -> Flags:
        """[event]: whether any bit is set."""
        useful: Flags = (self.begins | self.takes | self.absents) != 0
        return useful

    def take(self, places: Ints) -> Bits:
        return Bits(self.begins[places], self.takes[places], self.absents[places])

    def between(self, first: int, last: int) -> Bits:
        return Bits(self.begins[first:last], self.takes[first:last], self.absents[first:last])

    def among(self, events: Flags) -> Bits:
        """No bit of other events."""
        return Bits(*(np.where(events, bits, 0) for bits in (self.begins, self.takes, self.absents)))


@dataclass(frozen=True, eq=False)
class ScanBits:
    """Which events satisfy the classes and the one-event conditions of components."""

    # [event]: one bit a component.
    bits: Ints
    # [component]: how many events are of its classes, and how many of these satisfy its conditions.
    seen: Ints
    passed: Ints


def scan(
    parts: Sequence[tuple[Component, Sequence[Clause]] | None],
    columns: ColumnStore,
    strings: StringPool,
    among: Flags | None = None,
) -> ScanBits:
    """The bits of each event. Components without conditions share one look-up by type.

    parts   a component and its conditions on one event; None is a bit that stays 0
    among   the events that count; None: all of them
    """
    types, kinds = columns.types, columns.kinds
    size = len(types)
    # [code − NO_TYPE]
    by_type = np.zeros(
        max([*kinds, *(strings.code(n) for p in parts if p for n in p[0].types)], default=0) + 2, np.int64
    )
    bits = empty(size, np.int64)
    bits[:] = 0
    seen, passed = np.zeros(len(parts), np.int64), np.zeros(len(parts), np.int64)
    for place, part in enumerate(parts):
        if part is None:
            continue
        component, clauses = part
        if not clauses and not any(kind.predicate for kind in component.classes):
            own = [strings.code(name) for name in component.types]
            by_type[np.array(own) - NO_TYPE] |= 1 << place
            seen[place] = passed[place] = sum(kinds.get(code, 0) for code in own)
            continue
        member = members(component, columns, strings)
        good = member & mask(clauses, columns, strings) if clauses else member
        seen[place], passed[place] = np.count_nonzero(member), np.count_nonzero(good)
        bits |= good.astype(np.int64) << place
    if len(kinds) == 1:
        bits |= by_type[next(iter(kinds)) - NO_TYPE]
    elif by_type.any():
        # The last place is for NO_TYPE, −1.
        bits |= np.roll(by_type, NO_TYPE)[types]
    if among is not None and not among.all():
        bits[~among] = 0
    return ScanBits(bits, seen, passed)
