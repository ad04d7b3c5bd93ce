"""Case files on executors that give tables: a row number travels with the events, and results say which rows they are.

The number is a column of every type, so it stands in the structs of a result. Streams are sets of values: where a query
reads one, no number is added, which would tell equal events apart.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from kleene.algebra.query import StreamQuery
from kleene.lang.tree import OutputMode, Query
from kleene.pattern.clock import datetime_nanoseconds
from kleene.pattern.schema import Schema
from kleene.pattern.types import ValueType
from kleene.queries.any_query import AnyQuery
from kleene.testing.case_check import Observed, RowNumber, stream_values
from kleene.testing.cases import Case

# The last of all columns in canonical order, so that it decides nothing that another column decides.
ROW_NUMBER = "zzz_row_number"
COMMON = ("match_id", "query", "start", "end", "key", "stream", "closed", "reached")


class NotApplicable(Exception):
    """The case asks for something that a table of results does not show."""


# Events in ---------------------------------------------------------------------------------------------------------


def numbered(case: Case) -> dict[str, list[dict[str, Any]]]:
    """The rows of each stream, numbered through all streams. An error may list the columns, so there none is added."""
    if not _is_numbered(case):
        return case.events
    made: dict[str, list[dict[str, Any]]] = {}
    number = 0
    for name, rows in case.events.items():
        made[name] = [{**row, ROW_NUMBER: number + place} for place, row in enumerate(rows)]
        number += len(rows)
    return made


def schema_of(case: Case) -> Schema:
    return with_row_number(case.schema) if _is_numbered(case) else case.schema


def _is_numbered(case: Case) -> bool:
    return case.error is None and not case.of_streams


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


def observed(
    query: AnyQuery, matches: Sequence[Mapping[str, Any]], late: Sequence[Mapping[str, Any]], warnings: frozenset[str]
) -> Observed:
    """What a query's rows say, in the words of a case."""
    if isinstance(query, StreamQuery):
        return Observed(stream=list(map(stream_values, matches)), warnings=warnings)
    parsed = query.tree
    output = parsed.output if isinstance(parsed, Query) else None
    is_compressed = output is not None and output.mode is OutputMode.COMPRESSED
    return Observed(
        [] if is_compressed or parsed.returns is not None else [bindings(row) for row in matches],
        None if parsed.returns is None else [returned(row) for row in matches],
        [(row_number(row["last"]), int(row["count"])) for row in matches] if is_compressed else None,
        [{**bindings(row), "closed": row["closed"]} for row in late if row["stream"] == parsed.timeouts],
        warnings,
    )


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
