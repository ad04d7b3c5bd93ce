"""The accumulators of a layout to what the engine keeps for them and how it takes one more event."""

from __future__ import annotations

import numpy as np

from kleene.codegen.value_kinds import aggregate_kind, column_named
from kleene.kernels import opcodes as op
from kleene.pattern.types import ValueType
from kleene.plan.layout import Layout
from kleene.plan.program import AggregationPlan

_FUNCTIONS = {
    "count": op.COUNT,
    "sum": op.SUM,
    "min": op.MIN,
    "max": op.MAX,
    "first": op.FIRST,
    "last": op.LAST,
    "agreed": op.AGREED,
    "nth": op.NTH,
}
_KINDS = {ValueType.FLOAT: op.REALS, ValueType.STRING: op.STRINGS}


def compile_aggregates(layout: Layout) -> AggregationPlan:
    """The plan of a layout's accumulators; `NotCompilable` when one of them is over values that no array holds."""
    size = max(layout.accumulators.values(), default=-1) + 1
    functions, kinds, columns, places = (np.zeros(size, np.int64) for _ in range(4))
    slots: dict[str, list[int]] = {}
    ordered = False
    for accumulator, slot in layout.accumulators.items():
        slots.setdefault(accumulator.variable, []).append(slot)
        if accumulator.attribute is None:
            functions[slot] = op.COUNT_EVENTS
            continue
        column = column_named(accumulator.attribute, layout)
        kind = aggregate_kind(accumulator.function, column)
        functions[slot] = _FUNCTIONS[accumulator.function] + accumulator.position
        kinds[slot] = _KINDS.get(kind.type, op.INTS)
        columns[slot], places[slot] = column.index, column.place
        ordered |= kind.type is ValueType.STRING and accumulator.function in ("min", "max")
    by_variable = {name: np.array(sorted(numbers), np.int64) for name, numbers in slots.items()}
    return AggregationPlan(functions, kinds, columns, places, by_variable, ordered)
