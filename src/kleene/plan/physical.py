"""Physical plans as plain data: which executor runs a query, and what is tested where.

A plan says what is done, not how: no arrays, no Arrow, no Spark. `check` refuses an ill-formed one.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from kleene.pattern.expressions import Clause
from kleene.pattern.nodes import Component
from kleene.pattern.query import BoundQuery

if TYPE_CHECKING:
    from kleene.plan.costs import Costed
    from kleene.plan.trees import TreePlan


@dataclass(frozen=True, slots=True)
class Scan:
    """What an event must satisfy alone to be an instance of a component: its classes, then these conditions."""

    component: Component
    mask: tuple[Clause, ...] = ()


@dataclass(frozen=True, slots=True)
class Absence:
    """A negated component between two places of the sequence (−1: the window's start, the length: its end)."""

    scan: Scan
    after: int
    conditions: tuple[Clause, ...] = ()
    # Whether its events carry the plan's key, so that only those of the match's partition are looked at.
    keyed: bool = False
    # The state of an automaton on whose begin edge it is tested; None: on complete matches.
    at: int | None = None


@dataclass(frozen=True, slots=True)
class SequencePlan:
    """Active instance stacks (SASE §4.1–4.2): one scan a place, construction from the last event backwards."""

    scans: tuple[Scan, ...]
    # The equivalence attributes that partition the stacks (PAIS, §4.2.1).
    key: tuple[str, ...] = ()
    # By place: what is tested when construction binds it, from the last place to the first (§4.2.2).
    during: tuple[tuple[Clause, ...], ...] = ()
    # What is tested on a whole sequence (the selection operator of §3.1).
    after: tuple[Clause, ...] = ()
    # Whether the window stops the scan and the construction early (§4.3), or is tested on whole sequences.
    window_in_scan: bool = False
    window_in_construction: bool = False
    absences: tuple[Absence, ...] = ()

    @property
    def has_negated_end(self) -> bool:
        """Whether matches are certain only when their window is closed."""
        return any(absence.after == len(self.scans) - 1 for absence in self.absences)

    @property
    def has_negated_start(self) -> bool:
        """Whether an event before a match can forbid it."""
        return any(absence.after < 0 for absence in self.absences)

    def writes_in_order(self, query: BoundQuery) -> bool:
        """Whether what one event completes is written in the order of results, so that nothing is sorted.

        For that nothing but windows and time decides, and time must have one direction: of events that last, a later
        one may have begun earlier, and positions of different partitions say nothing about each other.
        """
        free = not self.after and not any(self.during)
        one_time = query.schema.start is None and (not query.counts_events or self.key == query.partition)
        return free and one_time and (query.window is None or self.window_in_construction)


@dataclass(frozen=True, slots=True)
class Edge:
    """What an event must satisfy alone (its mask), and together with what the run has selected before (its tests)."""

    mask: tuple[Clause, ...] = ()
    tests: tuple[Clause, ...] = ()
    # Those tests by which the runs are found that can go on with an event (`run_lookups`).
    equalities: tuple[Clause, ...] = ()


@dataclass(frozen=True, slots=True)
class StatePlan:
    """A component as NFA^b runs it (SASE+ §3.1): an edge that begins it and, for a Kleene one, one that takes more."""

    component: Component
    begin: Edge = Edge()
    take: Edge = Edge()
    # What a run must satisfy to leave a Kleene component, or to be a match there.
    proceed: tuple[Clause, ...] = ()

    @property
    def tests(self) -> tuple[Clause, ...]:
        return (*self.begin.tests, *self.take.tests, *self.proceed)

    def without(self, clauses: Container[Clause]) -> StatePlan:
        """These are tested elsewhere, or not at all."""

        def remaining(tests: tuple[Clause, ...]) -> tuple[Clause, ...]:
            return tuple(clause for clause in tests if clause not in clauses)

        begin = Edge(self.begin.mask, remaining(self.begin.tests))
        take = Edge(self.take.mask, remaining(self.take.tests))
        return StatePlan(self.component, begin, take, remaining(self.proceed))


@dataclass(frozen=True, slots=True)
class AutomatonPlan:
    """NFA^b over shared runs (SASE+ §3–5): any strategy, any number of Kleene components."""

    states: tuple[StatePlan, ...]
    # The equivalence attributes that keep the runs of different partitions apart.
    key: tuple[str, ...] = ()
    absences: tuple[Absence, ...] = ()
    # Whether a run dies as soon as its window has closed (§3.2 step 5), or only fails to complete.
    window_early: bool = False
    # Whether runs with the same future are one (§5.2.2).
    merges: bool = False

    @property
    def has_negated_end(self) -> bool:
        """Whether matches are certain only when their window is closed."""
        return any(absence.after == len(self.states) - 1 for absence in self.absences)

    @property
    def has_negated_start(self) -> bool:
        """Whether an event before a match can forbid it."""
        return any(absence.after < 0 for absence in self.absences)


@dataclass(frozen=True, slots=True)
class ReferencePlan:
    """The reference evaluator goes through the events of a whole query, since no executor can, for this reason."""

    reason: str
    # It keeps all events of two windows together, whatever the pattern is.
    key: ClassVar[tuple[str, ...]] = ()
    has_negated_end: ClassVar[bool] = False
    has_negated_start: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class Plan:
    """A bound query and how each of its alternatives runs; their matches are united."""

    query: BoundQuery
    alternatives: tuple[SequencePlan | AutomatonPlan | TreePlan | ReferencePlan, ...] = ()
    rules: tuple[str, ...] = field(default=())
    # The expected cost of each alternative; empty where costs were not estimated.
    costs: tuple[Costed, ...] = ()

    @staticmethod
    def on_reference(query: BoundQuery, reason: str) -> Plan:
        """The plan of a query that no executor can run."""
        return Plan(query, (ReferencePlan(reason),))

    @property
    def why_on_reference(self) -> str | None:
        """Why the reference evaluator runs the query; None where executors do."""
        return next((each.reason for each in self.alternatives if isinstance(each, ReferencePlan)), None)

    @property
    def has_negated_end(self) -> bool:
        """Whether some matches are certain only when their window is closed."""
        return any(alternative.has_negated_end for alternative in self.alternatives)

    @property
    def has_negated_start(self) -> bool:
        """Whether an event before a match can forbid it."""
        return any(alternative.has_negated_start for alternative in self.alternatives)


class IllFormedPlan(AssertionError):
    """A rule made a plan that does not mean what the query means: a bug, never the user's fault."""
