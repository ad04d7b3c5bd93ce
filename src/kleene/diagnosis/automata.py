"""Why a query of the stream algebra has the results that it has, or none: how far instances came."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from kleene.algebra.query import BoundStreamQuery
from kleene.analysis import StreamCounts, stream_counts
from kleene.diagnosis.wording import counted
from kleene.frames.type_names import types_among
from kleene.plan.explain_streams import source_text
from kleene.plan.program import NotCompilable
from kleene.plan.settings import Settings


def diagnose_stream(query: BoundStreamQuery, table: pa.Table) -> str:
    """Run a query for its counts, in plain words."""
    try:
        counts = stream_counts(query, table, Settings())
    except NotCompilable as reason:
        return f"why is not available: `{query.name}` runs on the reference evaluator, which counts nothing ({reason})"
    results = counts[-1].results
    found = counted(results, "result") if results else "no result"
    lines = [f"`{query.name}`: {found} in {counted(table.num_rows, 'event')}"]
    names = [each.plan.query.name for each in counts[:-1]]
    for number, each in enumerate(counts):
        if names:
            lines.append(f"part {number + 1}" if number < len(names) else "the query itself")
        lines += [f"  {line}" for line in _automaton(each, names)]
    lines += [f"  {line}" for line in _absent_types(query, table)]
    return "\n".join(lines)


def _automaton(counts: StreamCounts, names: Sequence[str]) -> Iterator[str]:
    """What came to each state, and what became of it."""
    plan = counts.plan
    for state, (came, served, expired) in zip(plan.states, counts.states, strict=True):
        source = source_text(plan.formulas[state.formula].source, names)
        if not came:
            yield f"nothing came to wait for {source}"
            return
        waits = came - served - expired
        parts = [f"{counted(served, 'was', 'were')} served by an event"]
        parts += [f"{expired:,} grew too old"] if expired else []
        parts += [f"{waits:,} still waited at the end"] if waits else []
        yield f"{counted(came, 'event')} waited for {source}: {', '.join(parts)}"
    yield f"{counted(counts.results, 'result')} passed the last conditions"


def _absent_types(query: BoundStreamQuery, table: pa.Table) -> Iterator[str]:
    schema = query.schema
    if schema.constant_type is not None or schema.type not in table.column_names:
        return
    seen = types_among(table.column(schema.type), set(query.types))
    for name in query.types:
        if name not in seen:
            yield f"no event of {name} came"
