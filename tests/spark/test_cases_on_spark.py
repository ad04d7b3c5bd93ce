"""Case files on Spark: the same matches as in process, by the same comparison. Many cases share a job.

Some of every file; `make soak` has all.

The session has Spark's defaults, as users have them, and not the settings with which other tests are quick.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from uuid import uuid4
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.case_files import some_of_every_other_file
from tests.case_rows import NotApplicable, numbered, observed, schema_of, warning_codes
from tests.spark.comparing import run_together

import kleene
from kleene.frames.streams import to_table
from kleene.pattern.schema import Schema
from kleene.plan.settings import Exchange, Settings
from kleene.queries.any_query import AnyQuery
from kleene.testing.case_check import Observed, check_case
from kleene.testing.cases import Case

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kleene.spark.batch import Prepared

pytestmark = pytest.mark.slow

# What `tests.users` finds on a session with nothing set; the time zone is one that is not ours.
DEFAULTS = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.session.timeZone": "America/New_York",
    "spark.sql.shuffle.partitions": "200",
}
AT_A_TIME = 24
FILES = TemporaryDirectory(prefix="kleene-cases-")

ran: set[str] = set()
not_applicable: dict[str, str] = {}


@pytest.mark.parametrize("case", some_of_every_other_file(24, first=0), ids=lambda case: f"{case.place} {case.name}")
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
    assert len(not_applicable) <= 1 + len(ran) // 100


@pytest.fixture(scope="module")
def ordinary(spark: SparkSession) -> SparkSession:
    """A session with Spark's defaults, beside that of all tests."""
    session = spark.newSession()
    for name, value in DEFAULTS.items():
        session.conf.set(name, value)
    return session


@pytest.fixture(scope="module")
def answer(ordinary: SparkSession, request: pytest.FixtureRequest) -> Callable[[Case], Observed]:
    """What Spark finds for a case; the next selected cases run in the same job."""
    selected: list[Any] = [
        item.callspec.params["case"]
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.path == request.path and hasattr(item, "callspec")
    ]
    places = {id(case): place for place, case in enumerate(selected)}
    begun: dict[int, Observed | Exception] = {}

    def found(case: Case) -> Observed:
        first = places[id(case)]
        if first not in begun:
            last = min(first + AT_A_TIME, len(selected))
            begun.update(zip(range(first, last), run_on_spark(ordinary, selected[first:last]), strict=True))
        made = begun[first]
        if isinstance(made, Exception):
            raise made
        return made

    return found


def run_on_spark(spark: SparkSession, cases: Sequence[Case]) -> list[Observed | Exception]:
    begun = [prepared(spark, case) for case in cases]
    ready = [made for made in begun if not isinstance(made, Exception)]
    try:
        found = run_together([made for _, made, _ in ready]) if ready else {}
    except Exception as problem:
        # One of them fails in its tasks, as it should or not; alone it will say so.
        return [problem] if len(cases) == 1 else [one for case in cases for one in run_on_spark(spark, [case])]
    numbers = iter(range(len(ready)))
    results: list[Observed | Exception] = []
    for made in begun:
        if isinstance(made, Exception):
            results.append(made)
            continue
        number = next(numbers)
        tables = (found.get((number, kind)) for kind in ("matches", "timeouts"))
        rows, late = ([] if table is None else table.to_pylist() for table in tables)
        try:
            results.append(observed(made[0], rows, late, made[2]))
        except NotApplicable as reason:
            results.append(reason)
    return results


def prepared(spark: SparkSession, case: Case) -> tuple[AnyQuery, Prepared, frozenset[str]] | Exception:
    """The case's result is that of its last query; those before feed it."""
    from kleene.spark.batch import prepare

    queries = case.read_queries()
    schema = schema_of(case)
    settings = Settings(exchange=Exchange(buckets=3, slice_width=slice_width(case)))
    try:
        events = frames(spark, case, schema)
        with warning_codes() as warnings:
            made = prepare(events, [queries[-1], *queries[:-1]], schema=schema, several=False, settings=settings)
    except Exception as problem:
        return problem
    return queries[-1], made, frozenset(warnings)


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
        made[name] = spark.createDataFrame(table, spark_schema(table.schema)).coalesce(1)
        if name == "" and crc32(case.place.encode()) % 2:
            made[name] = in_a_file(spark, table) or made[name]
    return made.get("", made)


def in_a_file(spark: SparkSession, table: pa.Table) -> DataFrame | None:
    """Every other case has its events in a file, which tasks read; None where Spark would see other columns in it."""
    from pyspark.errors import PySparkException

    from kleene.spark.types import spark_schema

    file = f"{FILES.name}/{uuid4().hex}.parquet"
    try:
        pq.write_table(table, file, row_group_size=4)
        frame: DataFrame = kleene.parquet(spark, file)
        return frame if frame.schema == spark_schema(table.schema) else None
    except (PySparkException, pa.ArrowException):
        return None
