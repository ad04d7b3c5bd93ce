"""What an engine counted, in words: a line a component, and what stopped the runs that came furthest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kleene.diagnosis.stream import DiagnosedStream
from kleene.engine.state.statistics import ComponentCounts
from kleene.errors import did_you_mean
from kleene.lang.tree import OutputMode, SelectionStrategy
from kleene.pattern.explaining import aligned
from kleene.pattern.expressions import Clause
from kleene.pattern.links import key_of
from kleene.pattern.nodes import Component, ComponentKind
from kleene.pattern.printing import print_clause
from kleene.pattern.query import BoundQuery
from kleene.plan.explain_lines import leaving, variables_of
from kleene.plan.physical import AutomatonPlan, SequencePlan

_LISTED = 3


def counted(number: int, one: str, many: str | None = None) -> str:
    """`1 event`, `12,000 events`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


@dataclass(frozen=True)
class Wording:
    """One alternative of a query: its plan, its counts, and the stream where these leave something open."""

    query: BoundQuery
    plan: SequencePlan | AutomatonPlan
    counts: Sequence[ComponentCounts]
    stream: DiagnosedStream
    number: int
    # The window as it was written.
    within: str | None

    def lines(self, *, matched: bool) -> Iterator[str]:
        """How far events and runs came; unless something matched, what stopped them."""
        rows = [(name, self._component(place)) for place, name in enumerate(self._names)]
        yield from aligned(rows)
        wall = next((place for place, count in enumerate(self.counts) if count.reached == 0), None)
        if wall is not None:
            yield f"nothing reached {self._names[wall]}: {self._why_unreached(wall)}"
        elif not matched:
            yield f"nothing that reached {self._names[-1]} is a match: {self._why_incomplete()}"

    # What there is

    @property
    def _names(self) -> list[str]:
        return variables_of(self.plan)

    def _part(self, place: int) -> Component:
        parts = self.plan.scans if isinstance(self.plan, SequencePlan) else self.plan.states
        return parts[place].component

    def _mask(self, place: int) -> tuple[Clause, ...]:
        """The conditions on the first event of a component alone."""
        plan = self.plan
        return plan.scans[place].mask if isinstance(plan, SequencePlan) else plan.states[place].begin.mask

    def _tests(self, place: int) -> tuple[Clause, ...]:
        """The conditions of a component that involve other events."""
        plan = self.plan
        if isinstance(plan, SequencePlan):
            return (*plan.during[place], *(plan.after if place == 0 else ()))
        state, last = plan.states[place], place == len(plan.states) - 1
        return (*state.begin.tests, *state.take.tests, *(state.proceed if last else ()))

    def _passed(self, place: int) -> int:
        """Events that could begin a component; of a Kleene one, the engine counts also those that could follow."""
        kleene = self._part(place).kind is ComponentKind.KLEENE
        return self.stream.begins(self.number, place) if kleene else self.counts[place].passed

    def _negated(self, place: int) -> str:
        """The negated components that may stop a run on its way to a place, or at the last one."""
        last = len(self._names) - 1
        names = [
            absence.scan.component.variable
            for absence in self.plan.absences
            if (last if absence.at is None else absence.at) == place
        ]
        return f"a negated {' or '.join(names)}"

    @property
    def _key(self) -> str:
        return key_text(self.query)

    # A component

    def _component(self, place: int) -> str:
        count, kind = self.counts[place], types_of(self._part(place))
        if not count.seen:
            return f"no event of {kind}"
        said = [f"{counted(count.seen, 'event')} of {kind}{self._own(place)}"]
        said += self._stack_facts(place) if isinstance(self.plan, SequencePlan) else self._run_facts(place)
        return "; ".join(said)

    def _own(self, place: int) -> str:
        return own_conditions(self._mask(place), self._passed(place), self.counts[place].seen)

    def _stack_facts(self, place: int) -> Iterator[str]:
        count = self.counts[place]
        if place and count.passed:
            in_time = " in time" if self.within else ""
            yield f"{f'{count.reached:,}' if count.reached else 'none'} came after {self._names[place - 1]}{in_time}"
        if count.failed:
            yield f"{counted(count.failed, 'sequence')} failed {one_of(self._tests(place))}"
        if count.negated:
            yield f"{counted(count.negated, 'sequence')} stopped by {self._negated(place)}"

    def _run_facts(self, place: int) -> Iterator[str]:
        count = self.counts[place]
        yield f"{counted(count.reached, 'run')} reached it" if count.reached else "no run reached it"
        if count.failed:
            yield f"{counted(count.failed, 'try', 'tries')} failed {one_of(self._tests(place))}"
        if count.negated:
            yield f"{counted(count.negated, 'run')} stopped by {self._negated(place)}"
        if count.expired:
            yield f"{counted(count.expired, 'run')} stood here when the window closed"
        if count.broken:
            yield f"{counted(count.broken, 'run')} broken off: another event came next"

    # Why nothing came further

    def _why_unreached(self, place: int) -> str:
        count, component = self.counts[place], self._part(place)
        kind, mask = types_of(component), self._mask(place)
        if not count.seen:
            return why_unseen(component, self.query, self.stream)
        if not self._passed(place):
            return f"no event of {kind} has {all_of(mask)}"
        if not self.stream.begins(self.number, place):
            return f"every event of {kind}{f' with {all_of(mask)}' if mask else ''} lacks {self._key}"
        reasons = self._reasons(place)
        if reasons:
            return ", ".join(reasons)
        if place == 0:
            return (
                f"each lasts longer than WITHIN {self.within}"
                if self.within
                else "the query's conditions are never true"
            )
        return self._why_not_after(place)

    def _reasons(self, place: int) -> list[str]:
        """What stopped runs between the component before and this one, as counted, the most frequent first."""
        if isinstance(self.plan, SequencePlan):
            return []
        count = self.counts[place]
        reasons = [(count.failed, f"{counted(count.failed, 'try', 'tries')} failed {one_of(self._tests(place))}")]
        reasons.append((count.negated, f"{counted(count.negated, 'run')} stopped by {self._negated(place)}"))
        if place:
            before, name = self.counts[place - 1], self._names[place - 1]
            window = f"{counted(before.expired, 'run')} at {name} waited until the window closed"
            reasons.append((before.expired, f"{window} (WITHIN {self.within})"))
            reasons.append((before.broken, f"{counted(before.broken, 'run')} at {name} met another event next"))
        listed = sorted((pair for pair in reasons if pair[0]), key=lambda pair: -pair[0])
        waiting = self._waiting(place) if listed and place else 0
        return [text for _, text in listed] + ([f"{waiting:,} still waited when the stream ended"] if waiting else [])

    def _waiting(self, place: int) -> int:
        """The number of runs that still waited for a place: they neither expired nor were stopped."""
        strategy, before = self.query.strategy, self.counts[place - 1]
        single = self._part(place - 1).kind is ComponentKind.SINGLE
        if strategy.is_contiguous or not single or self.query.output is OutputMode.NON_OVERLAP:
            return 0
        stopped = self.counts[place].negated if strategy is SelectionStrategy.SKIP_TILL_NEXT_MATCH else 0
        return max(before.reached - before.expired - stopped, 0)

    def _why_not_after(self, place: int) -> str:
        """Why no event continued a run: the first of order, key and window that none satisfies."""
        name, before = self._names[place], self._names[place - 1]
        came = self.stream.came(self.number, place)
        if not came.after:
            return f"no event for {name} came after {before}"
        if not came.same_key:
            return f"{counted(came.after, 'event')} for {name} came after {before}, none with the same {self._key}"
        same = f" with the same {self._key}" if self._key else ""
        later = f"{counted(came.same_key, 'event')} for {name} came after {before}{same}"
        if isinstance(self.plan, AutomatonPlan):
            needed = leaving(self.plan.states[place - 1])
            if needed and self._part(place - 1).kind is ComponentKind.KLEENE:
                return f"no run could leave {before}: it needs {' and '.join(needed)}"
            if self.query.strategy.is_contiguous:
                return f"{later}, and other events between"
        return f"{later}, too late for the window (WITHIN {self.within})"

    def _why_incomplete(self) -> str:
        """Why none of the runs that reached the last component is a match."""
        last = len(self.counts) - 1
        reasons = []
        on_stacks = isinstance(self.plan, SequencePlan)
        what = "sequence" if on_stacks else "run"
        for place, count in enumerate(self.counts):
            if on_stacks or place == last:
                reasons.append((count.failed, f"{counted(count.failed, what)} failed {one_of(self._tests(place))}"))
                reasons.append((count.negated, f"{counted(count.negated, what)} stopped by {self._negated(place)}"))
        listed = [text for number, text in sorted(reasons, key=lambda pair: -pair[0]) if number]
        if listed:
            return ", ".join(listed)
        component = self._part(last)
        if component.kind is ComponentKind.KLEENE and component.minimum > 1:
            return f"it needs at least {component.minimum} events"
        return (
            f"first and last event lie further apart than WITHIN {self.within}" if self.within else "nothing is known"
        )


