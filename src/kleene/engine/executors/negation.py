"""The events of a negated class that an engine holds, and the matches that they forbid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kleene.codegen.expression import compile_clauses
from kleene.engine.executors.equal_values import Bound, ComparedValue, ValueEquality
from kleene.engine.executors.linking import link
from kleene.engine.executors.windows import within
from kleene.engine.intake.strings import StringPool
from kleene.engine.state.growing import Growing
from kleene.kernels.expression import EventColumns, EventTest, Groups, Ints, ProgramScope, Texts, room
from kleene.kernels.negation import EventsByKey, Gaps, forbidden
from kleene.kernels.timeline import Timeline, shifted
from kleene.pattern.clock import Window
from kleene.pattern.expressions import Attribute, Clause, Reference, Which, equated, references
from kleene.plan.layout import Layout
from kleene.plan.physical import Absence

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


class NegatedEvents:
    """Events of one negated class, in order.

    layout   where its conditions find the events of a match
    slot     where they find the negated event
    """

    def __init__(self, absence: Absence, layout: Layout, slot: int, strings: StringPool) -> None:
        program = compile_clauses(absence.conditions, layout)
        self._test, self._stack = EventTest(link(program, strings), slot), room(program.depth + 1)
        self._identifiers, self._keyed = layout.identifiers, absence.keyed
        self._equalities = equal_values(absence.conditions, absence.scan.component.variable, layout, strings)
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
            own = equality.own, lambda _: others
            bound = equality.other, lambda each: suspects.bindings[:, self._identifiers[each]]
            match_keys, of_key, keys = _divided(own, bound, match_keys, of_key, events, texts)
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
    negated: tuple[ComparedValue, Bound],
    matched: tuple[ComparedValue, Bound],
    match_keys: Ints,
    of_key: Ints,
    events: EventColumns,
    texts: Texts,
) -> tuple[Ints, Ints, int]:
    """Keys of matches and of negated events that are equal only where these values are, too; and how many there are.

    What has no value equals nothing. What an event lacks equals everything: then nothing is divided.
    """
    if any(value.is_lacking(bound, events) for value, bound in (negated, matched)):
        return match_keys, of_key, int(max(match_keys.max(), of_key.max())) + 1
    values, none = negated[0].numbers(negated[1], events, texts)
    known, places = np.unique(values, return_inverse=True)
    of_match, unequal = matched[0].numbers(matched[1], events, texts)
    found = np.minimum(np.searchsorted(known, of_match), len(known) - 1)
    unequal = unequal | (known[found] != of_match)
    # The pairs of a key and a value that negated events have.
    pairs = np.where(none | (of_key < 0), -1, of_key * len(known) + places)
    wanted = np.where(unequal | (match_keys < 0), -1, match_keys * len(known) + found)
    keys, of_key = np.unique(pairs, return_inverse=True)
    match_keys = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    match_keys = np.where((keys[match_keys] == wanted) & (wanted >= 0), match_keys, -1)
    of_key = np.where(pairs >= 0, of_key, -1)
    return match_keys, of_key, len(keys)


def equal_values(
    conditions: Sequence[Clause], variable: str, layout: Layout, strings: StringPool
) -> list[ValueEquality]:
    """The conditions on a negated variable that equate a value of its event with one of the match."""
    equalities = []
    for clause in conditions:
        sides = [references(side) for side in equated(clause) or ()]
        own = [
            named for named in sides if {(each.variable, _which(each)) for each in named} == {(variable, Which.SINGLE)}
        ]
        theirs = [named for named in sides if named and variable not in {each.variable for each in named}]
        known = all((each.variable, _which(each)) in layout.identifiers for named in theirs for each in named)
        if len(own) == len(theirs) == 1 and known:
            equality = ValueEquality.of(clause, {variable}, layout.columns, strings)
            equalities += [] if equality is None else [equality]
    return equalities


def _which(reference: Reference) -> Which | None:
    """Which event an attribute is of; None of an aggregate, which is of several."""
    return reference.which if isinstance(reference, Attribute) else None
