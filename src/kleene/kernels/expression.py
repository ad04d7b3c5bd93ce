"""The expression machine: one evaluator of postfix programs for the conditions of all queries.

A program is a conjunction of clauses, a clause a disjunction of literals. A literal that is true jumps to the next
clause; after the last one stands FAIL. What NULL, missing and undefined mean stands on the semantics page §2.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kleene.kernels import arithmetic
from kleene.kernels import opcodes as op
from kleene.kernels.jit import compiled, inlined

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]
Bytes = NDArray[np.uint8]


class Code(NamedTuple):
    """A program whose strings are numbers."""

    words: Ints  # [word]: op.WIDTH words an instruction
    ints: Ints  #  [place]: constants; codes of strings and numbers of string tests among them
    reals: Reals  # [place]: constants


class EventColumns(NamedTuple):
    """The columns that programs read."""

    ints: Ints  #    [place, row]: integers, booleans, codes of strings, steps of times and durations
    reals: Reals  #  [place, row]
    states: Bytes  # [column, row]: VALUE, NULL or MISSING


class Texts(NamedTuple):
    """What programs know of strings besides their codes."""

    ranks: Ints  #  [code]: its place in the order of all strings; empty when no program asks
    tests: Bytes  # [test, code]: whether the string passes


class Groups(NamedTuple):
    """Aggregates: the value of each, and its state."""

    ints: Ints  #    [group, slot]
    reals: Reals  #  [group, slot]
    states: Bytes  # [group, slot]


class Stack(NamedTuple):
    """Room to compute in, as deep as the deepest program needs."""

    ints: Ints
    reals: Reals
    states: Bytes


def room(depth: int) -> Stack:
    return Stack(np.zeros(depth, np.int64), np.zeros(depth, np.float64), np.zeros(depth, np.uint8))


@inlined
def holds(
    program: Code,
    events: EventColumns,
    texts: Texts,
    bindings: Ints,
    binding: int,
    groups: Groups,
    group: int,
    stack: Stack,
) -> bool:
    """Whether all clauses hold.

    bindings   [binding, slot]: the row of the event that an identifier stands for; negative when it is absent
    """
    words = program.words
    ints, reals, states = stack.ints, stack.reals, stack.states
    at = 0
    top = -1
    while at < words.size:
        operation, first, second, third = words[at], words[at + 1], words[at + 2], words[at + 3]
        at += op.WIDTH
        if operation == op.LOAD_INT:
            top += 1
            row = bindings[binding, first]
            if row < 0:
                states[top] = op.MISSING
            else:
                states[top] = events.states[third, row]
                ints[top] = events.ints[second, row]
        elif operation == op.LOAD_REAL:
            top += 1
            row = bindings[binding, first]
            if row < 0:
                states[top] = op.MISSING
            else:
                states[top] = events.states[third, row]
                reals[top] = events.reals[second, row]
        elif operation == op.LOAD_STATE:
            top += 1
            row = bindings[binding, first]
            states[top] = op.MISSING if row < 0 else events.states[third, row]
        elif operation == op.GROUP_INT:
            top += 1
            states[top] = groups.states[group, first]
            ints[top] = groups.ints[group, first]
        elif operation == op.GROUP_REAL:
            top += 1
            states[top] = groups.states[group, first]
            reals[top] = groups.reals[group, first]
        elif operation == op.PUSH_INT:
            top += 1
            states[top] = op.VALUE
            ints[top] = program.ints[first]
        elif operation == op.PUSH_REAL:
            top += 1
            states[top] = op.VALUE
            reals[top] = program.reals[first]
        elif operation == op.PUSH_NULL:
            top += 1
            states[top] = op.NULL
        elif operation == op.TO_REAL:
            if states[top] == op.VALUE:
                reals[top] = float(ints[top])
        elif operation == op.TO_RANK:
            if states[top] == op.VALUE:
                ints[top] = texts.ranks[ints[top]]
        elif operation == op.ADD_REAL:
            top -= 1
            _real_on_top(op.ADD_REAL, stack, top)
        elif operation == op.SUBTRACT_REAL:
            top -= 1
            _real_on_top(op.SUBTRACT_REAL, stack, top)
        elif operation == op.MULTIPLY_REAL:
            top -= 1
            _real_on_top(op.MULTIPLY_REAL, stack, top)
        elif operation == op.DIVIDE_REAL:
            top -= 1
            _real_on_top(op.DIVIDE_REAL, stack, top)
        elif operation == op.MODULO_REAL:
            top -= 1
            _real_on_top(op.MODULO_REAL, stack, top)
        elif operation == op.ADD_INT:
            top -= 1
            _int_on_top(op.ADD_INT, stack, top, first, second)
        elif operation == op.SUBTRACT_INT:
            top -= 1
            _int_on_top(op.SUBTRACT_INT, stack, top, first, second)
        elif operation == op.MULTIPLY_INT:
            top -= 1
            _int_on_top(op.MULTIPLY_INT, stack, top, first, second)
        elif operation == op.MODULO_INT:
            top -= 1
            _int_on_top(op.MODULO_INT, stack, top, first, second)
        elif operation == op.ADD_TIME:
            top -= 1
            _int_on_top(op.ADD_TIME, stack, top, first, second)
        elif operation == op.SUBTRACT_TIME:
            top -= 1
            _int_on_top(op.SUBTRACT_TIME, stack, top, first, second)
        elif operation == op.COMPARE_INT:
            top -= 2
            order = arithmetic.compare(ints[top + 1], ints[top + 2])
            if _true_on_top(accepts(second, order), states, top + 1):
                at = first
        elif operation == op.COMPARE_REAL:
            top -= 2
            if _true_on_top(compare_reals(second, reals[top + 1], reals[top + 2]), states, top + 1):
                at = first
        elif operation == op.COMPARE_INT_REAL:
            top -= 2
            if _true_on_top(compare_mixed(second, ints[top + 1], reals[top + 2]), states, top + 1):
                at = first
        elif operation == op.COMPARE_TIME:
            top -= 2
            if _true_on_top(compare_times(second, ints[top + 1], ints[top + 2], third), states, top + 1):
                at = first
        elif operation == op.IS_NULL:
            if is_null(states[top], second):
                at = first
            top -= 1
        elif operation == op.TEST_STRING:
            truth = states[top] == op.MISSING
            if states[top] == op.VALUE:
                truth = texts.tests[program.ints[third], ints[top]] != second
            if truth:
                at = first
            top -= 1
        elif operation == op.AMONG_INTS:
            truth = states[top] == op.MISSING
            if states[top] == op.VALUE:
                truth = is_among(program.ints, third, ints[top]) != (second == 1)
            if truth:
                at = first
            top -= 1
        else:
            return False
    return True


@compiled
def holds_each(
    program: Code, events: EventColumns, texts: Texts, bindings: Ints, groups: Groups, stack: Stack, out: Any
) -> None:
    """Whether all clauses hold, for each binding with the group of the same number."""
    for binding in range(bindings.shape[0]):
        out[binding] = holds(program, events, texts, bindings, binding, groups, binding, stack)


@inlined
def _int_on_top(operation: int, stack: Stack, top: int, first: int, second: int) -> None:
    """Two values become one."""
    state = max(stack.states[top], stack.states[top + 1])
    if state == op.VALUE:
        stack.ints[top], state = compute_int(operation, stack.ints[top], stack.ints[top + 1], first, second)
    stack.states[top] = state


@inlined
def _real_on_top(operation: int, stack: Stack, top: int) -> None:
    """Two values become one."""
    state = max(stack.states[top], stack.states[top + 1])
    if state == op.VALUE:
        stack.reals[top], state = compute_real(operation, stack.reals[top], stack.reals[top + 1])
    stack.states[top] = state


@inlined
def _true_on_top(answer: bool, states: Bytes, top: int) -> bool:
    """What a comparison that would answer so comes to: missing makes it true, undefined and NULL do not."""
    state = max(states[top], states[top + 1])
    return answer if state == op.VALUE else state == op.MISSING


# One operation on values ---------------------------------------------------------------------------------------------


@inlined
def compute_int(operation: int, left: int, right: int, left_step: int, right_step: int) -> tuple[int, int]:
    """The result and its state."""
    if operation == op.ADD_INT:
        fits, result = arithmetic.add(left, right)
    elif operation == op.SUBTRACT_INT:
        fits, result = arithmetic.subtract(left, right)
    elif operation == op.MULTIPLY_INT:
        fits, result = arithmetic.multiply(left, right)
    elif operation == op.ADD_TIME:
        fits, result = arithmetic.add_times(left, left_step, right, right_step)
    elif operation == op.SUBTRACT_TIME:
        fits, result = arithmetic.subtract_times(left, left_step, right, right_step)
    else:
        fits, result = arithmetic.modulo(left, right)
    return result, op.VALUE if fits else op.UNDEFINED


@inlined
def compute_real(operation: int, left: float, right: float) -> tuple[float, int]:
    """The result and its state; division by zero is infinite or NaN here."""
    if operation == op.ADD_REAL:
        result = left + right
    elif operation == op.SUBTRACT_REAL:
        result = left - right
    elif operation == op.MULTIPLY_REAL:
        result = left * right
    elif operation == op.DIVIDE_REAL:
        result = left / right
    else:
        result = np.fmod(left, right)
    return result, op.VALUE if math.isfinite(result) else op.UNDEFINED


@inlined
def accepts(comparison: int, order: int) -> bool:
    """Whether -1, 0 or 1 is among the outcomes that a comparison accepts."""
    return (comparison >> (order + 1)) & 1 == 1


@inlined
def compare_reals(comparison: int, left: float, right: float) -> bool:
    """NaN makes any comparison false."""
    order = arithmetic.compare_real(left, right)
    return accepts(comparison, order) and not math.isnan(left) and not math.isnan(right)


@inlined
def compare_mixed(comparison: int, left: int, right: float) -> bool:
    """NaN makes any comparison false."""
    return not math.isnan(right) and accepts(comparison, arithmetic.compare_mixed(left, right))


@inlined
def compare_times(comparison: int, left: int, right: int, ratio: int) -> bool:
    """A left step is as long as `ratio` right ones; where it is negative, the other way round."""
    if ratio > 0:
        return accepts(comparison, arithmetic.compare_steps(left, right, ratio))
    return accepts(comparison, -arithmetic.compare_steps(right, left, -ratio))


@inlined
def is_among(ints: Ints, place: int, value: int) -> bool:
    """Whether the value is one of a sorted list, whose length stands before it at this place."""
    low, high = place + 1, place + 1 + ints[place]
    end = high
    while low < high:
        middle = (low + high) >> 1
        if ints[middle] < value:
            low = middle + 1
        else:
            high = middle
    return bool(low < end and ints[low] == value)


@inlined
def is_null(state: int, negated: int) -> bool:
    return state != op.UNDEFINED and (state == op.VALUE) == (negated == 1)
