"""The reference evaluator as an executor of cases."""

from __future__ import annotations

from typing import Any

from kleene.algebra.query import StreamQuery
from kleene.lang.tree import OutputMode
from kleene.reference.evaluator import reference_match
from kleene.reference.timeline import ReferenceEvent
from kleene.testing.case_check import Observed, RowNumber, stream_values
from kleene.testing.cases import Case
from kleene.testing.reference_outputs import table_outputs


def run_on_reference(case: Case) -> Observed:
    queries = case.read_queries()
    if isinstance(queries[-1], StreamQuery):
        outputs = table_outputs(case.rows, [queries[-1], *queries[:-1]], schema=case.schema)
        return Observed(stream=list(map(stream_values, outputs.matches.to_pylist())))
    result = reference_match(case.rows, queries, schema=case.schema)
    query = result.query
    return Observed(
        [match.bindings for match in result.matches],
        None if query.returns is None else [_returned(row) for row in result.returned],
        result.compressed if query.output is OutputMode.COMPRESSED else None,
        [{**timeout.prefix.bindings, "closed": timeout.closed} for timeout in result.late],
        frozenset(warning.code for warning in query.warnings),
    )


def _returned(row: dict[str, Any]) -> dict[str, Any]:
    def shown(value: Any) -> Any:
        if isinstance(value, ReferenceEvent):
            return RowNumber(value.index)
        return tuple(map(shown, value)) if isinstance(value, tuple) else value

    return {name: shown(value) for name, value in row.items()}
