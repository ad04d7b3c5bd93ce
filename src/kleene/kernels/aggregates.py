"""Aggregates that grow event by event (SASE+ §3.2: a run computes them as it takes events).

A group is a row of `Groups`: one value and one state for each aggregate. Without events an aggregate is missing and a
count is 0; without values it is NULL; once undefined it stays so. Reals are added in the order in which events come.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from kleene.kernels import arithmetic
from kleene.kernels.expression import Events, Groups, Ints, Texts
from kleene.kernels.jit import compiled, inlined
from kleene.kernels.opcodes import (
    AGREED,
    COUNT,
    COUNT_EVENTS,
    FIRST,
    MAX,
    MIN,
    MISSING,
    NULL,
    REALS,
    STRINGS,
    SUM,
    UNDEFINED,
    VALUE,
)


class Aggregation(NamedTuple):
    """What each slot of a group holds."""

    functions: Ints  # [slot]: what it does with one more event
    kinds: Ints  #     [slot]: INTS, REALS or STRINGS
    columns: Ints  #   [slot]: its column
    places: Ints  #    [slot]: the place of that column among the integers, or among the reals


@inlined
def clear(aggregation: Aggregation, groups: Groups, group: int) -> None:
    """A group without events."""
    for slot in range(aggregation.functions.size):
        groups.states[group, slot] = VALUE if aggregation.functions[slot] <= COUNT else MISSING
        groups.ints[group, slot] = 0
        groups.reals[group, slot] = 0.0


@inlined
def copy(groups: Groups, source: int, target: int) -> None:
    """Another group with the same events."""
    for slot in range(groups.states.shape[1]):
        groups.states[target, slot] = groups.states[source, slot]
        groups.ints[target, slot] = groups.ints[source, slot]
        groups.reals[target, slot] = groups.reals[source, slot]


@inlined
def accumulate(
    aggregation: Aggregation, slots: Ints, row: int, events: Events, texts: Texts, groups: Groups, group: int
) -> None:
    """One more event for the variable whose aggregates are in `slots`."""
    for slot in slots:
        function = aggregation.functions[slot]
        if function == COUNT_EVENTS:
            groups.ints[group, slot] += 1
            continue
        found = events.states[aggregation.columns[slot], row]
        place = aggregation.places[slot]
        if function == COUNT:
            groups.ints[group, slot] += 1 if found == VALUE else 0
        elif found != VALUE:
            groups.states[group, slot] = _without_value(function, found, groups.states[group, slot])
        elif aggregation.kinds[slot] == REALS:
            _add_real(function, events.reals[place, row], groups, group, slot)
        else:
            value = events.ints[place, row]
            if aggregation.kinds[slot] == STRINGS and (function == MIN or function == MAX):
                _add_string(function, value, texts.ranks, groups, group, slot)
            else:
                _add_int(function, value, groups, group, slot)


@inlined
def _without_value(function: int, found: int, state: int) -> int:
    """The state after an event without a value. No event agrees with NULL, and any agrees with a missing attribute."""
    if function == AGREED:
        return state if found == MISSING else UNDEFINED
    return NULL if state == MISSING else state


@inlined
def _add_int(function: int, value: int, groups: Groups, group: int, slot: int) -> None:
    state = groups.states[group, slot]
    if state == VALUE:
        held = groups.ints[group, slot]
        if function == SUM:
            fits, value = arithmetic.add(held, value)
            state = VALUE if fits else UNDEFINED
        elif function == AGREED:
            state = VALUE if held == value else UNDEFINED
        elif function == FIRST or (function == MIN and held < value) or (function == MAX and held > value):
            return
    elif state != UNDEFINED:
        state = VALUE
    groups.ints[group, slot] = value
    groups.states[group, slot] = state


@inlined
def _add_string(function: int, value: int, ranks: Ints, groups: Groups, group: int, slot: int) -> None:
    """Of two strings, the one that is earlier or later in the order of all."""
    if groups.states[group, slot] == VALUE:
        order = arithmetic.compare(ranks[groups.ints[group, slot]], ranks[value])
        if (function == MIN and order < 0) or (function == MAX and order > 0):
            return
    groups.ints[group, slot] = value
    groups.states[group, slot] = VALUE


@inlined
def _add_real(function: int, value: float, groups: Groups, group: int, slot: int) -> None:
    """A sum stays finite, and NaN has no place in an order."""
    state = groups.states[group, slot]
    if state == UNDEFINED:
        return
    held = groups.reals[group, slot]
    if function == SUM:
        if state == VALUE:
            value = held + value
        state = VALUE if math.isfinite(value) else UNDEFINED
    elif function == MIN or function == MAX:
        if state == VALUE and ((function == MIN and held < value) or (function == MAX and held > value)):
            return
        state = UNDEFINED if math.isnan(value) else VALUE
    elif function == AGREED:
        state = UNDEFINED if state == VALUE and held != value else VALUE
    elif function == FIRST and state == VALUE:
        return
    else:
        state = VALUE
    groups.reals[group, slot] = value
    groups.states[group, slot] = state


@compiled
def accumulate_rows(
    aggregation: Aggregation, slots: Ints, rows: Ints, events: Events, texts: Texts, groups: Groups, group: int
) -> None:
    """A group of these events, added in this order."""
    clear(aggregation, groups, group)
    for row in rows:
        accumulate(aggregation, slots, row, events, texts, groups, group)
