"""Conditions on one event, for all events of a table at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kleene.codegen.expression import compile_clauses
from kleene.engine.executors.linking import link
from kleene.engine.intake.columns import ColumnStore
from kleene.engine.intake.strings import StringPool
from kleene.kernels.blocks import holds_rows
from kleene.pattern.expressions import Clause
from kleene.pattern.nodes import Component
from kleene.plan.layout import Layout
from kleene.plan.program import NotCompilable

Flags = NDArray[np.bool_]


def mask(clauses: Sequence[Clause], store: ColumnStore, strings: StringPool) -> Flags:
    """[event]: whether all clauses hold; they name one identifier (`x`, `a[1]`, or the event of a class predicate)."""
    layout = Layout.of(clauses, store.columns)
    if len(layout.identifiers) > 1 or layout.accumulators:
        raise NotCompilable("a mask is a condition on one event")
    program = compile_clauses(clauses, layout)
    code = link(program, strings)
    out = np.zeros(store.types.size, np.bool_)
    holds_rows(code, store.events, strings.arrays(), program.depth, out)
    return out


def members(component: Component, store: ColumnStore, strings: StringPool) -> Flags:
    """Which events are of a component's classes."""
    member = np.zeros(store.types.size, np.bool_)
    for event_class in component.classes:
        of_type = store.types.are(event_class.types)
        if event_class.predicate:
            of_type &= mask(event_class.predicate, store, strings)
        member |= of_type
    return member
