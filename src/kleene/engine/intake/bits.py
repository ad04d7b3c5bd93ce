"""Which components of an executor each event of a batch could stand for: one bit a component."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kleene.engine.intake.columns import ColumnStore
from kleene.engine.intake.masks import mask, members
from kleene.engine.intake.strings import StringPool
from kleene.engine.state.memory import are_shared_zeros, shared_zeros
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
        useful: Flags = self.begins != 0
        for bits in (self.takes, self.absents):
            if not are_shared_zeros(bits):
                useful |= bits != 0
        return useful

    def take(self, places: Ints) -> Bits:
        parts = (self.begins, self.takes, self.absents)
        return Bits(*(shared_zeros(len(places)) if are_shared_zeros(bits) else bits[places] for bits in parts))

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
    types = columns.types
    if not parts:
        nothing = np.zeros(0, np.int64)
        return ScanBits(shared_zeros(types.size), nothing, nothing)
    # [type]: how many events are of it, and the components that these can be.
    numbers, by_type = types.numbers, np.zeros(len(types.names), np.int64)
    masked: list[tuple[int, Flags]] = []
    seen, passed = np.zeros(len(parts), np.int64), np.zeros(len(parts), np.int64)
    for place, part in enumerate(parts):
        if part is None:
            continue
        component, clauses = part
        if not clauses and not any(kind.predicate for kind in component.classes):
            own = types.which(frozenset(component.types).__contains__)
            by_type[own] |= 1 << place
            seen[place] = passed[place] = numbers[own].sum()
            continue
        member = members(component, columns, strings)
        good = member & mask(clauses, columns, strings) if clauses else member
        seen[place], passed[place] = np.count_nonzero(member), np.count_nonzero(good)
        masked.append((place, good))
    bits = types.numbered(by_type)
    for place, good in masked:
        bits |= good.astype(np.int64) << place
    if among is not None and not among.all():
        bits[~among] = 0
    return ScanBits(bits, seen, passed)
