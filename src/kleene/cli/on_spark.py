"""`kleene match --on spark`: the events of files as data frames of a local Spark, and its answers as tables.

Parquet is read on Spark, in parallel and only the columns and rows that the query needs. A table that was read from
another kind of file is put into one: handed over row by row, two million events take longer than all the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pyarrow as pa

from kleene.api import outputs
from kleene.errors import UnusableColumn
from kleene.frames.arrow import empty_table
from kleene.frames.outputs import Outputs
from kleene.pattern import Schema
from kleene.queries.any_query import AnyQuery

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Tables with fewer rows are handed to Spark directly, without a file.
_WORTH_A_FILE = 100_000
# Characters that Spark reads as a glob pattern in a path.
_PATTERNS = frozenset("*?[]{}\\,")
_NO_BAD_ROWS = pa.schema([("row", pa.int64()), ("line", pa.int64()), ("reason", pa.string()), ("text", pa.string())])


def find_on_spark(
    events: pa.Table | Mapping[str, pa.Table],
    files: Mapping[str, Sequence[str]],
    query: AnyQuery | Sequence[AnyQuery],
    schema: Schema,
    declared: Schema,
) -> Outputs[pa.Table]:
    """The outputs as Arrow tables.

    files      the Parquet files that hold the events, by stream; streams that come from other files are missing
    declared   the schema with what the queries declare
    """
    from kleene.spark.session import brief_session

    session = brief_session()
    tables = events if isinstance(events, Mapping) else {"": events}
    with ExitStack() as stack:
        frames = {name: _frame(session, table, files.get(name, ()), stack) for name, table in tables.items()}
        query_outputs = outputs(frames if isinstance(events, Mapping) else frames[""], query, schema=schema)
        timeouts = None if query_outputs.timeouts is None else query_outputs.timeouts.toArrow()
        # Collecting bad rows is another pass over the events; it is left out where there can be none.
        perhaps_bad = any(_may_hold_bad_rows(table, declared) for table in tables.values())
        bad = query_outputs.bad_rows.toArrow() if perhaps_bad else empty_table(_NO_BAD_ROWS)
        return Outputs(query_outputs.matches.toArrow(), timeouts, bad)


def _may_hold_bad_rows(table: pa.Table, declared: Schema) -> bool:
    own = [table.column(name) for name in declared.own_columns if name in table.column_names]
    return declared.start is not None or any(column.null_count for column in own)


def _frame(session: SparkSession, table: pa.Table, files: Sequence[str], stack: ExitStack) -> DataFrame:
    from kleene.spark.types import spark_schema

    try:
        columns = spark_schema(table.schema)
    except TypeError as kind:
        raise UnusableColumn(f"Spark has no column of type {kind}", hint="drop or convert it") from None
    if not files and table.num_rows >= _WORTH_A_FILE:
        import pyarrow.parquet as pq

        file = Path(stack.enter_context(TemporaryDirectory(prefix="kleene-"))) / "events.parquet"
        pq.write_table(table, file, compression="none")
        files = [str(file)]
    read = _read(session, files, table.schema) if files and table.num_rows else None
    # In one chunk: Spark loses the rows behind an empty one.
    return session.createDataFrame(table.combine_chunks(), columns) if read is None else read


def _read(session: SparkSession, files: Sequence[str], columns: pa.Schema) -> DataFrame | None:
    """The files as Spark reads them; None where it would not see exactly these columns."""
    from pyspark.errors import PySparkException

    from kleene.spark.parquet.opening import open_parquet
    from kleene.spark.types import arrow_schema

    places = [f"file://{Path(file).absolute()}" for file in files]
    if any(_PATTERNS.intersection(place) for place in places):
        return None
    try:
        frame = open_parquet(session, places, {})
        same = [(field.name, field.type) for field in arrow_schema(frame.schema)] == [
            (field.name, field.type) for field in columns
        ]
    except (PySparkException, UnusableColumn):
        return None
    return frame if same else None
