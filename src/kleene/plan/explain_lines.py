"""Plans of lines for people: what stacks and the automaton test, and where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kleene.lang.tree import OutputMode
from kleene.pattern.expressions import Clause
from kleene.pattern.nodes import Component, ComponentKind
from kleene.pattern.printing import print_clause, print_clauses
from kleene.pattern.query import BoundQuery
from kleene.plan.physical import Absence, AutomatonPlan, Edge, Scan, SequencePlan, StatePlan

Row = tuple[str, str]
STACKS = "stacks (SASE §4)"
AUTOMATON = "automaton (SASE+ §3–5)"
OUTPUTS = {
    OutputMode.ALL: "one row a match",
    OutputMode.NON_OVERLAP: "the first of the matches that overlap",
    OutputMode.COMPRESSED: "one row a completing event, its matches in one graph",
}


def line_rows(plan: SequencePlan | AutomatonPlan, query: BoundQuery) -> Iterator[Row]:
    """Everything that is said of one alternative."""
    yield from _executor(plan, query)
    yield from _last_rows(plan, query)


def _executor(plan: SequencePlan | AutomatonPlan, query: BoundQuery) -> Iterator[Row]:
    on_stacks = isinstance(plan, SequencePlan)
    how = "every sequence is built from its last event back" if on_stacks else "each event is offered to the open runs"
    yield "executor", f"{STACKS if on_stacks else AUTOMATON}: {how}"
    what = "stacks" if on_stacks else "runs"
    yield "partition", f"by {', '.join(plan.key)}: {what} of different keys never meet" if plan.key else "none"
    yield from _places(plan) if isinstance(plan, SequencePlan) else _states(plan)
    yield "window", _window(plan, query)


def _last_rows(plan: SequencePlan | AutomatonPlan, query: BoundQuery) -> Iterator[Row]:
    names = variables_of(plan)
    for absence in plan.absences:
        yield from _absence(absence, names, plan.key)
    if isinstance(plan, AutomatonPlan):
        yield "merging", "runs with the same future are one (SASE+ §5.2.2)" if plan.merges else "each run by itself"
    waits = any(absence.after == len(names) - 1 for absence in plan.absences)
    when = "when its window has closed" if waits else f"when its last event `{names[-1]}` has come"
    alone = len(query.alternatives) == 1 and query.output is OutputMode.ALL
    in_order = alone and not waits and isinstance(plan, SequencePlan) and plan.writes_in_order(query)
    yield "output", f"{OUTPUTS[query.output]}, {when}{'; nothing is sorted' if in_order else ''}"


# Stacks ------------------------------------------------------------------------------------------------------------


def _places(plan: SequencePlan) -> Iterator[Row]:
    for scan in plan.scans:
        yield f"scan {scan.component.variable}", scan_text(scan)
    for place in reversed(range(len(plan.scans))):
        yield from _tests(f"bind {plan.scans[place].component.variable}", plan.during[place])
    yield from _tests("whole sequence", plan.after)


# The automaton -----------------------------------------------------------------------------------------------------


def _states(plan: AutomatonPlan) -> Iterator[Row]:
    for state in plan.states:
        first, each = edge_names(state.component)
        yield from _edge(f"begin {first}", state.component, state.begin)
        if state.component.kind is ComponentKind.KLEENE:
            yield from _edge(f"take {each}", state.component, state.take)
            yield from _tests(f"leave {state.component.variable}", leaving(state))


def _edge(name: str, component: Component, edge: Edge) -> Iterator[Row]:
    yield name, scan_text(Scan(component, edge.mask))
    if edge.equalities:
        yield "", f"lookup by {' and '.join(map(print_clause, edge.equalities))}"
    for clause in edge.tests:
        if clause not in edge.equalities:
            yield "", f"and with the run: {print_clause(clause)}"


def edge_names(component: Component) -> tuple[str, str]:
    """The name of the first event of a component, and of each later one."""
    name = component.variable
    return (name, name) if component.kind is ComponentKind.SINGLE else (f"{name}[1]", f"{name}[i]")


def leaving(state: StatePlan) -> list[str]:
    """What a run must satisfy to leave a Kleene component."""
    component = state.component
    needed = [f"at least {component.minimum} events"] if component.minimum > 1 else []
    return [*needed, *map(print_clause, state.proceed)]


# Both --------------------------------------------------------------------------------------------------------------


def variables_of(plan: SequencePlan | AutomatonPlan) -> list[str]:
    """The positive variables, in order."""
    parts = plan.scans if isinstance(plan, SequencePlan) else plan.states
    return [part.component.variable for part in parts]


def scan_text(scan: Scan) -> str:
    """`Shelf where a.price > 5`: what an event must be, by itself."""
    text = classes_text(scan.component)
    return f"{text} where {print_clauses(scan.mask)}" if scan.mask else text


def classes_text(component: Component) -> str:
    """The types of a component's events; a class is followed by what it stands for."""
    listed = []
    for each in component.classes:
        tests = f" where {print_clauses(each.predicate)}" if each.predicate else ""
        stands_for = f"{', '.join(each.types)}{tests}"
        listed.append(each.name if stands_for == each.name else f"{each.name} ({stands_for})")
    return " or ".join(listed)


def _tests(name: str, clauses: Sequence[Clause | str]) -> Iterator[Row]:
    for number, clause in enumerate(clauses):
        yield ("" if number else name), clause if isinstance(clause, str) else print_clause(clause)


def _window(plan: SequencePlan | AutomatonPlan, query: BoundQuery) -> str:
    if query.window is None:
        return "none"
    if isinstance(plan, AutomatonPlan):
        return "a run ends as soon as its window has closed" if plan.window_early else "tested on complete runs"
    early = [
        name for name, is_on in (("scan", plan.window_in_scan), ("construction", plan.window_in_construction)) if is_on
    ]
    return f"stops {' and '.join(early)} early" if early else "tested on whole sequences"


def _absence(absence: Absence, names: Sequence[str], key: tuple[str, ...]) -> Iterator[Row]:
    scan = absence.scan
    same = f" of the same {', '.join(key)}" if absence.keyed else ""
    yield (
        f"no {scan.component.variable}",
        f"{scan_text(scan)}{same}, {where(absence, names)}: {_decided(absence, names)}",
    )
    for clause in absence.conditions:
        yield "", f"with {print_clause(clause)}"


def where(absence: Absence, names: Sequence[str]) -> str:
    """Between which components a negated one stands."""
    if absence.after < 0:
        return f"before {names[0]} within the window"
    if absence.after == len(names) - 1:
        return f"after {names[-1]} within the window"
    return f"between {names[absence.after]} and {names[absence.after + 1]}"


def _decided(absence: Absence, names: Sequence[str]) -> str:
    if absence.at is not None:
        return f"tested when {names[absence.at]} begins"
    return "tested when the window has closed" if absence.after == len(names) - 1 else "tested on whole matches"
