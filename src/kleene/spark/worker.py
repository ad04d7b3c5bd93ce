"""What a task does with packed events: read the queries again from their text, and run them slot by slot.

Only plain data travels: texts, names, parameters, the description of the columns. Kleene itself must be there where the
tasks run, and `kleene.spark.sending` says so where it is not.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from kleene.errors import KleeneError
from kleene.frames.arrow import as_integers, fitted
from kleene.frames.numbers import to_arrow, to_numpy
from kleene.lang import parse_declarations
from kleene.lang.format import format_declaration
from kleene.pattern.schema import Schema
from kleene.pattern.types import ValueType
from kleene.plan.settings import Settings, from_plain, to_plain
from kleene.queries.any_query import AnyQuery, read_query
from kleene.spark.packing import Slices, from_bytes, to_bytes, unpack
from kleene.spark.slot import RANK, OutputChunk, SlotGroup, TaskContext, slot_outputs

# The description of a task, from `task_spec`: plain enough to be JSON but for parameters and bytes.
TaskSpec = Mapping[str, Any]

# What leaves a task that serves several outputs: of which query, what, how many rows, and the rows as Arrow bytes.
ENVELOPE = pa.schema([("query", pa.int32()), ("kind", pa.string()), ("number", pa.int64()), ("rows", pa.binary())])
ENVELOPE_DDL = "query int, kind string, number bigint, rows binary"

# Rows that are handed to the JVM at a time.
_MOST_ROWS = 1 << 14


def task_spec(
    queries: Sequence[AnyQuery],
    schema: Schema,
    columns: pa.Schema,
    parts: Iterable[SlotGroup],
    *,
    several: bool = False,
    output: str | None = None,
    returned: pa.Schema | None = None,
    settings: Settings | None = None,
) -> TaskSpec:
    """The description of a task.

    columns    the events' columns as the driver knows them
    output     `matches`, `timeouts` or `compressed`; None: all of them, in envelopes
    returned   the columns of that output, as Spark expects them
    """
    return {
        "queries": [_described(query) for query in queries],
        "schema": describe_schema(schema),
        "columns": plain_schema(columns),
        "parts": [asdict(part) for part in parts],
        "several": several,
        "output": output,
        "returned": None if returned is None else plain_schema(returned),
        "settings": to_plain(settings or Settings()),
    }


def task(spec: TaskSpec) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that Spark calls with the packed events of a task, by slot and then by time."""

    def on_packed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return run(spec, batches)

    return on_packed


def run(spec: TaskSpec, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The output of the queries on some slots."""
    work = work_from(spec)
    returned = None if spec["returned"] is None else _arrow_schema(spec["returned"])
    try:
        with without_repeated_warnings():
            for slot, pieces in unpack(batches):
                for chunk in slot_outputs(work, slot, pieces):
                    if returned is None:
                        yield from _enveloped(chunk)
                    elif chunk.kind == spec["output"] and chunk.query == 0 and chunk.rows is not None:
                        yield from fitted(chunk.rows, returned).to_batches(_MOST_ROWS)
    except KleeneError as error:
        # Spark passes on the text of the traceback, in which our own frames would only hide the message.
        raise error.with_traceback(None) from None


def work_from(spec: TaskSpec) -> TaskContext:
    """The queries, columns and slots that a task spec describes."""
    return TaskContext(
        [read_query(**described) for described in spec["queries"]],
        schema_from(spec["schema"]),
        _arrow_schema(spec["columns"]),
        [_part(plain) for plain in spec["parts"]],
        several=spec["several"],
        settings=from_plain(spec["settings"]),
    )


def _part(plain: Mapping[str, Any]) -> SlotGroup:
    slices = plain["slices"]
    return SlotGroup(**{**plain, "slices": None if slices is None else Slices(**slices)})


def _enveloped(chunk: OutputChunk) -> Iterator[pa.RecordBatch]:
    for number, rows in portions(chunk):
        values = [[chunk.query], [chunk.kind], [number], [rows]]
        columns = [pa.array(value, field.type) for value, field in zip(values, ENVELOPE, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, schema=ENVELOPE)


def portions(chunk: OutputChunk) -> Iterator[tuple[int, bytes | None]]:
    """The rows of a chunk in parts that fit an envelope: the number of rows, and the rows as Arrow bytes."""
    if chunk.rows is None:
        yield chunk.number, None
        return
    for first in range(0, chunk.number, _MOST_ROWS):
        rows = chunk.rows.slice(first, _MOST_ROWS)
        yield rows.num_rows, to_bytes(rows)


def opener(returned: bytes) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that takes rows with these columns out of their envelopes."""

    def on_envelopes(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return opened(batches, returned)

    return on_envelopes


def opened(batches: Iterator[pa.RecordBatch], returned: bytes) -> Iterator[pa.RecordBatch]:
    columns = _arrow_schema(returned)
    for batch in batches:
        for rows in batch.column(ENVELOPE.get_field_index("rows")):
            yield from fitted(from_bytes(rows.as_buffer()), columns).to_batches(_MOST_ROWS)


def chooser(start: int, end: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that chooses matches that do not overlap, offered in order; these columns say when they are."""

    def on_matches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return chosen(batches, start, end)

    return on_matches


def chosen(batches: Iterator[pa.RecordBatch], start: int, end: int) -> Iterator[pa.RecordBatch]:
    from kleene.engine.output.overlap import Chooser

    choosing = Chooser()
    for batch in batches:
        flags = choosing.chosen(*(to_numpy(as_integers(batch.column(place))) for place in (start, end)))
        yield batch.filter(to_arrow(flags)).drop_columns([RANK])


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
        "streams": schema.streams,
        "classes": {name: format_declaration(declared) for name, declared in schema.classes.items()},
    }


def schema_from(description: Mapping[str, Any]) -> Schema:
    """The schema that was described."""
    read = {name: parse_declarations(text)[0] for name, text in description["classes"].items()}
    types, made_types = _typed(description["types"]), _typed(description["made_types"])
    return Schema(**{**description, "types": types, "made_types": made_types, "classes": read})


def _described(query: AnyQuery) -> dict[str, Any]:
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


def plain_schema(columns: pa.Schema) -> bytes:
    """The description of columns, as it travels."""
    return bytes(columns.serialize().to_pybytes())


def _arrow_schema(serialized: bytes) -> pa.Schema:
    return pa.ipc.read_schema(pa.BufferReader(serialized))


@contextmanager
def without_repeated_warnings() -> Iterator[None]:
    """The driver has given the query's warnings; every bucket would give them again."""
    log = logging.getLogger("kleene")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)
