"""The expression machine: one evaluator of postfix programs for the conditions of all queries.

A program is a conjunction of clauses, a clause a disjunction of literals. A literal that is true jumps to the next
clause; after the last one stands FAIL. The semantics page §2 defines NULL, missing and undefined.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kleene.kernels import arithmetic
from kleene.kernels import opcodes as op
from kleene.kernels.jit import borrowed, compiled, inlined, step
from kleene.kernels.operations import (
    accepts,
    compare_mixed,
    compare_reals,
    compare_times,
    compute_int,
    compute_real,
    is_among,
    is_null,
)

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
    """Properties of strings, by code."""

    ranks: Ints  #  [code]: its place in the order of all strings; empty when no program reads it
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


class Programs(NamedTuple):
    """Several programs, of which a kernel runs one at a time (`part`)."""

    code: Code  #  all of them, one after the other
    parts: Ints  # [program, 6]: where its words, integers and reals begin and end


class ProgramScope(NamedTuple):
    """What a program reads, and room for it to compute in."""

    events: EventColumns
    texts: Texts
    bindings: Ints  # [binding, slot]: the row of the event that an identifier stands for; negative when it is absent
    groups: Groups
    stack: Stack


class EventTest(NamedTuple):
    """A test of one more event, beside those of a binding."""

    program: Code
    slot: int  # where that event stands in a binding


def room(depth: int) -> Stack:
    return Stack(np.zeros(depth, np.int64), np.zeros(depth, np.float64), np.zeros(depth, np.uint8))


@step
def is_empty(programs: Programs, number: int) -> bool:
    """Whether a program has nothing to test."""
    return bool(programs.parts[number, 0] == programs.parts[number, 1])


@step
def part(programs: Programs, number: int) -> Code:
    at = programs.parts[number]
    code = programs.code
    return Code(code.words[at[0] : at[1]], code.ints[at[2] : at[3]], code.reals[at[4] : at[5]])


@inlined
def holds(program: Code, scope: ProgramScope, binding: int, group: int) -> bool:
    """Whether all clauses hold of a binding, with the aggregates of a group."""
    words, stack = program.words, scope.stack
    at = 0
    top = -1
    while at < words.size:
        operation, first, second, third = words[at], words[at + 1], words[at + 2], words[at + 3]
        at += op.WIDTH
        if operation <= op.LOAD_STATE:
            top += 1
            row = scope.bindings[binding, first]
            if row < 0:
                stack.states[top] = op.MISSING
            else:
                stack.states[top] = scope.events.states[third, row]
                if operation == op.LOAD_INT:
                    stack.ints[top] = scope.events.ints[second, row]
                elif operation == op.LOAD_REAL:
                    stack.reals[top] = scope.events.reals[second, row]
        elif operation <= op.PUSH_NULL:
            top += 1
            _push(operation, first, program, scope.groups, group, stack, top)
        elif operation <= op.SETTLE:
            _convert(operation, scope.texts, stack, top)
        elif operation <= op.ELAPSED:
            top -= 1
            _compute(operation, first, second, stack, top)
        elif operation <= op.COMPARE_TIME:
            top -= 2
            if _compares(operation, second, third, stack, top + 1):
                at = first
        elif operation <= op.AMONG_INTS:
            top -= 1
            if _passes(operation, second, third, program, scope.texts, stack, top + 1):
                at = first
        else:
            return False
    return True


@compiled
def holds_each(program: Code, scope: ProgramScope, out: Any) -> None:
    """Whether all clauses hold, for each binding with the group of the same number."""
    program, scope = borrowed(program), borrowed(scope)
    for binding in range(scope.bindings.shape[0]):
        out[binding] = holds(program, scope, binding, binding)


# Instructions --------------------------------------------------------------------------------------------------------


@step
def _push(operation: int, first: int, program: Code, groups: Groups, group: int, stack: Stack, top: int) -> None:
    """Push an aggregate or a constant."""
    if operation == op.GROUP_INT:
        stack.states[top] = groups.states[group, first]
        stack.ints[top] = groups.ints[group, first]
    elif operation == op.GROUP_REAL:
        stack.states[top] = groups.states[group, first]
        stack.reals[top] = groups.reals[group, first]
    elif operation == op.PUSH_INT:
        stack.states[top] = op.VALUE
        stack.ints[top] = program.ints[first]
    elif operation == op.PUSH_REAL:
        stack.states[top] = op.VALUE
        stack.reals[top] = program.reals[first]
    else:
        stack.states[top] = op.NULL


@step
def _convert(operation: int, texts: Texts, stack: Stack, top: int) -> None:
    if operation == op.SETTLE:
        if stack.states[top] == op.UNDEFINED:
            stack.states[top] = op.NULL
    elif stack.states[top] == op.VALUE:
        if operation == op.TO_REAL:
            stack.reals[top] = float(stack.ints[top])
        else:
            stack.ints[top] = texts.ranks[stack.ints[top]]


@step
def _compute(operation: int, first: int, second: int, stack: Stack, top: int) -> None:
    """Two values become one. Each operation is a constant to the compiler, which leaves out the others."""
    if operation == op.ADD_REAL:
        _real_on_top(op.ADD_REAL, stack, top)
    elif operation == op.SUBTRACT_REAL:
        _real_on_top(op.SUBTRACT_REAL, stack, top)
    elif operation == op.MULTIPLY_REAL:
        _real_on_top(op.MULTIPLY_REAL, stack, top)
    elif operation == op.DIVIDE_REAL:
        _real_on_top(op.DIVIDE_REAL, stack, top)
    elif operation == op.MODULO_REAL:
        _real_on_top(op.MODULO_REAL, stack, top)
    elif operation == op.ADD_INT:
        _int_on_top(op.ADD_INT, stack, top, first, second)
    elif operation == op.SUBTRACT_INT:
        _int_on_top(op.SUBTRACT_INT, stack, top, first, second)
    elif operation == op.MULTIPLY_INT:
        _int_on_top(op.MULTIPLY_INT, stack, top, first, second)
    elif operation == op.MODULO_INT:
        _int_on_top(op.MODULO_INT, stack, top, first, second)
    elif operation == op.ADD_TIME:
        _int_on_top(op.ADD_TIME, stack, top, first, second)
    elif operation == op.SUBTRACT_TIME:
        _int_on_top(op.SUBTRACT_TIME, stack, top, first, second)
    else:
        _int_on_top(op.ELAPSED, stack, top, first, second)


@step
def _compares(operation: int, comparison: int, ratio: int, stack: Stack, top: int) -> bool:
    """Whether a comparison of two values is true: missing makes it so, undefined and NULL do not."""
    ints, reals = stack.ints, stack.reals
    state = max(stack.states[top], stack.states[top + 1])
    if state != op.VALUE:
        return bool(state == op.MISSING)
    if operation == op.COMPARE_INT:
        return accepts(comparison, arithmetic.compare(ints[top], ints[top + 1]))
    if operation == op.COMPARE_REAL:
        return compare_reals(comparison, reals[top], reals[top + 1])
    if operation == op.COMPARE_INT_REAL:
        return compare_mixed(comparison, ints[top], reals[top + 1])
    return compare_times(comparison, ints[top], ints[top + 1], ratio)


@step
def _passes(operation: int, negated: int, place: int, program: Code, texts: Texts, stack: Stack, top: int) -> bool:
    """Whether a test of one value is true."""
    state = stack.states[top]
    if operation == op.IS_NULL:
        return is_null(state, negated)
    if state != op.VALUE:
        return bool(state == op.MISSING)
    if operation == op.TEST_STRING:
        return bool(texts.tests[program.ints[place], stack.ints[top]] != negated)
    return is_among(program.ints, place, stack.ints[top]) != (negated == 1)


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
