"""The reference evaluator as an executor of cases."""

from __future__ import annotations

from typing import Any

from kleene.lang.tree import OutputMode
from kleene.pattern.query import Query
from kleene.reference.evaluator import reference_match
from kleene.reference.timeline import ReferenceEvent
from kleene.testing.case_check import Observed, RowNumber
from kleene.testing.cases import Case


def run_on_reference(case: Case) -> Observed:
    queries = [Query(text, params=case.params) for text in case.queries]
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
