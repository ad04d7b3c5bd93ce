"""Every case file, on Spark: the same matches as in process, by the same comparison.

A row number travels with the events as a column of every type, so that the structs in a result say which rows they are.
Cases run a few at a time, ahead of the test that asks for them, since a tiny job mostly waits.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kleene.frames.streams import to_table
from kleene.lang.tree import OutputMode
from kleene.pattern.clock import datetime_nanoseconds
from kleene.pattern.query import Query
from kleene.pattern.schema import Schema
from kleene.pattern.types import ValueType
from kleene.testing.case_check import Observed, RowNumber, check_case
from kleene.testing.cases import Case, read_cases

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CASES = read_cases(Path(__file__).parents[1] / "cases")
# The last of all columns in canonical order, so that it decides nothing that another column decides.
ROW_NUMBER = "zzz_row_number"
COMMON = ("match_id", "query", "start", "end", "key", "stream", "reached")
AT_A_TIME = 4

ran: set[str] = set()
not_applicable: dict[str, str] = {}


class NotApplicable(Exception):
    """The case asks for something that a result on Spark does not show."""


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
    # An error may list the columns that there are.
    numbered = case.error is None
    schema = with_row_number(case.schema) if numbered else case.schema
    events = frames(spark, case, schema, numbered)
    with warning_codes() as warnings:
        # The result is that of the first query; those that feed it may follow.
        matches, timeouts, _ = spark_outputs(
            events, [queries[-1], *queries[:-1]], schema=schema, several=False, buckets=3
        )
    parsed = queries[-1].tree
    rows = matches.toArrow().to_pylist()
    late = [] if timeouts is None else timeouts.toArrow().to_pylist()
    is_compressed = parsed.output is not None and parsed.output.mode is OutputMode.COMPRESSED
    return Observed(
        [] if is_compressed or parsed.returns is not None else [bindings(row) for row in rows],
        None if parsed.returns is None else [returned(row) for row in rows],
        [(completing_row(case, row), int(row["count"])) for row in rows] if is_compressed else None,
        [bindings(row) for row in late],
        frozenset(warnings),
    )


# Events in ---------------------------------------------------------------------------------------------------------


def frames(spark: SparkSession, case: Case, schema: Schema, numbered: bool) -> DataFrame | dict[str, DataFrame]:
    """The case's events as a data frame, or as one a stream; rows are numbered through all streams.

    A declared attribute has a column even where no row of the case gives it a value.
    """
    from kleene.spark.types import spark_schema

    made: dict[str, DataFrame] = {}
    number = 0
    for name, rows in case.events.items():
        if numbered:
            rows = [{**row, ROW_NUMBER: number + place} for place, row in enumerate(rows)]
        number += len(rows)
        own = (
            schema if name == "" else schema.declaring_types({name: schema.types[name]} if name in schema.types else {})
        )
        table, _ = to_table(rows, own)
        made[name] = spark.createDataFrame(table, spark_schema(table.schema))
    return made.get("", made)


def with_row_number(schema: Schema) -> Schema:
    return schema.declaring_types(
        {name: {**attributes, ROW_NUMBER: ValueType.INT} for name, attributes in schema.types.items()}
    )


@contextmanager
def warning_codes() -> Iterator[set[str]]:
    """The codes of the warnings that this thread logs."""
    codes: set[str] = set()
    thread = threading.get_ident()

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.thread == thread:
                codes.update(re.findall(r"warning\[(KL\d+)\]", record.getMessage()))

    listener = Listener()
    log = logging.getLogger("kleene")
    log.addHandler(listener)
    try:
        yield codes
    finally:
        log.removeHandler(listener)


# Results out -------------------------------------------------------------------------------------------------------


def bindings(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: row_numbers(value) for name, value in row.items() if name not in COMMON}


def row_numbers(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(row_numbers, value))
    return None if value is None else row_number(value)


def row_number(event: Mapping[str, Any]) -> int:
    number = event[ROW_NUMBER]
    if number is None:
        raise NotApplicable("it names composite events, which have no row number")
    return int(number)


def returned(row: Mapping[str, Any]) -> dict[str, Any]:
    def shown(value: Any) -> Any:
        if isinstance(value, dict):
            return RowNumber(row_number(value))
        if isinstance(value, datetime):
            return datetime_nanoseconds(value)
        return tuple(map(shown, value)) if isinstance(value, list) else value

    return {name: shown(value) for name, value in row.items() if name not in COMMON}


def completing_row(case: Case, row: Mapping[str, Any]) -> int:
    """A compressed row tells its completing event by its end, and by its key where there is one."""
    told = {case.schema.time: row["end"], **(row.get("key") or {})}
    events = [event for stream in case.events.values() for event in stream]
    able = [number for number, event in enumerate(events) if told.items() <= event.items()]
    if len(able) != 1:
        raise NotApplicable("several events could complete a compressed row")
    return able[0]
