"""What happens to positive matches: negation, NON_OVERLAP, timeouts, RETURN."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise, product
from typing import Any

from kleene.lang.tree import SelectionStrategy
from kleene.pattern.clock import LATEST
from kleene.pattern.expressions import Value, Whole
from kleene.pattern.gaps import negations
from kleene.pattern.nodes import Component, ComponentKind, Pattern
from kleene.pattern.query import BoundQuery
from kleene.reference.assignments import lies_between, neighbours
from kleene.reference.automaton import Run, within_window
from kleene.reference.matches import Match
from kleene.reference.timeline import ReferenceTimeline, in_class
from kleene.reference.values import Environment, Special, evaluate, holds


def survives_negation(query: BoundQuery, pattern: Pattern, match: Match, timeline: ReferenceTimeline) -> bool:
    """Whether nothing that is negated, and satisfies P₋, lies between its neighbours (SASE §2.2.2, §3.3)."""
    return not any(_is_forbidden(query, pattern, component, match, timeline) for component, _ in negations(pattern))


def _is_forbidden(
    query: BoundQuery, pattern: Pattern, component: Component, match: Match, timeline: ReferenceTimeline
) -> bool:
    """Whether an event of a negated class, or a negated pair one after the other, lies where none may."""
    selected = dict(match.selected)
    before, after = neighbours(pattern, component, selected)
    between = [e for e in timeline.events if lies_between(query, timeline, e, before, after, selected)]
    conditions = query.conditions.negative.get(component.variable, ())
    for events in product(*([e for e in between if in_class(timeline, c, e)] for c in component.forbidden)):
        named = {each.variable: (event,) for each, event in zip(component.forbidden, events, strict=True)}
        environment = Environment(timeline, {**selected, **named})
        if all(timeline.before(x, y) for x, y in pairwise(events)) and all(holds(c, environment) for c in conditions):
            return True
    return False


def in_order(matches: Iterable[Match], timeline: ReferenceTimeline) -> list[Match]:
    """By end, then by start from the latest, then by events in pattern order."""
    return sorted(matches, key=lambda match: (match.end, -match.start, match.order(timeline)))


def non_overlapping(query: BoundQuery, matches: list[Match], timeline: ReferenceTimeline) -> list[Match]:
    """One match at a time per partition (SASE+ §2): the next one starts after the previous one has ended."""
    whole_stream = query.strategy is SelectionStrategy.STRICT_CONTIGUITY
    previous: dict[Any, Match] = {}
    selected = []
    for match in in_order(matches, timeline):
        key = None if whole_stream else match.key(timeline)
        if key in previous and not timeline.all_before(previous[key].events, match.events):
            continue
        previous[key] = match
        selected.append(match)
    return selected


def timeouts(
    query: BoundQuery,
    runs: Iterable[tuple[tuple[str, ...], Run]],
    matches: Iterable[Match],
    timeline: ReferenceTimeline,
) -> list[Match]:
    """One row per run start that never became a match, with its longest prefix."""
    matched = {_start(match) for match in matches}
    longest: dict[Any, Match] = {}
    for names, run in runs:
        prefix = Match(query.positives, dict(zip(names, run.selected, strict=False)))
        start = _start(prefix)
        in_window = within_window(query, timeline, prefix.first(timeline), prefix.last(timeline))
        if start in matched or not in_window:
            continue
        known = longest.get(start)
        if known is None or _length_first(prefix, timeline) < _length_first(known, timeline):
            longest[start] = prefix
    return in_order(longest.values(), timeline)


def closed_at(query: BoundQuery, prefix: Match, timeline: ReferenceTimeline, *, lasting: bool) -> int | None:
    """When the window of a run closed: at the end of its length or, where it counts events, with the first one outside.

    None when no event closed it: the input ended before. Over events that last, one that began in such a window may
    still end, so none ever closes it.
    """
    window, first = query.window, prefix.first(timeline)
    assert window is not None, "TIMEOUTS needs a window"
    if not window.events:
        return min(first.start + window.size, LATEST)
    key = timeline.key(first)
    outside = (
        event.end
        for event in timeline.events
        if timeline.key(event) == key and not window.holds(timeline.position(event) - timeline.position(first))
    )
    return None if lasting else min(outside, default=None)


def _start(match: Match) -> tuple[str, int]:
    """Where a run began: its first variable and event."""
    for component in match.components:
        events = match.selected.get(component.variable, ())
        if events:
            return component.variable, events[0].index
    raise AssertionError("a match has events")


def _length_first(match: Match, timeline: ReferenceTimeline) -> tuple[int, Any]:
    return -sum(1 for events in match.selected.values() if events), match.order(timeline)


def returned(query: BoundQuery, match: Match, timeline: ReferenceTimeline) -> dict[str, Any]:
    """The RETURN columns of a match; what has no value is NULL."""
    assert query.returns is not None
    environment = Environment(timeline, match.selected)
    return {column.name: _returned_value(column.value, match, environment) for column in query.returns}


def _returned_value(value: Value, match: Match, environment: Environment) -> Any:
    if isinstance(value, Whole):
        events = match.selected.get(value.variable, ())
        component = next(c for c in match.components if c.variable == value.variable)
        return events if component.kind is not ComponentKind.SINGLE else events[0] if events else None
    result = evaluate(value, environment)
    return None if isinstance(result, Special) else result
