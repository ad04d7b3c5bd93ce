"""What a task does with a bucket: read the queries again from their text, and run them on the bucket's events.

Only plain data travels: texts, names, parameters, the description of the columns. Kleene itself must be installed where
the tasks run.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from kleene.errors import KleeneError
from kleene.evaluation import evaluate
from kleene.lang import parse_declarations
from kleene.lang.format import format_declaration
from kleene.pattern.query import Query
from kleene.pattern.schema import Schema
from kleene.pattern.types import ValueType
from kleene.plan.settings import Budget, Policy, Settings

# What a task is told: made by `errand`, plain enough to be JSON but for parameters and bytes.
Errand = Mapping[str, Any]


def errand(
    queries: Sequence[Query],
    schema: Schema,
    columns: pa.Schema,
    *,
    several: bool,
    output: str,
    returned: pa.Schema,
    settings: Settings | None = None,
) -> Errand:
    """What a task must know.

    columns    the events' columns as the driver knows them
    output     `matches` or `timeouts`
    returned   the columns of that output, as Spark expects them
    """
    return {
        "queries": [_described(query) for query in queries],
        "schema": describe_schema(schema),
        "columns": columns.serialize().to_pybytes(),
        "several": several,
        "output": output,
        "returned": returned.serialize().to_pybytes(),
        "settings": _plain_settings(settings or Settings()),
    }


def task(given: Errand) -> Callable[[pa.Table], pa.Table]:
    """The function that Spark calls with each bucket."""

    def on_bucket(events: pa.Table) -> pa.Table:
        return run(given, events)

    return on_bucket


def run(given: Errand, events: pa.Table) -> pa.Table:
    """One output of the queries on one bucket."""
    # Columns come numbered, timestamps in the session's time zone, and strings as wide as its settings say.
    columns = _arrow_schema(given["columns"])
    table = events.rename_columns(columns.names).cast(columns)
    queries = [Query(**described) for described in given["queries"]]
    try:
        with _quietly():
            made = evaluate(
                table,
                queries,
                schema=schema_from(given["schema"]),
                several=given["several"],
                settings=_settings(given["settings"]),
            )
    except KleeneError as error:
        # Spark passes on the text of the traceback, in which our own frames would only hide the message.
        raise error.with_traceback(None) from None
    found: pa.Table = getattr(made, given["output"])
    return found.cast(_arrow_schema(given["returned"]))


def describe_schema(schema: Schema) -> Mapping[str, Any]:
    """A schema in plain data, without its clock and its columns: the data says these again."""
    return {
        "type": schema.type,
        "time": schema.time,
        "tie_breaker": schema.tie_breaker,
        "start": schema.start,
        "constant_type": schema.constant_type,
        "tick": schema.tick,
        "types": _plain(schema.types),
        "made_types": _plain(schema.made_types),
        "classes": {name: format_declaration(declared) for name, declared in schema.classes.items()},
    }


def schema_from(description: Mapping[str, Any]) -> Schema:
    """The schema that was described."""
    read = {name: parse_declarations(text)[0] for name, text in description["classes"].items()}
    types, made = _typed(description["types"]), _typed(description["made_types"])
    return Schema(**{**description, "types": types, "made_types": made, "classes": read})


def _plain_settings(settings: Settings) -> Mapping[str, Any]:
    budget = settings.budget
    return {
        "without": sorted(settings.without),
        "graphs": settings.graphs,
        "matches_per_event": budget.matches_per_event,
        "runs_per_partition": budget.runs_per_partition,
        "policy": budget.policy.name,
    }


def _settings(plain: Mapping[str, Any]) -> Settings:
    budget = Budget(plain["matches_per_event"], plain["runs_per_partition"], policy=Policy[plain["policy"]])
    return Settings(frozenset(plain["without"]), budget, plain["graphs"])


def _described(query: Query) -> dict[str, Any]:
    return {
        "text": query.text,
        "name": query.name,
        "params": dict(query.params),
        "spelling": query.spelling,
        "origin": query.origin,
    }


def _plain(types: Mapping[str, Mapping[str, ValueType]]) -> dict[str, dict[str, str]]:
    return {name: {column: kind.value for column, kind in columns.items()} for name, columns in types.items()}


def _typed(types: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, ValueType]]:
    return {name: {column: ValueType(kind) for column, kind in columns.items()} for name, columns in types.items()}


def _arrow_schema(serialized: bytes) -> pa.Schema:
    return pa.ipc.read_schema(pa.BufferReader(serialized))


@contextmanager
def _quietly() -> Iterator[None]:
    """The driver has given the query's warnings; every bucket would give them again."""
    log = logging.getLogger("kleene")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)
