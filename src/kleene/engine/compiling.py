"""Whether the engine can run a query on events with these columns: some conditions can be compiled, others not."""

from __future__ import annotations

import pyarrow as pa

from kleene.engine.any_engine import engine_for
from kleene.frames.arrow import empty_table
from kleene.kernels.interpreting import interpreted
from kleene.plan.program import NotCompilable
from kleene.plan.settings import Settings
from kleene.queries.any_query import AnyBoundQuery


def why_not_compiled(query: AnyBoundQuery, columns: pa.Schema, settings: Settings | None = None) -> str | None:
    """Why a query must stay on the reference evaluator; None when it need not."""
    try:
        # Interpreted: without events there is nothing to compile kernels for.
        with interpreted():
            engine = engine_for(query, settings)
            engine.process(empty_table(columns))
            engine.finish()
    except NotCompilable as problem:
        return str(problem)
    return None
