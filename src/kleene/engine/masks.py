"""Conditions on one event, for all events of a table at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kleene.engine.columns import ColumnStore
from kleene.engine.linking import link
from kleene.engine.strings import StringPool
from kleene.kernels.blocks import holds_rows
from kleene.optimize.compile_expression import compile_clauses
from kleene.pattern.expressions import Clause
from kleene.plan.layout import Layout
from kleene.plan.program import NotCompilable


def mask(clauses: Sequence[Clause], store: ColumnStore, strings: StringPool) -> NDArray[np.bool_]:
    """Of which events all clauses hold; they name one identifier (`x`, `a[1]`, or the event of a class predicate)."""
    layout = Layout.of(clauses, store.columns)
    if len(layout.identifiers) > 1 or layout.accumulators:
        raise NotCompilable("a mask is a condition on one event")
    program = compile_clauses(clauses, layout)
    code = link(program, strings)
    out = np.zeros(store.types.size, np.bool_)
    holds_rows(code, store.events, strings.arrays(), program.depth, out)
    return out
