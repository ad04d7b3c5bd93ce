"""`brute_force_match`: all assignments of an alternative, the definition on each, and the output modes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, combinations
from typing import Any

from kleene.lang.tree import OutputMode, SelectionStrategy
from kleene.testing.brute.closures import BruteGroup
from kleene.testing.brute.definition import Candidate, in_order
from kleene.testing.brute.pattern import BrutePlace, Shape, alternatives, places
from kleene.testing.brute.question import Question, ask
from kleene.testing.brute.stream import BruteEvent, Row, TypeNames, all_before, read_stream
from kleene.testing.brute.values import Assignment

# Each positive variable in pattern order with the indices of its rows, or None where it is absent.
Match = tuple[tuple[str, tuple[int, ...] | None], ...]


def brute_force_match(
    events: Sequence[Row],
    query_text: str,
    *,
    types: TypeNames | None = None,
    tie_breaker: str | None = None,
    start: str | None = None,
    params: Mapping[str, Any] | None = None,
) -> set[Match]:
    """All matches of a query over a handful of rows, found by testing every assignment.

    >>> rows = [{"type": "A", "ts": 1}, {"type": "B", "ts": 2}]
    >>> brute_force_match(rows, "PATTERN SEQ(A a, B b) WITHIN 5")
    {(('a', (0,)), ('b', (1,)))}
    """
    question = ask(query_text, read_stream(events, types, tie_breaker, start), params)
    return {_named(question, chosen) for chosen in _results(question)}


def brute_force_counts(
    events: Sequence[Row],
    query_text: str,
    *,
    types: TypeNames | None = None,
    tie_breaker: str | None = None,
    start: str | None = None,
    params: Mapping[str, Any] | None = None,
) -> dict[int, int]:
    """OUTPUT COMPRESSED (§3 Output): the number of matches by completing event, the last one that a match selected."""
    question = ask(query_text, read_stream(events, types, tie_breaker, start), params)
    completing = {_named(question, chosen): _events(question, chosen)[-1].index for chosen in _results(question)}
    return dict(Counter(completing.values()))


def _named(question: Question, chosen: Assignment) -> Match:
    bound = ((place.name, tuple(event.index for event in chosen.get(place.name, ()))) for place in question.positives)
    return tuple((name, indices or None) for name, indices in bound)


def _events(question: Question, chosen: Assignment) -> tuple[BruteEvent, ...]:
    return tuple(event for place in question.positives for event in chosen.get(place.name, ()))


def _results(question: Question) -> list[Assignment]:
    matches = [
        chosen
        for shape in alternatives(question.shape)
        if shape is not None
        for chosen in assignments(question, shape)
        if any(chosen.values()) and Candidate(question, shape, chosen).is_match()
    ]
    return _non_overlapping(question, matches) if question.output is OutputMode.NON_OVERLAP else matches


# Assignments


def assignments(question: Question, shape: Shape) -> Iterator[Assignment]:
    """Every way to put distinct events of the right classes at the places, closures with groups that they may have.

    The rest of the definition is not tested.
    """
    in_order_of_choice = sorted(places(shape, negated=False), key=lambda place: place.is_closure)
    yield from _extensions(question, shape, tuple(in_order_of_choice), {})


def _extensions(
    question: Question, shape: Shape, remaining: tuple[BrutePlace, ...], chosen: dict[str, tuple[BruteEvent, ...]]
) -> Iterator[Assignment]:
    """An assignment that already breaks the order can be completed by none, so its completions are left out."""
    if not remaining:
        yield chosen
        return
    place, *rest = remaining
    used = {event for events in chosen.values() for event in events}
    able = [e for e in question.stream.events if e not in used and question.admits(place, e)]
    for events in _fillings(place, able):
        extended = {**chosen, place.name: events}
        if place.is_closure and not BruteGroup(question, shape, place, extended).is_right():
            continue
        if in_order(shape, extended):
            yield from _extensions(question, shape, tuple(rest), extended)


def _fillings(place: BrutePlace, able: Sequence[BruteEvent]) -> Iterator[tuple[BruteEvent, ...]]:
    """One event, or every list that the repetition allows; an absent component is another alternative."""
    if not (place.is_list or place.is_closure):
        return combinations(able, 1)
    low = place.low if place.is_closure else max(1, place.low)
    high = len(able) if place.high is None else min(place.high, len(able))
    return chain.from_iterable(combinations(able, size) for size in range(low, high + 1))


# Output


def _non_overlapping(question: Question, matches: Sequence[Assignment]) -> list[Assignment]:
    """OUTPUT NON_OVERLAP (§3 Output): in order, each that starts after the one chosen last in its partition."""
    chosen: dict[Any, Assignment] = {}
    result = []
    for match in sorted(matches, key=lambda match: _choosing_order(question, match)):
        key = _territory(question, match)
        if key not in chosen or all_before(_events(question, chosen[key]), _events(question, match)):
            chosen[key] = match
            result.append(match)
    return result


def _territory(question: Question, match: Assignment) -> Any:
    """The partition; under strict contiguity the whole stream."""
    if question.strategy is SelectionStrategy.STRICT_CONTIGUITY:
        return None
    return question.stream.key(_events(question, match)[0], question.partition)


def _choosing_order(question: Question, match: Assignment) -> tuple[Any, ...]:
    """End ascending, start descending, then events in pattern order canonically, shorter list first."""
    events = _events(question, match)
    rank = {event: i for i, event in enumerate(question.stream.events)}
    lists = tuple(tuple(rank[event] for event in match.get(place.name, ())) for place in question.positives)
    return max(event.end for event in events), -min(event.start for event in events), lists
