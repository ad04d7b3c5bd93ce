"""Computed columns: the value of a program for each match."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kleene.kernels import opcodes as op
from kleene.kernels.aggregates import Aggregation, accumulate, clear
from kleene.kernels.expression import Code, EventColumns, Groups, Ints, ProgramScope, Reals, Texts, holds
from kleene.kernels.gathering import Rows
from kleene.kernels.jit import borrowed, compiled


@compiled
def aggregate_each(
    aggregation: Aggregation, slots: Ints, rows: Rows, offsets: Rows, events: EventColumns, texts: Texts, groups: Groups
) -> None:
    """The aggregates of a variable for each match, in the group of the same number.

    slots     where they are in a group
    rows      [reference]: the variable's events
    offsets   [match + 1]: where those of each match begin
    """
    for match in range(len(offsets) - 1):
        clear(aggregation, slots, groups, match)
        for place in range(offsets[match], offsets[match + 1]):
            accumulate(aggregation, slots, rows[place], events, texts, groups, match)


@compiled
def values_each(program: Code, scope: ProgramScope, ints: Ints, reals: Reals, known: NDArray[np.bool_]) -> None:
    """The value that a program without tests leaves on the stack, for each binding with the group of the same number.

    ints, reals   [binding]: the value, in the array of its kind; 0 where there is none
    known         [binding]: whether there is a value
    """
    program, scope = borrowed(program), borrowed(scope)
    stack = scope.stack
    for binding in range(scope.bindings.shape[0]):
        holds(program, scope, binding, binding)
        has = stack.states[0] == op.VALUE
        known[binding] = has
        ints[binding] = stack.ints[0] if has else 0
        reals[binding] = stack.reals[0] if has else 0.0
