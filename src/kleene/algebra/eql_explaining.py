"""A bound query in EQL for people: its aliases, and the operator at which each condition is tested."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kleene.algebra.detections import (
    Delay,
    Detection,
    DetectionFilter,
    Expiry,
    Failing,
    Iteration,
    NextDetection,
    Unless,
    aliases,
    said,
    walk_detections,
)
from kleene.algebra.eql_printing import occurrences, print_conjuncts, print_steps
from kleene.algebra.eql_query import BoundEqlQuery, clauses_of_detection
from kleene.pattern.clock import Clock
from kleene.pattern.explaining import aligned, clock_text
from kleene.pattern.expressions import Clause
from kleene.pattern.nodes import Component, ComponentKind
from kleene.pattern.printing import print_clause, print_value

Row = tuple[str, str]


def eql_explanation(query: BoundEqlQuery) -> Iterator[str]:
    """The bound query, line by line."""
    yield from aligned(_head(query))
    yield ""
    yield "aliases"
    yield from aligned(_aliases(query), indent="  ")
    tested = [(node, list(_conditions(node, query))) for node in walk_detections(query.root)]
    if any(rows for _, rows in tested):
        yield ""
        yield "conditions"
    for node, rows in tested:
        if rows:
            yield f"  {print_detection(node, query.schema.clock)}"
            yield from aligned(rows, indent="    ")
    if query.warnings:
        yield ""
        yield "warnings"
        for warning in query.warnings:
            yield from (f"  {line}" for line in warning.render().splitlines())


def _head(query: BoundEqlQuery) -> Iterator[Row]:
    yield "query", query.name
    yield "pattern", print_detection(query.root, query.schema.clock)
    yield "time", f"`{query.schema.time}`, {clock_text(query.schema)}"
    if query.schema.tie_breaker is not None:
        yield "ties", f"broken by `{query.schema.tie_breaker}`"
    later = query.root.steps if isinstance(query.root, Delay) else 0
    yield (
        "output",
        "one row a detection, when time has passed its end"
        + (f", {print_steps(later, query.schema.clock)} after its last event" if later else ""),
    )
    if query.returns is not None:
        yield "returns", ", ".join(f"{print_value(column.value)} AS {column.name}" for column in query.returns)
    if query.into is not None:
        yield "into", f"stream {query.into}"


def _aliases(query: BoundEqlQuery) -> Iterator[Row]:
    for component in query.components:
        (event_class,) = component.classes
        known = [_amount(component)]
        for name in component.types:
            attributes = query.schema.attributes_of(name)
            if attributes is not None:
                known.append(f"has {', '.join(f'{column} {kind.value}' for column, kind in attributes.items())}")
        yield component.variable, f"{event_class.name}: {'; '.join(known)}"
        if event_class.name not in event_class.types or event_class.predicate:
            tests = " AND ".join(map(print_clause, event_class.predicate)) or "TRUE"
            yield "", f"{event_class.name} is {', '.join(event_class.types)} where {tests}"


def _amount(component: Component) -> str:
    if component.negated:
        return "an exception, in no result"
    return "one event or more, each the next one" if component.kind is ComponentKind.KLEENE else "one event"


# Conditions ----------------------------------------------------------------------------------------------------------


def _conditions(node: Detection, query: BoundEqlQuery) -> Iterator[Row]:
    """What is tested at an operator, under its sign in NEXT."""
    clock = query.schema.clock
    match node:
        case DetectionFilter(_, condition):
            yield from _listed("filter", condition, clock)
        case NextDetection() | Iteration():
            yield from _listed("φ, skips others", node.first_of, clock)
            yield from _listed("θ, or it is over", node.condition, clock)
            for expiry in node.expiry:
                yield "expires", expiry_text(expiry, query)
            if isinstance(node, NextDetection):
                for failing in node.failing:
                    yield f"∅ {exception_named(failing.exception, query)}", failing_text(failing, clock)
            for number in node.failing if isinstance(node, Iteration) else ():
                yield f"∅ {exception_named(number, query)}", "ends all runs"
        case Unless():
            name = exception_named(node.number, query)
            yield from _listed(f"λ of {name}", node.condition, clock)
            yield f"∅ {name}", _excepts(node)


def _listed(name: str, clauses: Iterable[Clause], clock: Clock) -> Iterator[Row]:
    for number, text in enumerate(print_conjuncts(clauses, clock)):
        yield ("" if number else name), text


def _excepts(node: Unless) -> str:
    if node.deferred:
        return "is compared with what was bound before: it ends what waits, not what has been detected"
    if node.condition:
        return "ends detections in whose time it occurs with λ; what waits for them goes on waiting"
    return "ends detections in whose time it occurs, and what waits for them"


def failing_text(failing: Failing, clock: Clock) -> str:
    """What a failed detection does where runs wait."""
    tested = " AND ".join(print_conjuncts(failing.condition, clock))
    if failing.kills:
        return f"ends what waits with {tested}" if tested else "ends what waits"
    return f"goes on with what waits, with {tested}" if tested else "goes on"


def exception_named(number: int, query: BoundEqlQuery) -> str:
    """The aliases of an exception."""
    for node in walk_detections(query.root):
        if isinstance(node, Unless) and node.number == number:
            return ", ".join(aliases(node.exception))
    raise AssertionError("every failed detection has an exception")


def expiry_text(expiry: Expiry, query: BoundEqlQuery) -> str:
    """How long a run waits, and the condition that says so."""
    clock = query.schema.clock
    begun = " and ".join(expiry.aliases)
    first = begun if len(expiry.aliases) == 1 else f"the first of {begun}"
    text = f"{print_steps(expiry.most, clock)} after {first} began"
    known = [each for each in occurrences(clauses_of_detection(query.root)) if set(expiry.aliases) <= set(each.names)]
    # With `@` a run waits longer than the condition says.
    source = next((each for each in known if each.steps == expiry.most), None) or next(iter(known), None)
    return text if source is None else f"{text}: {source.text(clock)}"


def print_detection(node: Detection, clock: Clock) -> str:
    """A node as EQL writes it, with times as the clock has them."""
    return said(node, lambda steps: print_steps(steps, clock))