def own_conditions(mask: Sequence[Clause], passed: int, seen: int) -> str:
    """How many of the events of a component's types satisfy its conditions on one event, as text."""
    if not mask:
        return ""
    number = "all" if passed == seen else f"{passed:,}" if passed else "none"
    return f", {number} with {all_of(mask)}"


def why_unseen(component: Component, query: BoundQuery, stream: DiagnosedStream) -> str:
    """Why no event could be one of a component."""
    there = set(component.types) & set(stream.types)
    if there and stream.without_key:
        return f"every event of {types_of(component)} lacks {key_text(query)}"
    if there:
        return f"no event of {', '.join(sorted(there))} is one of {types_of(component)}"
    known = ", ".join(stream.types[:8]) + (", …" if len(stream.types) > 8 else "")
    hint = did_you_mean(component.types[0], stream.types) or ""
    beside = hint if hint.startswith("did") else f"there are only {known}" if known else "there are no events"
    return f"no event of {types_of(component)} came ({beside})"


def key_text(query: BoundQuery) -> str:
    return ", ".join(f"`{name}`" for name in key_of(query))


def types_of(component: Component) -> str:
    return " or ".join(each.name for each in component.classes)


def all_of(clauses: Sequence[Clause]) -> str:
    return " and ".join(_printed(clauses))


def one_of(clauses: Sequence[Clause]) -> str:
    """The conditions of which one failed, as text: the engine counts their failures together."""
    if not clauses:
        return "the window"
    printed = _printed(clauses)
    return printed[0] if len(printed) == 1 else f"one of {', '.join(printed)}"


def _printed(clauses: Sequence[Clause]) -> list[str]:
    printed = [f"`{print_clause(clause)}`" for clause in clauses]
    if len(printed) > _LISTED:
        printed = [*printed[:_LISTED], f"{len(printed) - _LISTED} more"]
    return printed
