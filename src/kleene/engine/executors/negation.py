"""The events of a negated class that an engine holds, and the matches that they forbid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kleene.engine.executors.equal_values import are_comparable, equal_numbers
from kleene.engine.executors.windows import within
from kleene.engine.state.growing import Growing
from kleene.kernels.expression import EventColumns, EventTest, Groups, Ints, ProgramScope, Stack, Texts
from kleene.kernels.negation import EventsByKey, Gaps, forbidden
from kleene.kernels.opcodes import MISSING
from kleene.kernels.timeline import Timeline, shifted
from kleene.pattern.clock import Window
from kleene.pattern.expressions import Attribute, Clause, Comparison, Which
from kleene.pattern.types import ValueType
from kleene.plan.layout import Column, Layout

Flags = npt.NDArray[np.bool_]
# Negated events are divided by value where so many of them are in the gap of a match, on average; so many matches tell.
_MANY, _ASKED = 8, 256


@dataclass(frozen=True, eq=False)
class CandidateMatches:
    """Complete matches, as conditions on a negated event see them."""

    # [match, slot]
    bindings: Ints
    groups: Groups
    group: Ints
    # [match]: the right of the left neighbour, before which step a negated event must end, first and last event.
    floors: Ints
    ceilings: Ints
    first: Ints
    last: Ints


@dataclass(frozen=True, slots=True)
class EqualValue:
    """A condition on a negated event that one of its values equals one of the match."""

    negated: Column
    # The value of the match: of which slot of its bindings.
    slot: int
    of_match: Column

    @property
    def columns(self) -> tuple[Column, Column]:
        return self.negated, self.of_match

    @property
    def as_real(self) -> bool:
        return any(column.type is ValueType.FLOAT for column in self.columns)


def equal_values(conditions: Sequence[Clause], variable: str, layout: Layout) -> list[EqualValue]:
    """The conditions on a negated variable by which its events can be looked up."""
    equalities = []
    for clause in conditions:
        match clause.literals:
            case (Comparison("=", Attribute() as one, Attribute() as other),):
                own, theirs = (one, other) if one.variable == variable else (other, one)
            case _:
                continue
        slot = layout.identifiers.get((theirs.variable, theirs.which))
        if own.variable != variable or own.which is not Which.SINGLE or theirs.variable == variable or slot is None:
            continue
        columns = layout.columns[own.attribute], layout.columns[theirs.attribute]
        if are_comparable(*columns):
            equalities.append(EqualValue(columns[0], slot, columns[1]))
    return equalities


class NegatedEvents:
    """Events of one negated class, in order."""

    def __init__(self, test: EventTest, stack: Stack, equalities: Sequence[EqualValue], *, keyed: bool) -> None:
        self._test, self._stack, self._equalities, self._keyed = test, stack, equalities, keyed
        self._events = Growing(np.zeros(0, np.int64))

    def append(self, events: Ints) -> None:
        if len(events):
            self._events.append(events)

    @property
    def nbytes(self) -> int:
        return self._events.nbytes

    def forbid(
        self,
        suspects: CandidateMatches,
        window: Window | None,
        time: Timeline,
        keys: int,
        events: EventColumns,
        texts: Texts,
    ) -> Flags:
        """Which of the matches a negated event forbids."""
        out = np.zeros(len(suspects.first), np.bool_)
        others: Ints = self._events.used
        if not len(others) or not len(out):
            return out
        match_keys, of_key = np.zeros(len(out), np.int64), np.zeros(len(others), np.int64)
        if self._keyed:
            match_keys, of_key = time.keys[suspects.first], time.keys[others]
        by_value = bool(self._equalities) and _in_a_gap(others, suspects, window, time) >= _MANY
        for equality in self._equalities if by_value else ():
            match_keys, of_key, keys = _divided(equality, match_keys, of_key, suspects.bindings, others, events)
        begin = np.array([0, len(others)], np.int64)
        if self._keyed or by_value:
            others, of_key = others[of_key >= 0], of_key[of_key >= 0]
            order = np.argsort(of_key, kind="stable")
            begin = np.searchsorted(of_key[order], np.arange(keys + 1))
            others = others[order]
        gaps = Gaps(match_keys, suspects.floors, suspects.ceilings, suspects.first, suspects.last, within(window))
        negated = EventsByKey(begin.astype(np.int64), np.ascontiguousarray(others))
        scope = ProgramScope(events, texts, suspects.bindings, suspects.groups, self._stack)
        forbidden(gaps, negated, time, self._test, scope, suspects.group, out)
        return out


def _in_a_gap(others: Ints, suspects: CandidateMatches, window: Window | None, time: Timeline) -> float:
    """About how many of the negated events lie where they could forbid a match."""
    asked = np.arange(0, len(suspects.first), max(1, len(suspects.first) // _ASKED))
    steps = time.steps[others]
    low = np.searchsorted(steps, suspects.floors[asked], side="right")
    high = np.searchsorted(steps, suspects.ceilings[asked])
    if window is not None:
        ends = time.ends[others]
        earliest = np.searchsorted(ends, shifted(time.ends[suspects.last[asked]], -window.size))
        latest = np.searchsorted(ends, shifted(time.starts[suspects.first[asked]], window.size), side="right")
        low, high = np.maximum(low, earliest), np.minimum(high, latest)
    return float(np.mean(np.maximum(high - low, 0)))


def _divided(
    equality: EqualValue, match_keys: Ints, of_key: Ints, bindings: Ints, others: Ints, events: EventColumns
) -> tuple[Ints, Ints, int]:
    """Keys of matches and of negated events that are equal only where these values are, too; and how many there are.

    What has no value equals nothing. What an event lacks equals everything: then nothing is divided.
    """
    bound = bindings[:, equality.slot]
    lacking = int(bound.min()) < 0 or any(
        (events.states[column.index, rows] == MISSING).any()
        for column, rows in zip(equality.columns, (others, bound), strict=True)
    )
    if lacking:
        return match_keys, of_key, int(max(match_keys.max(), of_key.max())) + 1
    values, none = equal_numbers(equality.negated, events, others, as_real=equality.as_real)
    known, places = np.unique(values, return_inverse=True)
    of_match, unequal = equal_numbers(equality.of_match, events, bound, as_real=equality.as_real)
    found = np.minimum(np.searchsorted(known, of_match), len(known) - 1)
    unequal |= known[found] != of_match
    # The pairs of a key and a value that negated events have.
    pairs = np.where(none | (of_key < 0), -1, of_key * len(known) + places)
    wanted = np.where(unequal | (match_keys < 0), -1, match_keys * len(known) + found)
    keys, of_key = np.unique(pairs, return_inverse=True)
    match_keys = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    match_keys = np.where((keys[match_keys] == wanted) & (wanted >= 0), match_keys, -1)
    of_key = np.where(pairs >= 0, of_key, -1)
    return match_keys, of_key, len(keys)
