"""A bound query for people: what each part of it was taken for, and on which edge each condition belongs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kleene.lang import tree
from kleene.lang.format import format_duration
from kleene.lang.tree import OutputMode, SelectionStrategy
from kleene.pattern.clock import ClockKind
from kleene.pattern.conditions import LinearPattern, applicable, assign_edges
from kleene.pattern.expressions import Aggregate, Agrees, Among, Clause, Comparison, Contains, references
from kleene.pattern.gaps import Neighbours, negations
from kleene.pattern.nodes import Component, ComponentKind, Pattern, components, is_linear
from kleene.pattern.printing import (
    print_alternative,
    print_clause,
    print_component,
    print_nanoseconds,
    print_pattern,
    print_value,
)
from kleene.pattern.query import BoundQuery
from kleene.pattern.schema import Schema

_STRATEGIES = {
    SelectionStrategy.STRICT_CONTIGUITY: "selected events follow each other in the stream, with nothing between",
    SelectionStrategy.PARTITION_CONTIGUITY: "selected events follow each other in their partition",
    SelectionStrategy.SKIP_TILL_NEXT_MATCH: "irrelevant events are skipped, the next relevant one is taken",
    SelectionStrategy.SKIP_TILL_ANY_MATCH: "every combination of events that satisfies the conditions",
}
_OUTPUTS = {
    OutputMode.ALL: "one row a match",
    OutputMode.NON_OVERLAP: "matches that do not overlap",
    OutputMode.COMPRESSED: "one row a completing event, with the number of its matches",
}


def explanation(query: BoundQuery, within: tree.Within | None) -> Iterator[str]:
    """The bound query, line by line; its window as it was written."""
    yield from aligned(_head(query, within))
    yield ""
    yield "components"
    yield from aligned(_components(query), indent="  ")
    for number, option in enumerate(query.alternatives, 1):
        yield ""
        several = len(query.alternatives) > 1
        name = (
            f"alternative {number} of {len(query.alternatives)}: {print_alternative(option)}"
            if several
            else "conditions"
        )
        yield name
        yield from aligned(_conditions(query, option), indent="  ")
    if query.warnings:
        yield ""
        yield "warnings"
        for warning in query.warnings:
            yield from (f"  {line}" for line in warning.render().splitlines())


def aligned(rows: Iterable[tuple[str, str]], indent: str = "") -> Iterator[str]:
    """Two columns, the first as wide as its longest entry."""
    listed = list(rows)
    width = max((len(name) for name, _ in listed), default=0)
    for name, text in listed:
        yield f"{indent}{name:<{width}}  {text}".rstrip()


def _head(query: BoundQuery, within: tree.Within | None) -> Iterator[tuple[str, str]]:
    yield "query", query.name
    yield "pattern", print_pattern(query.pattern)
    yield "strategy", f"{query.strategy.value}: {_STRATEGIES[query.strategy]}"
    yield "partition", ", ".join(query.partition) or "none: the whole stream is one"
    yield "window", _window(query, within)
    yield "time", f"`{query.schema.time}`, {clock_text(query.schema)}"
    if query.schema.tie_breaker is not None:
        yield "ties", f"broken by `{query.schema.tie_breaker}`"
    yield "output", f"{query.output.value}: {_OUTPUTS[query.output]}"
    if query.returns is not None:
        yield "returns", ", ".join(f"{print_value(column.value)} AS {column.name}" for column in query.returns)
    if query.into is not None:
        yield "into", f"stream {query.into}"
    if query.timeouts is not None:
        yield "timeouts", f"into {query.timeouts}"


def clock_text(schema: Schema) -> str:
    """How a schema counts time."""
    return "of a kind that the events will show" if schema.clock.kind is ClockKind.UNKNOWN else schema.clock.describe()


def _window(query: BoundQuery, within: tree.Within | None) -> str:
    window = query.window
    if window is None or within is None:
        return "none: runs on bounded input only, every run stays open to its end"
    sign = "≤" if window.inclusive else "<"
    if window.events:
        return f"position(last) − position(first) {sign} {window.size:,}"
    return f"end − start {sign} {format_duration(within.duration)}{_steps(query)}"


def _steps(query: BoundQuery) -> str:
    """The window in steps of the clock, where that is not what was written."""
    clock = query.schema.clock
    if query.window is None or clock.nanoseconds is None:
        return ""
    return f" = {query.window.size:,} steps of {print_nanoseconds(clock.nanoseconds)}"


def _components(query: BoundQuery) -> Iterator[tuple[str, str]]:
    for component in query.components:
        name = f"{'! ' if component.negated else ''}{print_component(component)}"
        yield name, "; ".join(_facts(query, component))
        for event_class in component.classes:
            if event_class.name not in event_class.types or event_class.predicate:
                tests = " AND ".join(map(print_clause, event_class.predicate)) or "TRUE"
                yield f"  {event_class.name}", f"is {', '.join(event_class.types)} where {tests}"


def _facts(query: BoundQuery, component: Component) -> Iterator[str]:
    yield _forbidden(query, component) if component.negated else _amount(component)
    for name in component.types:
        attributes = query.schema.attributes_of(name)
        if attributes is not None:
            columns = ", ".join(f"{column} {kind.value}" for column, kind in attributes.items())
            yield f"{name} has {columns}" if len(component.types) > 1 else f"has {columns}"


def _forbidden(query: BoundQuery, component: Component) -> str:
    """`must not occur`; of a negated pair: after or before the other one."""
    if component.preceded_by is not None:
        return f"must not occur after {component.preceded_by.variable}"
    later = [each.variable for each in query.components if each.preceded_by is component]
    return f"must not occur before {later[0]}" if later else "must not occur"


def _amount(component: Component) -> str:
    if component.kind is ComponentKind.SINGLE:
        return "one event, or none" if component.optional else "one event"
    low, high = component.minimum, component.maximum
    number = f"{low} or more" if high is None else f"{low}" if low == high else f"{low} to {high}"
    absent = ", or none" if component.optional else ""
    kind = "the whole group between its neighbours" if component.kind is ComponentKind.CLOSURE else "Kleene closure"
    return f"{number} events{absent} ({kind})"


def _conditions(query: BoundQuery, option: Pattern) -> Iterator[tuple[str, str]]:
    present = tuple(components(option))
    names = {component.variable for component in present}
    said = applicable(query.conditions.positive, names)
    tested = [clause for clause in said if not _true_by_absence(clause, names)]
    if is_linear(option):
        yield from _edges(assign_edges(present, tested))
    else:
        yield from _listed("match", tested)
    for variable, clauses in query.conditions.members.items():
        if variable in names:
            yield from _listed(f"members of {variable}", clauses)
    for component, around in negations(option):
        clauses = query.conditions.negative.get(component.variable, ())
        yield from _listed(f"no {component.forbidden_text} {_between(around)}", clauses)


def _true_by_absence(clause: Clause, present: set[str]) -> bool:
    """A comparison that touches a variable which this alternative lacks is true (the semantics page §2, Missing)."""
    return any(
        isinstance(literal, Comparison | Contains | Among | Agrees)
        and any(
            reference.variable not in present
            and not (isinstance(reference, Aggregate) and reference.function == "count")
            for reference in references(literal)
        )
        for literal in clause.literals
    )


def _edges(line: LinearPattern) -> Iterator[tuple[str, str]]:
    for state in line.states:
        name = state.component.variable
        if state.component.kind is ComponentKind.SINGLE:
            yield from _listed(f"begin {name}", state.begin)
        else:
            yield from _listed(f"begin {name}[1]", state.begin)
            yield from _listed(f"take {name}[i]", state.take)
            yield from _listed(f"proceed from {name}", state.proceed)


def _listed(name: str, clauses: Sequence[Clause]) -> Iterator[tuple[str, str]]:
    """A condition a line; TRUE when there is none."""
    if not clauses:
        yield name, "TRUE"
    for number, clause in enumerate(clauses):
        yield ("" if number else name), print_clause(clause)


def _between(around: Neighbours) -> str:
    before, after = _nearest(around.before), _nearest(around.after)
    if before and after:
        return f"between {before} and {after}, with"
    if not before and not after:
        return "around the match within the window, with"
    return f"{f'after {before}' if before else f'before {after}'} within the window, with"


def _nearest(parts: Sequence[Pattern]) -> str:
    """The variables of the nearest part; none where there is no part."""
    return ", ".join(
        component.variable for part in parts[:1] for component in components(part) if not component.negated
    )
