"""Aggregates that grow event by event (SASE+ §3.2: a run computes them as it takes events).

A group is a row of `Groups`: one value and one state for each aggregate. Without events an aggregate is missing and a
count is 0; without values it is NULL; once undefined it stays so. Reals are added in the order in which events come.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from kleene.kernels import arithmetic
from kleene.kernels import opcodes as op
from kleene.kernels.expression import EventColumns, Groups, Ints, Texts
from kleene.kernels.jit import compiled, inlined


class Aggregation(NamedTuple):
    """What each slot of a group holds."""

    functions: Ints  # [slot]: what it does with one more event
    kinds: Ints  #     [slot]: INTS, REALS or STRINGS
    columns: Ints  #   [slot]: its column
    places: Ints  #    [slot]: the place of that column among the integers, or among the reals


@inlined
def clear(aggregation: Aggregation, slots: Ints, groups: Groups, group: int) -> None:
    """Reset the aggregates in `slots`: their variable has no event."""
    for slot in slots:
        groups.states[group, slot] = op.VALUE if aggregation.functions[slot] <= op.COUNT else op.MISSING
        groups.ints[group, slot] = 0
        groups.reals[group, slot] = 0.0


@inlined
def copy(groups: Groups, source: int, target: int) -> None:
    """Copy a group: the target has the same events."""
    for slot in range(groups.states.shape[1]):
        groups.states[target, slot] = groups.states[source, slot]
        groups.ints[target, slot] = groups.ints[source, slot]
        groups.reals[target, slot] = groups.reals[source, slot]


@inlined
def accumulate(
    aggregation: Aggregation, slots: Ints, row: int, events: EventColumns, texts: Texts, groups: Groups, group: int
) -> None:
    """Add one event to the aggregates of its variable, which are in `slots`."""
    for slot in slots:
        function = aggregation.functions[slot]
        if function == op.COUNT_EVENTS:
            groups.ints[group, slot] += 1
            continue
        event_state = events.states[aggregation.columns[slot], row]
        place = aggregation.places[slot]
        if function == op.COUNT:
            groups.ints[group, slot] += 1 if event_state == op.VALUE else 0
        elif function > op.NTH:
            _count_to(aggregation, slot, row, events, groups, group)
        elif event_state != op.VALUE:
            groups.states[group, slot] = _without_value(function, event_state, groups.states[group, slot])
        elif aggregation.kinds[slot] == op.REALS:
            _add_real(function, events.reals[place, row], groups, group, slot)
        else:
            value = events.ints[place, row]
            if aggregation.kinds[slot] == op.STRINGS and function in (op.MIN, op.MAX):
                _add_string(function, value, texts.ranks, groups, group, slot)
            else:
                _add_int(function, value, groups, group, slot)


@inlined
def _count_to(aggregation: Aggregation, slot: int, row: int, events: EventColumns, groups: Groups, group: int) -> None:
    """Keep the value of one event by its number. The array that holds no values of this kind counts events up to it.

    Counting stops there, so that runs which differ only in what came later have the same future.
    """
    position, kind = aggregation.functions[slot] - op.NTH, aggregation.kinds[slot]
    event_state, place = events.states[aggregation.columns[slot], row], aggregation.places[slot]
    number = groups.ints[group, slot] if kind == op.REALS else np.int64(groups.reals[group, slot])
    if number == position:
        return
    number += 1
    if number < position:
        groups.states[group, slot] = op.NULL
    else:
        groups.states[group, slot] = event_state
        if event_state == op.VALUE and kind == op.REALS:
            groups.reals[group, slot] = events.reals[place, row]
        elif event_state == op.VALUE:
            groups.ints[group, slot] = events.ints[place, row]
    if kind == op.REALS:
        groups.ints[group, slot] = number
    else:
        groups.reals[group, slot] = number


@inlined
def _without_value(function: int, event_state: int, state: int) -> int:
    """The state after an event without a value. No event agrees with NULL, and any agrees with a missing attribute."""
    if function == op.AGREED:
        return state if event_state == op.MISSING else op.UNDEFINED
    return op.NULL if state == op.MISSING else state


@inlined
def _add_int(function: int, value: int, groups: Groups, group: int, slot: int) -> None:
    state = groups.states[group, slot]
    if state == op.VALUE:
        current = groups.ints[group, slot]
        if function == op.SUM:
            fits, value = arithmetic.add(current, value)
            state = op.VALUE if fits else op.UNDEFINED
        elif function == op.AGREED:
            state = op.VALUE if current == value else op.UNDEFINED
        elif (
            function == op.FIRST or (function == op.MIN and current < value) or (function == op.MAX and current > value)
        ):
            return
    elif state != op.UNDEFINED:
        state = op.VALUE
    groups.ints[group, slot] = value
    groups.states[group, slot] = state


@inlined
def _add_string(function: int, value: int, ranks: Ints, groups: Groups, group: int, slot: int) -> None:
    """Of two strings, the one that is earlier or later in the order of all."""
    if groups.states[group, slot] == op.VALUE:
        order = arithmetic.compare(ranks[groups.ints[group, slot]], ranks[value])
        if (function == op.MIN and order < 0) or (function == op.MAX and order > 0):
            return
    groups.ints[group, slot] = value
    groups.states[group, slot] = op.VALUE


@inlined
def _add_real(function: int, value: float, groups: Groups, group: int, slot: int) -> None:
    """A sum stays finite, and NaN has no place in an order."""
    state = groups.states[group, slot]
    if state == op.UNDEFINED:
        return
    current = groups.reals[group, slot]
    if function == op.SUM:
        if state == op.VALUE:
            value = current + value
        state = op.VALUE if math.isfinite(value) else op.UNDEFINED
    elif function in (op.MIN, op.MAX):
        if state == op.VALUE and ((function == op.MIN and current < value) or (function == op.MAX and current > value)):
            return
        state = op.UNDEFINED if math.isnan(value) else op.VALUE
    elif function == op.AGREED:
        state = op.UNDEFINED if state == op.VALUE and current != value else op.VALUE
    elif function == op.FIRST and state == op.VALUE:
        return
    else:
        state = op.VALUE
    groups.reals[group, slot] = value
    groups.states[group, slot] = state


@compiled
def accumulate_rows(
    aggregation: Aggregation, slots: Ints, rows: Ints, events: EventColumns, texts: Texts, groups: Groups, group: int
) -> None:
    """Aggregate these events, in this order: the aggregates of their variable are in `slots`."""
    clear(aggregation, slots, groups, group)
    for row in rows:
        accumulate(aggregation, slots, row, events, texts, groups, group)
