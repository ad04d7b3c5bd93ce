"""Case files on a Spark stream, with the answers that they have as tables; all cases share one stream.

Some of every other file, those between them in a batch; `make soak` has all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from tests.case_files import some_of_every_other_file
from tests.case_rows import NotApplicable, observed, schema_of, warning_codes
from tests.spark.streaming.sharing import BOUNDED, run_on_stream, waits_for_the_end
from tests.spark.test_cases_on_spark import frames

from kleene.errors import CATALOGUE, NotOnStreams
from kleene.queries.any_query import AnyQuery
from kleene.testing.case_check import Observed, check_case
from kleene.testing.cases import Case

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kleene.spark.streaming.preparing import PreparedStream

pytestmark = pytest.mark.slow

ran: set[str] = set()
not_run: dict[str, str] = {}


@pytest.mark.parametrize("case", some_of_every_other_file(40, first=1), ids=lambda case: f"{case.place} {case.name}")
def test_case(case: Case, answers: Callable[[Case], Observed]) -> None:
    try:
        check_case(case, answers)
        ran.add(case.place)
    except NotApplicable as reason:
        not_run[case.place] = str(reason)
        pytest.skip(str(reason))


def test_most_cases_can_run_on_a_stream(spark: SparkSession, record_property: Callable[[str, object], None]) -> None:
    """Runs after the cases and counts them; alone it has nothing to count."""
    reasons = Counter(reason.partition(":")[2].strip() or reason for reason in not_run.values())
    listed = "; ".join(f"{number} × {reason}" for reason, number in reasons.most_common())
    record_property("counted", f"{len(ran)} cases on a stream, {len(not_run)} not: {listed}")
    assert len(not_run) <= 1 + len(ran) // 100


@pytest.fixture(scope="module")
def answers(
    spark: SparkSession, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Case], Observed]:
    """What the stream finds for a case."""
    selected: list[Any] = [
        item.callspec.params["case"]
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.path == request.path and hasattr(item, "callspec")
    ]
    begun = {id(case): prepared(spark, case) for case in selected}
    ready = [(id(case), made) for case in selected if not isinstance(made := begun[id(case)], Exception)]
    found = run_on_stream(spark, [made[1] for _, made in ready], tmp_path_factory.mktemp("cases"), seed=5)
    numbers = {key: number for number, (key, _) in enumerate(ready)}

    def answer(case: Case) -> Observed:
        made = begun[id(case)]
        if isinstance(made, Exception):
            raise made
        number = numbers[id(case)]
        for kind, table in ((kind, table) for (of, kind), table in found.items() if of == number):
            if kind.startswith("failed "):
                raise CATALOGUE[kind.split()[1]](table.column("message")[0].as_py())  # type: ignore[misc]
        tables = (found.get((number, kind)) for kind in ("matches", "timeouts"))
        rows, late = ([] if table is None else table.to_pylist() for table in tables)
        return observed(made[0], rows, late, made[2])

    return answer


def prepared(spark: SparkSession, case: Case) -> tuple[AnyQuery, PreparedStream, frozenset[str]] | Exception:
    """The case's result is that of its last query; those before feed it."""
    from kleene.spark.streaming.preparing import prepare_stream

    queries = case.read_queries()
    schema = schema_of(case)
    try:
        events = frames(spark, case, schema)
        with warning_codes() as warnings:
            made = prepare_stream(events, [queries[-1], *queries[:-1]], schema=schema, several=False, settings=BOUNDED)
    except NotOnStreams as reason:
        return NotApplicable(reason.message)
    except Exception as problem:
        return problem
    if any(map(waits_for_the_end, made.bound)):
        return NotApplicable("only the end of the input decides it")
    return queries[-1], made, frozenset(warnings)
