"""`kleene match`: read files, run queries, show the matches and what was set aside."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import typer

from kleene.api import outputs
from kleene.cli.inputs import events_from, params_from, query_from, schema_from
from kleene.cli.showing import print_matches
from kleene.cli.warming import working
from kleene.frames.files import write_stream, write_table
from kleene.frames.rows import BadRow
from kleene.frames.streams import reads, to_table
from kleene.frames.unseen import with_named_columns
from kleene.pattern import Schema
from kleene.queries.any_query import AnyQuery
from kleene.queries.feeding import declared_together
from kleene.queries.parameters import check_parameters

_SHOWN_BAD_ROWS = 5
_SHOWN_MATCHES = 50
# Rows have no numbers on Spark.
_NOWHERE = -1


@dataclass(frozen=True)
class MatchRequest:
    """The arguments of `kleene match`."""

    queries: Sequence[str]
    events: Sequence[str]
    schema: Path | None = None
    params: Sequence[str] = ()
    format: str | None = None
    output: Path | None = None
    timeouts: Path | None = None
    bad_rows: Path | None = None
    on_spark: bool = False
    limit: int | None = None
    why: bool = False
    input_format: str | None = None
    separator: str | None = None


def match_files(request: MatchRequest) -> None:
    if request.format == "table" and request.output is not None:
        raise typer.BadParameter("a table is for the terminal: leave -o out, or choose jsonl, csv or parquet")
    if request.why and request.on_spark:
        raise typer.BadParameter("counting is done in this process: leave `--on spark` out", param_hint="--why")
    params = params_from(request.params)
    queries = [query_from(argument, params) for argument in request.queries]
    schema = schema_from(request.schema)
    declared = declared_together(schema, queries)
    check_parameters(queries, declared)
    if request.timeouts is not None and all(query.tree.timeouts is None for query in queries):
        raise typer.BadParameter("the query has no TIMEOUTS INTO …", param_hint="--timeouts")
    began = time.perf_counter()
    with working("reading events"):
        inputs = events_from(request.events, declared, request.input_format, request.separator)
    events = with_named_columns(inputs.events, queries, declared)
    with working("finding matches"):
        query = queries if len(queries) > 1 else queries[0]
        if request.on_spark:
            from kleene.cli.on_spark import find_on_spark

            _report_unseen_types(events, queries, schema)
            query_outputs = find_on_spark(events, inputs.parquet, query, schema, declared)
        else:
            query_outputs = outputs(events, query, schema=schema)
    seconds = time.perf_counter() - began
    bad = [*inputs.bad_rows, *(("", row) for row in _bad_rows(query_outputs.bad_rows))]
    _write_matches(query_outputs.matches, declared, request)
    if request.timeouts is not None:
        write_table(query_outputs.timeouts, request.timeouts)
    if request.bad_rows is not None:
        write_table(_bad_row_table(bad), request.bad_rows)
    count = inputs.count - query_outputs.bad_rows.num_rows
    _summarise(count, bad, query_outputs.matches.num_rows, seconds, several_files=len(request.events) > 1)
    if request.why:
        _say_why(events, queries, schema)


def _say_why(events: Any, queries: Sequence[AnyQuery], schema: Schema) -> None:
    from kleene.diagnosis import diagnose

    if len(queries) > 1:
        print("why is not available: several queries were given, and it speaks of one", file=sys.stderr)
        return
    with working("counting"):
        text = diagnose(events, queries[0], schema=schema)
    print(text, file=sys.stderr)


def _report_unseen_types(events: Any, queries: Sequence[AnyQuery], schema: Schema) -> None:
    """Warn of types that no event has, before the run: a task of Spark sees only a part of the events."""
    from kleene.evaluation import report_unseen_types

    declared = declared_together(schema, queries)
    table, known = to_table(events, declared, reads(queries, declared))
    report_unseen_types(queries, table, known, frozenset(events) if isinstance(events, dict) else frozenset())


# Output ------------------------------------------------------------------------------------------------------------


def _write_matches(matches: pa.Table, schema: Schema, request: MatchRequest) -> None:
    shown = matches if request.limit is None else matches.slice(0, request.limit)
    if request.output is not None:
        write_table(shown, request.output, request.format)
        return
    format = request.format or ("table" if sys.stdout.isatty() else "jsonl")
    if format == "table":
        limit = _SHOWN_MATCHES if request.limit is None else request.limit
        print_matches(matches, schema, limit=limit)
        return
    if format == "parquet" and sys.stdout.isatty():
        raise typer.BadParameter("Parquet is not for a terminal: name a file with -o", param_hint="--format")
    sys.stdout.flush()
    write_stream(shown, sys.stdout.buffer, format)
    sys.stdout.buffer.flush()


def _bad_rows(table: pa.Table) -> list[BadRow]:
    return [
        BadRow(_NOWHERE if row["row"] is None else row["row"], row["reason"], row["line"], row["text"])
        for row in table.to_pylist()
    ]


def _bad_row_table(bad: Sequence[tuple[str, BadRow]]) -> pa.Table:
    columns = {
        "file": pa.array([file or None for file, _ in bad], pa.string()),
        "row": pa.array([None if row.index == _NOWHERE else row.index for _, row in bad], pa.int64()),
        "line": pa.array([row.line for _, row in bad], pa.int64()),
        "reason": pa.array([row.reason for _, row in bad], pa.string()),
        "text": pa.array([row.text for _, row in bad], pa.string()),
    }
    return pa.table(columns)


def _summarise(
    events: int, bad: Sequence[tuple[str, BadRow]], matches: int, seconds: float, *, several_files: bool
) -> None:
    parts = [_counted(events, "event"), _counted(len(bad), "bad row"), _counted(matches, "match", "matches")]
    print(f"{', '.join(parts)} in {seconds:.1f} s", file=sys.stderr)
    for file, row in bad[:_SHOWN_BAD_ROWS]:
        print(f"  {file + ': ' if file and several_files else ''}{_described(row)}", file=sys.stderr)
    if len(bad) > _SHOWN_BAD_ROWS:
        print(f"  … and {len(bad) - _SHOWN_BAD_ROWS:,} more (--bad-rows FILE writes them all)", file=sys.stderr)


def _described(row: BadRow) -> str:
    return f"{_place(row)}{row.reason}" + (f": {row.text}" if row.text else "")


def _place(row: BadRow) -> str:
    if row.line is not None:
        return f"line {row.line}: "
    return "" if row.index == _NOWHERE else f"row {row.index + 1}: "


def _counted(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"
