"""One input from several streams: each stream's events keep their own attributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from kleene.errors import MissingStream, did_you_mean
from kleene.frames.arrow import column_types
from kleene.frames.kinds import Kind, kind_of, to_arrow
from kleene.pattern.schema import Schema
from kleene.pattern.types import ValueType


def to_table(events: Any, schema: Schema, reads: tuple[str, ...] | None = None) -> tuple[pa.Table, Schema]:
    """The events as one table, and the schema that describes it.

    A dict of streams is put together: a stream without a type column has its name as the type of all its events, and
    its columns as that type's attributes. Streams that the queries do not name (`reads`) are no part of their input.
    """
    if kind_of(events) is not Kind.STREAMS:
        return to_arrow(events), schema
    return _together(events, schema, reads)


def _together(
    streams: Mapping[str, Any], schema: Schema, reads: tuple[str, ...] | None
) -> tuple[pa.Table, Schema]:
    tables: list[pa.Table] = []
    types: dict[str, Mapping[str, ValueType]] = dict(schema.types)
    used: set[str] = set()
    for name, stream in streams.items():
        table = to_arrow(stream)
        if schema.type in table.column_names:
            tables.append(table)
            used.add(name)
            continue
        if reads is not None and name not in reads:
            continue
        used.add(name)
        types.setdefault(name, column_types(table.schema))
        tables.append(table.append_column(schema.type, pa.array([name] * table.num_rows, pa.string())))
    if not tables:
        wanted = (reads or ("?",))[0]
        raise MissingStream(f"no stream `{wanted}` was given", hint=did_you_mean(wanted, streams))
    return pa.concat_tables(tables, promote_options="permissive"), schema.declaring_types(types)

