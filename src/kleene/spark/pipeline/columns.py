"""Whether sources have the columns that the schema names, and queries the sources that they read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kleene.errors import SourceColumn, UnknownName, did_you_mean
from kleene.frames.streams import reads
from kleene.pattern.schema import Schema
from kleene.spark.pipeline.reading import Pipeline

Columns = Mapping[str, Sequence[str]]


def is_one_stream(columns: Columns, schema: Schema) -> bool:
    """Whether there is one source with all types in it; otherwise each source without types is a type of its own."""
    return len(columns) == 1 and (schema.constant_type is not None or _typed(columns, schema) != set())


def check_columns(pipeline: Pipeline, columns: Columns) -> None:
    """Raise what is wrong, at its place in the file.

    columns   the names of each source's columns, renamed
    """
    schema = pipeline.schema
    used = set(columns)
    if not is_one_stream(columns, schema):
        used = _typed(columns, schema) | ({*columns} & {*reads(pipeline.queries, schema)})
        if not _typed(columns, schema):
            _check_reads(pipeline, columns, schema, used)
    for number, source in enumerate(pipeline.model.sources):
        if source.name in used:
            _check_roles(pipeline, number, columns[source.name], schema)


def _typed(columns: Columns, schema: Schema) -> set[str]:
    """The sources with a column of types."""
    return {name for name, names in columns.items() if schema.constant_type is None and schema.type in names}


def _check_reads(pipeline: Pipeline, columns: Columns, schema: Schema, used: set[str]) -> None:
    query_streams = {name for query in pipeline.queries for name in query.tree.makes}
    for number, query in enumerate(pipeline.queries):
        for name in reads([query], schema):
            if name in columns or name in query_streams or (name in schema.types and used):
                continue
            near = did_you_mean(name, {*columns, *query_streams}) or ""
            untyped = f"no source has the column `{schema.type}`, so each is a stream of its own name"
            raise pipeline.sheet.error(
                UnknownName,
                f"query `{query.name}` reads `{name}`: there is no source of that name, and no query makes it",
                ("queries", number),
                near if near.startswith("did") else untyped,
            )


def _check_roles(pipeline: Pipeline, number: int, names: Sequence[str], schema: Schema) -> None:
    source = pipeline.model.sources[number]
    for role in ("time", "start", "tie_breaker"):
        name = getattr(schema, role)
        if name is None or name in names:
            continue
        said = role.replace("_", "-")
        near = did_you_mean(name, names)
        rename = f"`[schema] {role}` names another column, `columns` renames one"
        path = ("schema", role) if ("schema", role) in pipeline.sheet.places else ("sources", number)
        raise pipeline.sheet.error(
            SourceColumn,
            f"source `{source.name}` has no column `{name}` for the {said}",
            path,
            f"{near} {rename}" if near and near.startswith("did") else "; ".join(filter(None, (near, rename))),
            value=len(path) == 2 and path[0] == "schema",
        )
