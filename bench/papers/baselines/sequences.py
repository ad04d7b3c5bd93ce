"""What all algorithms for sequences of single events share (SASE §3.1): events, predicates, and what follows SSC.

Times strictly increase, a type stands at one place of the sequence, and the values of a key are 0, 1, 2, …
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bench.papers.baselines.compiling import step

Ints = npt.NDArray[np.int64]

# Places of events that are not part of the sequence.
IRRELEVANT, NEGATED = -1, -2
# Operators of predicates: the values at both places are equal, the left is less, the left is not 0.
EQUAL, LESS, HOLDS = range(3)
# How negated events are looked for: not at all, from the newest on, by the index.
NO_NEGATION, SCANNED, INDEXED = range(3)
# What is counted: events put on stacks, constructions begun, events that they looked at, sequences that they created,
# what is left of those after selection, window and negation, negated events looked at, and steps of intersections.
PUSHED, BEGUN, VISITED, CREATED, RESULTS, PROBED, INTERSECTED, COUNTERS = range(8)
ROOM = 1 << 16


class Events(NamedTuple):
    place: Ints  #   [event]: where its type stands in the sequence, or IRRELEVANT or NEGATED
    time: Ints  #    [event]
    columns: Ints  # [column, event]


class Predicates(NamedTuple):
    """A conjunction; what names one place has it as both."""

    left: Ints  #     [predicate]: the earlier place
    right: Ints  #    [predicate]: the later place
    column: Ints  #   [predicate]
    operator: Ints  # [predicate]


class Negation(NamedTuple):
    """No negated event with the same value of a column lies between the events of a place and of the next."""

    how: int
    place: int
    column: int
    partition: int  #  the length of time that one part of the index covers
    event: Ints  #     [negated event]: in the order of their times
    first_in: Ints  #  [partition]: the first negated event that came in it or later


class Query(NamedTuple):
    length: int
    window: int
    in_scan: bool
    in_construction: bool
    during: Predicates  # tested in construction as soon as both places are bound
    after: Predicates  #  tested by selection
    negation: Negation


class Outputs(NamedTuple):
    sequences: Ints  # [sequence, place]: the last results; further ones overwrite the oldest
    bound: Ints  #     [place]: the sequence under construction
    cursor: Ints  #    [place]: where the search for events of each place stands
    counts: Ints  #    [counter]


def predicates(*each: tuple[int, int, int, int]) -> Predicates:
    """Of (left, right, column, operator)."""
    table = np.array(each, np.int64).reshape(-1, 4)
    return Predicates(*(np.ascontiguousarray(table[:, number]) for number in range(4)))


def equal_throughout(length: int, columns: Sequence[int]) -> list[tuple[int, int, int, int]]:
    """An equivalence test: every event has the value of the next."""
    return [(place, place + 1, column, EQUAL) for column in columns for place in range(length - 1)]


def no_negation() -> Negation:
    return Negation(NO_NEGATION, 0, 0, 1, np.zeros(0, np.int64), np.zeros(0, np.int64))


def negation(events: Events, how: int, place: int, column: int, partition: int) -> Negation:
    """With the partitioned index of §3.3; times begin at 0."""
    event = np.flatnonzero(events.place == NEGATED).astype(np.int64)
    bounds = np.arange(0, int(events.time[-1]) + 2 * partition, partition)
    first_in = np.searchsorted(events.time[event], bounds).astype(np.int64)
    return Negation(how, place, column, partition, event, first_in)


def outputs(length: int) -> Outputs:
    bound, cursor = (np.zeros(length, np.int64) for _ in range(2))
    return Outputs(np.empty((ROOM, length), np.int64), bound, cursor, np.zeros(COUNTERS, np.int64))


@step
def holds(tests: Predicates, number: int, bound: Ints, columns: Ints) -> bool:
    operator, column = tests.operator[number], tests.column[number]
    left = columns[column, bound[tests.left[number]]]
    if operator == HOLDS:
        return bool(left != 0)
    right = columns[column, bound[tests.right[number]]]
    return bool(left == right) if operator == EQUAL else bool(left < right)


@step
def hold_at(tests: Predicates, place: int, bound: Ints, columns: Ints) -> bool:
    """Whether all hold that can be tested once a place is bound, and all after it."""
    for number in range(tests.left.size):
        if tests.left[number] == place and not holds(tests, number, bound, columns):
            return False
    return True


@step
def emit(query: Query, events: Events, out: Outputs) -> None:
    """Hand a created sequence to selection, window and negation, and write it down if it passes (§3.1)."""
    bound = out.bound
    out.counts[CREATED] += 1
    for number in range(query.after.left.size):
        if not holds(query.after, number, bound, events.columns):
            return
    if events.time[bound[query.length - 1]] - events.time[bound[0]] >= query.window:
        return
    if query.negation.how != NO_NEGATION and _is_negated(query.negation, bound, events, out.counts):
        return
    row = out.counts[RESULTS] % out.sequences.shape[0]
    for place in range(query.length):
        out.sequences[row, place] = bound[place]
    out.counts[RESULTS] += 1


@step
def _is_negated(rule: Negation, bound: Ints, events: Events, counts: Ints) -> bool:
    """Whether a negated event lies between two neighbours (§3.3).

    Without the index all that came since the left neighbour are looked at, the newest first; with it only those of the
    partitions that overlap with the interval.
    """
    left, right = bound[rule.place], bound[rule.place + 1]
    value = events.columns[rule.column, left]
    newest = bound[bound.size - 1]
    until = newest if rule.how == SCANNED else right
    number = rule.first_in[events.time[until] // rule.partition + 1] - 1
    while number >= 0 and rule.event[number] > left:
        counts[PROBED] += 1
        event = rule.event[number]
        if event < right and events.columns[rule.column, event] == value:
            return True
        number -= 1
    return False
