"""Every case file whose plan runs on the compiled engine, on the engine; the others are counted with their reason."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kleene.engine.sequence import find_sequences
from kleene.frames.arrow import schema_on
from kleene.frames.streams import reads, to_table
from kleene.optimize.planner import plan_query
from kleene.pattern import Query
from kleene.plan.program import NotCompilable
from kleene.plan.settings import Settings
from kleene.testing.case_check import Observed, RowNumber, check_case
from kleene.testing.cases import Case, read_cases

CASES = [
    case for case in read_cases(Path(__file__).parents[1] / "cases") if case.error is None and len(case.queries) == 1
]

ran: list[str] = []
left: Counter[str] = Counter()


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.place} {case.name}")
def test_case(case: Case) -> None:
    observed = _observed(case)
    if observed is not None:
        check_case(case, lambda _: observed)
        ran.append(case.place)


def test_many_cases_ran() -> None:
    """Runs after the cases and counts them; alone it has nothing to count."""
    print(f"{len(ran)} cases on the engine; on the reference: {dict(left)}")
    assert not ran or len(ran) >= 150


def _observed(case: Case) -> Observed | None:
    query = Query(case.queries[0], params=case.params)
    schema = case.schema.declaring(query.tree.declarations)
    table, given = to_table(case.rows, schema, reads([query], schema))
    bound = query.bind(schema_on(table.schema, given))
    plan = plan_query(bound)
    if plan.fallback is not None:
        left[plan.fallback.reason] += 1
        return None
    try:
        found = find_sequences(plan, table, Settings())
    except NotCompilable as problem:
        left[str(problem)] += 1
        return None
    matches: list[dict[str, Any]] = [
        {component.variable: None if row < 0 else row for component, row in zip(bound.positives, rows, strict=True)}
        for rows in found.rows.tolist()
    ]
    warnings = frozenset(warning.code for warning in bound.warnings)
    if bound.returns is None:
        return Observed(matches, warnings=warnings)
    columns = {name: table.column(name).to_pylist() for name in table.column_names}
    returned = [{c.name: _returned(c.value, match, columns) for c in bound.returns} for match in matches]
    return Observed(matches, returned, warnings=warnings)


def _returned(value: Any, match: dict[str, Any], columns: dict[str, list[Any]]) -> Any:
    row = match[value.variable]
    attribute = getattr(value, "attribute", None)
    if attribute is None:
        return None if row is None else RowNumber(row)
    return None if row is None or attribute not in columns else columns[attribute][row]
