"""Every case file, on Spark: the same matches as in process, by the same comparison.

Cases run a few at a time, ahead of the test that asks for them, since a tiny job mostly waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.case_rows import NotApplicable, numbered, observed, schema_of, warning_codes

from kleene.frames.streams import to_table
from kleene.pattern.query import Query
from kleene.pattern.schema import Schema
from kleene.plan.settings import Exchange, Settings
from kleene.testing.case_check import Observed, check_case
from kleene.testing.cases import Case, read_cases

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CASES = read_cases(Path(__file__).parents[1] / "cases")
AT_A_TIME = 4

ran: set[str] = set()
not_applicable: dict[str, str] = {}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.place} {case.name}")
def test_case(case: Case, answer: Callable[[Case], Observed]) -> None:
    try:
        check_case(case, answer)
        ran.add(case.place)
    except NotApplicable as reason:
        not_applicable[case.place] = str(reason)
        pytest.skip(str(reason))


def test_almost_every_case_can_run_on_spark(spark: SparkSession) -> None:
    """Runs after the cases and counts them; alone it has nothing to count."""
    reasons = "; ".join(f"{place}: {reason}" for place, reason in not_applicable.items()) or "none"
    print(f"{len(ran)} cases on Spark, {len(not_applicable)} not applicable ({reasons})")
    assert len(not_applicable) <= len(CASES) // 100


@pytest.fixture(scope="module")
def answer(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[Callable[[Case], Observed]]:
    """What Spark finds for a case; the next few selected cases are begun meanwhile."""
    selected: list[Any] = [
        item.callspec.params["case"]
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.path == request.path and hasattr(item, "callspec")
    ]
    places = {id(case): place for place, case in enumerate(selected)}
    begun: dict[int, Future[Observed]] = {}
    with ThreadPoolExecutor(AT_A_TIME) as pool:

        def found(case: Case) -> Observed:
            first = places[id(case)]
            for place in range(first, min(first + 2 * AT_A_TIME, len(selected))):
                if place not in begun:
                    begun[place] = pool.submit(run_on_spark, spark, selected[place])
            return begun[first].result()

        yield found


def run_on_spark(spark: SparkSession, case: Case) -> Observed:
    from kleene.spark.batch import spark_outputs

    queries = [Query(text, params=case.params) for text in case.queries]
    schema = schema_of(case)
    events = frames(spark, case, schema)
    with warning_codes() as warnings:
        # The result is that of the first query; those that feed it may follow.
        matches, timeouts, _ = spark_outputs(
            events,
            [queries[-1], *queries[:-1]],
            schema=schema,
            several=False,
            settings=Settings(exchange=Exchange(buckets=3, slice_width=slice_width(case))),
        )
    rows = matches.toArrow().to_pylist()
    late = [] if timeouts is None else timeouts.toArrow().to_pylist()
    return observed(queries[-1], rows, late, frozenset(warnings))


def slice_width(case: Case) -> int | None:
    """A few ticks, so that there are several slices; of timestamps that would be millions."""
    rows = next(iter(numbered(case).values()), [])
    return 3 if all(isinstance(value, int | None) for row in rows for value in [row.get("ts")]) else None


def frames(spark: SparkSession, case: Case, schema: Schema) -> DataFrame | dict[str, DataFrame]:
    """The case's events as a data frame, or as one a stream.

    A declared attribute has a column even where no row of the case gives it a value.
    """
    from kleene.spark.types import spark_schema

    made: dict[str, DataFrame] = {}
    for name, rows in numbered(case).items():
        own = (
            schema if name == "" else schema.declaring_types({name: schema.types[name]} if name in schema.types else {})
        )
        table, _ = to_table(rows, own)
        made[name] = spark.createDataFrame(table, spark_schema(table.schema))
    return made.get("", made)
