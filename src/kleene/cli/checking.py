"""`kleene check`: parse and bind query files, and show what is wrong with each."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from kleene.cli.inputs import params_from, read_text, schema_from
from kleene.cli.running import DATA, USAGE
from kleene.errors import CompositionCycle, KleeneError, QueryError, UnreadableFile
from kleene.lang import parse_declarations
from kleene.pattern import Schema
from kleene.queries.any_query import AnyQuery, read_query
from kleene.queries.feeding import in_dependency_order
from kleene.queries.parameters import check_parameters


def check_files(
    files: Sequence[str],
    schema_file: Path | None,
    events: Sequence[str],
    params: Sequence[str],
    format: str | None,
    separator: str | None,
) -> int:
    """Check each file; returns the exit code."""
    values = params_from(params)
    queries: list[AnyQuery] = []
    code = 0
    for path in files:
        try:
            text, origin = read_text(path)
        except UnreadableFile as error:
            print(error.render(), file=sys.stderr)
            code = USAGE
            continue
        queries.append(read_query(text, None if path == "-" else Path(path).stem, values, origin=origin))
    schema = _schema(schema_file, events, queries, format, separator)
    parsed = []
    for query in queries:
        try:
            if _only_declares(query):
                print(f"ok: {query.origin}")
            else:
                parsed.append(query)
        except KleeneError as error:
            print(error.render(), file=sys.stderr)
            code = max(code, DATA)
    if parsed and not code:
        # A file that cannot be read or parsed may be the one that has the parameter.
        check_parameters(parsed, schema)
    return max(code, _bind_all(parsed, schema))


def _only_declares(query: AnyQuery) -> bool:
    """Whether a file is a schema: declarations and no query."""
    try:
        query.tree  # noqa: B018 - parsed now
        return False
    except QueryError as error:
        try:
            declarations = parse_declarations(query.text)
        except QueryError:
            raise error from None
        try:
            Schema().declaring(declarations)
        except QueryError as wrong:
            wrong.locate(query.text, query.origin)
            raise
        return True


def _schema(
    path: Path | None, events: Sequence[str], queries: Sequence[AnyQuery], format: str | None, separator: str | None
) -> Schema:
    schema = schema_from(path)
    if not events:
        return schema
    from kleene.cli.inputs import events_from
    from kleene.frames.arrow import schema_on
    from kleene.frames.streams import to_table

    declared = schema
    for query in queries:
        try:
            declared = declared.declaring(query.tree.declarations)
        except QueryError:
            continue  # reported when the query itself is checked
    inputs = events_from(events, declared, format, separator)
    table, declared = to_table(inputs.events, declared)
    return schema_on(table.schema, declared)


def _bind_all(queries: Sequence[AnyQuery], schema: Schema) -> int:
    """Bind each query; those that make a stream (INTO, publish) before those that read it."""
    if not queries:
        return 0
    try:
        order = in_dependency_order(queries, schema)
    except CompositionCycle as error:
        print(error.render(), file=sys.stderr)
        return DATA
    code = 0
    for _, query in order:
        try:
            bound = query.bind(schema, checking=True)
        except KleeneError as error:
            print(error.render(), file=sys.stderr)
            code = DATA
            continue
        for warning in bound.warnings:
            print(warning.render(), file=sys.stderr)
        print(f"ok: {query.origin}")
        schema = schema.adding_types(bound.made_types)
    return code
