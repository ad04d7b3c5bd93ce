"""The sequence executor against the reference, on random queries and streams, with every rule on and each one off."""

from __future__ import annotations

import random
from collections import Counter

import pyarrow as pa
import pytest

from kleene.engine.run import run_query
from kleene.errors import KleeneError
from kleene.frames.arrow import schema_on
from kleene.frames.streams import to_table
from kleene.optimize.planner import RULES, plan_query
from kleene.pattern import Query, Schema
from kleene.plan.settings import Settings
from kleene.testing.generators import GeneratedCase, random_case, schema_of
from kleene.testing.process import table_outputs

# Those strata whose queries can be plain sequences.
STRATA = [
    "sequence",
    "negation",
    "optional",
    "disjunction",
    "count_window",
    "arithmetic",
    "boolean_conditions",
    "nulls_missing",
    "ties",
    "tie_breaker",
]
A_STRATUM = 150
SETTINGS = [Settings(), *(Settings(without=frozenset({name})) for name, _ in RULES)]

compared: Counter[str] = Counter()
matched: Counter[str] = Counter()


@pytest.mark.parametrize("stratum", STRATA)
def test_engine_and_reference_agree(stratum: str) -> None:
    for seed in range(A_STRATUM):
        _compare(random_case(random.Random(f"{stratum} {seed}"), stratum), SETTINGS[seed % len(SETTINGS)], stratum)
    print(f"{stratum:20} {compared[stratum]} pairs ran on the engine, {matched[stratum]} with matches")


def test_enough_was_compared() -> None:
    """Runs after the strata; alone it has nothing to count."""
    print(f"{sum(compared.values())} pairs, {sum(matched.values())} with matches")
    assert not compared or sum(compared.values()) >= 500
    assert not compared or sum(matched.values()) >= 250


def _compare(case: GeneratedCase, settings: Settings, stratum: str) -> None:
    schema = Schema(**schema_of(case))
    query = Query(case.query_text, params=dict(case.params or {}))
    try:
        table, given = to_table(case.events, schema.declaring(query.tree.declarations))
        bound = query.bind(schema_on(table.schema, given))
    except KleeneError:
        return
    if plan_query(bound, settings).fallback is not None:
        return
    # Shuffled rows and chunks: neither may matter.
    rows = list(range(table.num_rows))
    random.Random(case.query_text).shuffle(rows)
    halves = rows[: len(rows) // 2], rows[len(rows) // 2 :]
    shuffled = pa.concat_tables([table.take(pa.array(half, pa.int64())) for half in halves])
    made = run_query(bound, shuffled, settings)
    if made is None:
        return
    expected = table_outputs(table, [query], schema=given)
    assert _content(made[0]) == _content(expected.matches), case.query_text
    assert len(made[1]) == expected.bad_rows.num_rows
    compared[stratum] += 1
    matched[stratum] += expected.matches.num_rows > 0


def _content(table: pa.Table) -> list[str]:
    """Every row whole, ids included."""
    return sorted(map(repr, table.to_pylist()))
