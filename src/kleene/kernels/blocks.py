"""The expression machine on single events, a block of them abreast (the vectors of MonetDB/X100).

An instruction is decoded once for a block, and its loop over the rows is one that a processor runs fast. All literals
of a clause are computed; a block is left when no row of it can hold any more.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kleene.kernels import arithmetic
from kleene.kernels import opcodes as op
from kleene.kernels.expression import Bytes, Code, EventColumns, Ints, Reals, Texts
from kleene.kernels.jit import compiled, inlined, step
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

# Rows of a block: what a few values of each need stays in the nearest cache.
BLOCK = 512


class Block(NamedTuple):
    """The values of a block, [level of the stack, row]."""

    ints: Ints
    reals: Reals
    states: Bytes


@compiled
def holds_rows(program: Code, events: EventColumns, texts: Texts, depth: int, out: Any) -> None:
    """Whether all clauses hold of each event by itself: whatever the slot, it is this event."""
    words = program.words
    # [level, row of the block]
    ints = np.zeros((depth, BLOCK), np.int64)
    reals = np.zeros((depth, BLOCK), np.float64)
    states = np.zeros((depth, BLOCK), np.uint8)
    # [row of the block]: whether a literal of the clause is true.
    truth = np.zeros(BLOCK, np.bool_)
    for begin in range(0, out.size, BLOCK):
        end = min(begin + BLOCK, out.size)
        size = end - begin
        out[begin:end] = True
        truth[:] = False
        top = -1
        for at in range(0, words.size, op.WIDTH):
            operation, first, second, third = words[at], words[at + 1], words[at + 2], words[at + 3]
            if operation <= op.LOAD_STATE:
                top += 1
                _copy(events.states[third, begin:end], states[top, :size])
                if operation == op.LOAD_INT:
                    _copy(events.ints[second, begin:end], ints[top, :size])
                elif operation == op.LOAD_REAL:
                    _copy(events.reals[second, begin:end], reals[top, :size])
            elif operation == op.PUSH_INT:
                top += 1
                states[top, :size] = op.VALUE
                ints[top, :size] = program.ints[first]
            elif operation == op.PUSH_REAL:
                top += 1
                states[top, :size] = op.VALUE
                reals[top, :size] = program.reals[first]
            elif operation <= op.PUSH_NULL:
                top += 1
                states[top, :size] = op.NULL  # no program has an aggregate over one event by itself
            elif operation == op.TO_REAL:
                _to_real(ints[top, :size], reals[top, :size])
            elif operation == op.TO_RANK:
                _to_rank(ints[top, :size], states[top, :size], texts.ranks)
            elif operation == op.SETTLE:
                _settle(states[top, :size])
            elif operation <= op.COMPARE_TIME:
                # Two values are taken; their state is that of the result.
                top -= 1
                _spread(states[top, :size], states[top + 1, :size])
                if operation <= op.ELAPSED:
                    _compute(operation, first, second, Block(ints, reals, states), top, size)
                else:
                    _compare(operation, second, third, Block(ints, reals, states), top, size, truth)
                    top -= 1
            elif operation == op.IS_NULL:
                _is_null(second, states[top, :size], truth)
                top -= 1
            elif operation == op.TEST_STRING:
                _test_strings(texts.tests[program.ints[third]], second, ints[top, :size], states[top, :size], truth)
                top -= 1
            elif operation == op.AMONG_INTS:
                _are_among(program.ints, third, second, ints[top, :size], states[top, :size], truth)
                top -= 1
            elif not _keep(truth, out[begin:end]):
                break


@step
def _compute(operation: int, first: int, second: int, block: Block, top: int, size: int) -> None:
    """Two values of each row become one. An operation that is constant to the compiler has a fast loop."""
    state = block.states[top, :size]
    left, right = block.ints[top, :size], block.ints[top + 1, :size]
    x, y = block.reals[top, :size], block.reals[top + 1, :size]
    if operation == op.ADD_REAL:
        _each_real(op.ADD_REAL, x, y, state)
    elif operation == op.SUBTRACT_REAL:
        _each_real(op.SUBTRACT_REAL, x, y, state)
    elif operation == op.MULTIPLY_REAL:
        _each_real(op.MULTIPLY_REAL, x, y, state)
    elif operation == op.DIVIDE_REAL:
        _each_real(op.DIVIDE_REAL, x, y, state)
    elif operation == op.MODULO_REAL:
        _each_real(op.MODULO_REAL, x, y, state)
    elif operation == op.ADD_INT:
        _each_int(op.ADD_INT, first, second, left, right, state)
    elif operation == op.SUBTRACT_INT:
        _each_int(op.SUBTRACT_INT, first, second, left, right, state)
    else:
        _each_int(operation, first, second, left, right, state)


@step
def _compare(operation: int, comparison: int, ratio: int, block: Block, top: int, size: int, truth: Any) -> None:
    """Two values of each row make a literal true, or not."""
    state = block.states[top, :size]
    left, right = block.ints[top, :size], block.ints[top + 1, :size]
    x, y = block.reals[top, :size], block.reals[top + 1, :size]
    if operation == op.COMPARE_INT:
        _compare_ints(comparison, left, right, state, truth)
    elif operation == op.COMPARE_REAL:
        _compare_reals(comparison, x, y, state, truth)
    elif operation == op.COMPARE_INT_REAL:
        _compare_mixed(comparison, left, y, state, truth)
    else:
        _compare_times(comparison, ratio, left, right, state, truth)


# Loops over the rows of a block; where there is no value, any result will do -----------------------------------------


@inlined
def _copy(source: Any, target: Any) -> None:
    for row in range(target.size):
        target[row] = source[row]


@inlined
def _to_real(ints: Ints, reals: Reals) -> None:
    for row in range(ints.size):
        reals[row] = float(ints[row])


@inlined
def _to_rank(codes: Ints, states: Bytes, ranks: Ints) -> None:
    for row in range(codes.size):
        if states[row] == op.VALUE:
            codes[row] = ranks[codes[row]]


@inlined
def _settle(states: Bytes) -> None:
    for row in range(states.size):
        states[row] = op.NULL if states[row] == op.UNDEFINED else states[row]


@inlined
def _spread(left: Bytes, right: Bytes) -> None:
    for row in range(left.size):
        left[row] = max(left[row], right[row])


@inlined
def _each_real(operation: int, left: Reals, right: Reals, states: Bytes) -> None:
    for row in range(left.size):
        left[row], state = compute_real(operation, left[row], right[row])
        states[row] = state if states[row] == op.VALUE else states[row]


@inlined
def _each_int(operation: int, first: int, second: int, left: Ints, right: Ints, states: Bytes) -> None:
    for row in range(left.size):
        left[row], state = compute_int(operation, left[row], right[row], first, second)
        states[row] = state if states[row] == op.VALUE else states[row]


@inlined
def _compare_ints(comparison: int, left: Ints, right: Ints, states: Bytes, truth: Any) -> None:
    for row in range(left.size):
        answer = accepts(comparison, arithmetic.compare(left[row], right[row]))
        truth[row] |= answer if states[row] == op.VALUE else states[row] == op.MISSING


@inlined
def _compare_reals(comparison: int, left: Reals, right: Reals, states: Bytes, truth: Any) -> None:
    for row in range(left.size):
        answer = compare_reals(comparison, left[row], right[row])
        truth[row] |= answer if states[row] == op.VALUE else states[row] == op.MISSING


@inlined
def _compare_mixed(comparison: int, left: Ints, right: Reals, states: Bytes, truth: Any) -> None:
    for row in range(left.size):
        answer = compare_mixed(comparison, left[row], right[row])
        truth[row] |= answer if states[row] == op.VALUE else states[row] == op.MISSING


@inlined
def _compare_times(comparison: int, ratio: int, left: Ints, right: Ints, states: Bytes, truth: Any) -> None:
    for row in range(left.size):
        answer = compare_times(comparison, left[row], right[row], ratio)
        truth[row] |= answer if states[row] == op.VALUE else states[row] == op.MISSING


@inlined
def _is_null(negated: int, states: Bytes, truth: Any) -> None:
    for row in range(states.size):
        truth[row] |= is_null(states[row], negated)


@inlined
def _test_strings(passed: Bytes, negated: int, codes: Ints, states: Bytes, truth: Any) -> None:
    for row in range(codes.size):
        if states[row] == op.VALUE:
            truth[row] |= passed[codes[row]] != negated
        else:
            truth[row] |= states[row] == op.MISSING


@inlined
def _are_among(listed: Ints, place: int, negated: int, values: Ints, states: Bytes, truth: Any) -> None:
    for row in range(values.size):
        if states[row] == op.VALUE:
            truth[row] |= is_among(listed, place, values[row]) != (negated == 1)
        else:
            truth[row] |= states[row] == op.MISSING


@inlined
def _keep(truth: Any, out: Any) -> bool:
    """End a clause: whether any row still holds."""
    left = 0
    for row in range(out.size):
        out[row] &= truth[row]
        truth[row] = False
        left += out[row]
    return left > 0
