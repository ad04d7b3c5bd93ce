"""NFA^b, run literally (SASE+ §3.1–3.2): every run at every step, edges tested as the paper writes them.

A state waits for its component's first event (`begin`), or, for a Kleene component, stands at `p[i]` with three ways
on: `take` another event, `proceed` to the next state when this event begins it (step 6), or `ignore` the event.
Simultaneous events are one step: an edge fires once for each of them that satisfies it, and a run stays only when all
of them let it be ignored (the semantics page §1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kleene.lang.tree import SelectionStrategy
from kleene.pattern.conditions import LinearPattern, LinearState
from kleene.pattern.expressions import Clause
from kleene.pattern.nodes import ComponentKind
from kleene.pattern.query import BoundQuery
from kleene.reference.limits import Limits
from kleene.reference.matches import Match
from kleene.reference.timeline import ReferenceEvent, ReferenceTimeline, in_class
from kleene.reference.values import Environment, holds


@dataclass(frozen=True)
class Run:
    """The events selected so far, one tuple a state; a run is nothing else (SASE+ §3.1)."""

    selected: tuple[tuple[ReferenceEvent, ...], ...]

    @property
    def last(self) -> ReferenceEvent:
        return self.selected[-1][-1]

    @property
    def first(self) -> ReferenceEvent:
        return self.selected[0][0]


class Automaton:
    """One alternative of a query, run over a timeline."""

    def __init__(self, query: BoundQuery, line: LinearPattern, timeline: ReferenceTimeline, limits: Limits) -> None:
        self.query = query
        self.line = line
        self.timeline = timeline
        self.limits = limits
        # Every run that ever existed, kept for queries with TIMEOUTS.
        self.history: dict[Run, None] = {}

    def run(self) -> list[Match]:
        matches: dict[Run, None] = {}
        runs: dict[Run, None] = {}
        for step in self.timeline.steps:
            new_runs = dict.fromkeys(move for run in runs for move in self.moves(run, step))
            new_runs.update(dict.fromkeys(self.starts(step)))
            stayed = [run for run in runs if self.stays(run, step)]
            if self.query.timeouts is not None:
                self.history.update(new_runs)
            matches.update(dict.fromkeys(run for run in new_runs if self.is_match(run)))
            runs = dict.fromkeys([*stayed, *(run for run in new_runs if self.goes_on(run))])
            self.limits.check_runs(len(runs))
            self.limits.check_matches(len(matches))
        return [self.match(run) for run in matches]

    # Edges

    def starts(self, step: Iterable[ReferenceEvent]) -> Iterator[Run]:
        """A new run is tried from every event."""
        for event in step:
            if self.begins(0, (), event):
                yield Run(((event,),))

    def moves(self, run: Run, step: Iterable[ReferenceEvent]) -> Iterator[Run]:
        """Every edge that takes an event, once for each simultaneous event that satisfies it."""
        for event in self.visible(run, step):
            if self.at_kleene(run) and self.takes(run, event):
                yield Run((*run.selected[:-1], (*run.selected[-1], event)))
            following = len(run.selected)
            if (
                following < len(self.line.states)
                and self.may_leave(run)
                and self.begins(following, run.selected, event)
            ):
                yield Run((*run.selected, (event,)))

    def stays(self, run: Run, step: Iterable[ReferenceEvent]) -> bool:
        """Whether the run can ignore all visible events of the step, and its window is still open."""
        if not self.goes_on(run):
            return False
        return all(self.ignores(run, event) and not self.expired(run, event) for event in self.visible(run, step))

    def visible(self, run: Run, step: Iterable[ReferenceEvent]) -> Iterator[ReferenceEvent]:
        """An event that is not after a run's last event is invisible to that run."""
        return (event for event in step if self.timeline.before(run.last, event))

    def begins(self, state: int, selected: tuple[tuple[ReferenceEvent, ...], ...], event: ReferenceEvent) -> bool:
        """The formula of the begin edge; to the final state it includes the window (step 4)."""
        at = self.line.states[state]
        if not self.selectable(at, event):
            return False
        grown = (*selected, (event,))
        if (
            state == len(self.line.states) - 1
            and at.component.kind is ComponentKind.SINGLE
            and not self.in_window(grown)
        ):
            return False
        return self.all_hold(at.begin, self.environment(grown))

    def takes(self, run: Run, event: ReferenceEvent) -> bool:
        at = self.line.states[len(run.selected) - 1]
        if at.component.maximum is not None and len(run.selected[-1]) >= at.component.maximum:
            return False
        return self.selectable(at, event) and self.all_hold(at.take, self.environment(run.selected, event))

    def may_leave(self, run: Run) -> bool:
        """Whether the run waits at the next state, or stands at p[i] and its proceed edge is open."""
        at = self.line.states[len(run.selected) - 1]
        if at.component.kind is ComponentKind.SINGLE:
            return True
        enough = len(run.selected[-1]) >= at.component.minimum
        return enough and self.all_hold(at.proceed, self.environment(run.selected))

    def ignores(self, run: Run, event: ReferenceEvent) -> bool:
        """The formula of the ignore edge (step 3)."""
        match self.query.strategy:
            case SelectionStrategy.STRICT_CONTIGUITY:
                return False
            case SelectionStrategy.PARTITION_CONTIGUITY:
                key = self.timeline.key(event)
                return key is None or key != self.timeline.key(run.first)
            case SelectionStrategy.SKIP_TILL_NEXT_MATCH:
                if self.at_kleene(run):
                    return not self.takes(run, event)
                return not self.begins(len(run.selected), run.selected, event)
        return True

    # Conditions

    def at_kleene(self, run: Run) -> bool:
        return self.line.states[len(run.selected) - 1].component.kind is ComponentKind.KLEENE

    def selectable(self, state: LinearState, event: ReferenceEvent) -> bool:
        """The type test; an event without a partition matches nothing."""
        return self.timeline.key(event) is not None and in_class(self.timeline, state.component, event)

    def environment(
        self, selected: tuple[tuple[ReferenceEvent, ...], ...], current: ReferenceEvent | None = None
    ) -> Environment:
        names = (state.component.variable for state in self.line.states)
        return Environment(self.timeline, dict(zip(names, selected, strict=False)), current)

    @staticmethod
    def all_hold(clauses: Iterable[Clause], environment: Environment) -> bool:
        return all(holds(clause, environment) for clause in clauses)

    def in_window(self, selected: tuple[tuple[ReferenceEvent, ...], ...]) -> bool:
        return within_window(self.query, self.timeline, selected[0][0], selected[-1][-1])

    def expired(self, run: Run, event: ReferenceEvent) -> bool:
        """A time window never opens again, so a run that has outlived it need not be kept (step 5)."""
        window = self.query.window
        return window is not None and not window.events and not window.holds(event.end - run.first.start)

    # Ends

    def goes_on(self, run: Run) -> bool:
        return self.at_kleene(run) or len(run.selected) < len(self.line.states)

    def is_match(self, run: Run) -> bool:
        """Whether the run is at the end; a trailing Kleene component reports every prefix that satisfies the rest."""
        if len(run.selected) < len(self.line.states):
            return False
        return not self.at_kleene(run) or (self.may_leave(run) and self.in_window(run.selected))

    def match(self, run: Run) -> Match:
        names = (state.component.variable for state in self.line.states)
        return Match(self.query.positives, dict(zip(names, run.selected, strict=False)))


def within_window(query: BoundQuery, timeline: ReferenceTimeline, first: ReferenceEvent, last: ReferenceEvent) -> bool:
    """WITHIN: end of last − start of first, or position(last) − position(first)."""
    window = query.window
    if window is None:
        return True
    if window.events:
        return window.holds(timeline.position(last) - timeline.position(first))
    return window.holds(last.end - first.start)
