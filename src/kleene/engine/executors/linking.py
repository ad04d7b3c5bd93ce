"""Links programs to a string pool: texts become codes and numbers of tests."""

from __future__ import annotations

import numpy as np

from kleene.engine.intake.strings import StringPool
from kleene.kernels.aggregates import Aggregation
from kleene.kernels.expression import Code, Groups
from kleene.plan.program import AggregationPlan, Program


def link(program: Program, strings: StringPool) -> Code:
    """The program as the machine runs it. Ask the pool for its `arrays()` after linking, and after each batch."""
    ints = program.ints.copy()
    for place, text in program.strings:
        ints[place] = strings.code(text)
    for place, test, constant in program.tests:
        ints[place] = strings.test(test, constant)
    if program.ordered:
        strings.keep_order()
    return Code(program.code, ints, program.reals)


def link_aggregates(plan: AggregationPlan, strings: StringPool) -> Aggregation:
    if plan.ordered:
        strings.keep_order()
    return Aggregation(plan.functions, plan.kinds, plan.columns, plan.places)


def groups(number: int, slots: int) -> Groups:
    """Room for the aggregates of `number` groups."""
    shape = number, slots
    return Groups(np.zeros(shape, np.int64), np.zeros(shape, np.float64), np.zeros(shape, np.uint8))
