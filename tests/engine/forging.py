"""Snapshots that no engine wrote, with a right checksum; each is restored, and where it is taken the engine goes on.

`tests.forged_state` runs them in processes of their own.
"""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
from tests.engine.agreement import OTHERS, STRATA, Pair, case_of, pair_of
from tests.engine.batches import in_time_order, settings_for_streams

from kleene.engine.engine import Engine
from kleene.engine.state import container, snapshots
from kleene.errors import KleeneError
from kleene.pattern.query import BoundQuery
from kleene.plan.program import NotCompilable
from kleene.queries.meaning import meaning_of

EXTREME = [-(2**63), -(2**62), -(2**31), -2, -1, 0, 1, 2, 3, 7, 1000, 2**31, 2**40, 2**62, 2**63 - 1]
_HEADER = struct.Struct("<6sHII")
# Different queries and streams from which snapshots are taken.
PLACES = 200


@cache
def genuine(place: int) -> tuple[Pair, bytes, pa.Table] | None:
    """A pair, a snapshot of its engine half-way, and the events that come after it."""
    names = [*STRATA, *OTHERS]
    draw = random.Random(f"forging {place}")
    pair = pair_of(case_of(draw, names[place % len(names)]))
    if pair is None:
        return None
    engine = Engine(pair.bound, settings_for_streams())
    parts = list(in_time_order(pair.table, pair.bound.schema, 4))
    try:
        for batch, watermark in parts[: draw.choice([2, 3])]:
            engine.process(batch, watermark)
    except NotCompilable:
        return None
    return pair, engine.snapshot(), parts[-1][0]


def tried(seed: int) -> str:
    """What became of one forged snapshot."""
    draw = random.Random(f"forged {seed}")
    while (chosen := genuine(draw.randrange(PLACES))) is None:
        pass
    pair, data, rest = chosen
    kind, snapshot = "", data
    while snapshot == data:
        kind, snapshot = forged(data, pair.bound, draw)
    try:
        engine = Engine.restore(pair.bound, snapshot, settings_for_streams())
    except KleeneError as refusal:
        return f"{kind}: refused by {refusal.code}"
    try:
        engine.process(rest, 2**40)
        engine.process(rest.slice(0, 0), 2**41)
        again = engine.snapshot()
        Engine.restore(pair.bound, again, settings_for_streams())
        engine.finish()
    except KleeneError as refusal:
        return f"{kind}: taken, then {refusal.code}"
    return f"{kind}: taken"


# Snapshots ---------------------------------------------------------------------------------------------------------


def forged(data: bytes, bound: BoundQuery, draw: random.Random) -> tuple[str, bytes]:
    """What was done to a snapshot, and what came of it."""
    kind = draw.choice(["bytes", "description", "values", "values", "values", "columns", "rows", "packed"])
    if kind == "bytes":
        return kind, _with_other_bytes(data, draw)
    if kind == "description":
        return kind, _with_other_description(data, draw)
    if kind == "packed":
        return kind, _packed(data, draw)
    state = snapshots.from_bytes(data, bound.digest, meaning_of(bound))
    tables = {"waiting": state.waiting, "rows": None, "numbers": None, "past": None}
    if state.events is not None:
        tables |= {"rows": state.events.rows, "numbers": state.events.numbers, "past": state.events.past}
    names = [name for name, table in tables.items() if table is not None and table.num_columns]
    for _ in range(draw.choice([1, 1, 2])):
        name = draw.choice(names)
        table = other_table(tables[name], kind, draw)
        # Events that are held and that wait have the same columns; what is wrong with one may be wrong with both.
        both = kind == "columns" and name in ("rows", "waiting") and draw.random() < 0.5
        for other in ("rows", "waiting") if both else ():
            tables[other] = _fitted(tables[other], table.schema)
        tables[name] = table
    events = None
    if state.events is not None:
        events = snapshots.HeldEvents(tables["rows"], tables["numbers"], tables["past"])
    if draw.random() < 0.3:
        # Room for numbers that are too large otherwise.
        state = replace(state, rows=state.rows + draw.choice([100, 2**40]))
        state = replace(state, step=draw.choice([state.step, state.step + 50, state.rows]))
    return kind, snapshots.to_bytes(replace(state, waiting=tables["waiting"], events=events))


def _fitted(table: pa.Table | None, schema: pa.Schema) -> pa.Table | None:
    """The table with these columns, where it can have them."""
    try:
        return table and table.select(schema.names).cast(schema)
    except (pa.ArrowException, KeyError, ValueError):
        return table


def sealed(body: bytes, length: int) -> bytes:
    check = crc32(body, crc32(length.to_bytes(4, "little")))
    return _HEADER.pack(b"KLEENE", container.VERSION, check, length) + body


def _opened(data: bytes) -> tuple[bytes, int]:
    return data[_HEADER.size :], _HEADER.unpack_from(data)[3]


def _with_other_bytes(data: bytes, draw: random.Random) -> bytes:
    body, length = _opened(data)
    # What it says of itself in a third of all cases, otherwise its tables.
    first = 0 if draw.random() < 0.3 else length
    changed = body[:first] + other_bytes(body[first:], draw)
    if draw.random() < 0.1:
        length = draw.choice([0, 1, length + 1, 2**32 - 1, length - 1])
    return sealed(changed, length)


def _with_other_description(data: bytes, draw: random.Random) -> bytes:
    body, length = _opened(data)
    text = other_json(body[:length], draw)
    return sealed(text + body[length:], len(text))


def _packed(data: bytes, draw: random.Random) -> bytes:
    """Tables packed by Arrow, and what a packed buffer says of its length; or a table of rows that take no room."""
    body, length = _opened(data)
    said = json.loads(body[:length])
    at, parts = length, []
    for size in said["parts"]:
        parts.append(body[at : at + size])
        at += size
    place = draw.choice([place for place, part in enumerate(parts) if part])
    if draw.random() < 0.2:
        parts[place] = _many_rows(draw)
    else:
        parts[place] = packed_badly(pa.ipc.open_stream(parts[place]).read_all(), draw)
    said["parts"] = [len(part) for part in parts]
    text = json.dumps(said).encode()
    return sealed(text + b"".join(parts), len(text))


def _many_rows(draw: random.Random) -> bytes:
    """A table that says it has more rows than there are bytes: NULLs of no type take no room."""
    few = 7_777_777
    blob = written(pa.table({"end": pa.nulls(few)}))
    many = draw.choice([2**31 - 1, 2**31, 2**40, 2**62, -1])
    return blob.replace(few.to_bytes(8, "little"), many.to_bytes(8, "little", signed=True))


# Tables ------------------------------------------------------------------------------------------------------------


def written(table: pa.Table, compression: str | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def packed_badly(table: pa.Table, draw: random.Random) -> bytes:
    blob = bytearray(written(table, draw.choice(["zstd", "lz4"])))
    # Where a packed buffer says how long it becomes, or that it is not packed.
    lengths = [at for at in range(0, len(blob) - 8, 8) if 0 < int.from_bytes(blob[at : at + 8], "little") < 10_000]
    unpacked = [at for at in range(0, len(blob) - 8, 8) if blob[at : at + 8] == b"\xff" * 8]
    for at in draw.sample([*lengths, *unpacked], min(3, len(lengths) + len(unpacked))):
        blob[at : at + 8] = draw.choice([1, 2**20, 2**34, 2**40, 2**62, 2**63 - 1, -1, -2]).to_bytes(
            8, "little", signed=True
        )
    return bytes(blob)


def other_bytes(data: bytes, draw: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(draw.choice([1, 1, 2, 8, 40])):
        if changed:
            changed[draw.randrange(len(changed))] = draw.choice([0, 1, 255, 128, draw.randrange(256)])
    if draw.random() < 0.2:
        del changed[draw.randrange(len(changed) + 1) :]
    return bytes(changed)


def other_json(data: bytes, draw: random.Random) -> bytes:
    """What a JSON object says, with one field otherwise."""
    said = json.loads(data)
    name = draw.choice(list(said))
    odd: list[Any] = [None, [], {}, "x", 1.5, True, -1, 2**70, -(2**70), [[]] * 3, "00", {"x": 1}, *EXTREME]
    choice = draw.random()
    if choice > 0.95:
        return draw.choice([b"[" * 100_000, b"\xff\xfe", b"", b"null", b"[]", b'"' * 3, b"9" * 5000])
    if choice < 0.15:
        del said[name]
    elif isinstance(said[name], list) and said[name] and choice < 0.5:
        said[name][draw.randrange(len(said[name]))] = draw.choice(odd)
    elif isinstance(said[name], list):
        said[name] = draw.choice([said[name][:-1], said[name][::-1], [*said[name], 0], [0] * 9, [2**40]])
    elif isinstance(said[name], dict) and said[name] and choice < 0.7:
        said[name][draw.choice(list(said[name]))] = draw.choice(odd)
    else:
        said[name] = draw.choice(odd)
    return json.dumps(said).encode()


def other_table(table: pa.Table, kind: str, draw: random.Random) -> pa.Table:
    return {"values": _other_values, "columns": _other_columns, "rows": _other_rows}[kind](table, draw)


def _other_values(table: pa.Table, draw: random.Random) -> pa.Table:
    at = draw.randrange(table.num_columns)
    column = table.column(at)
    if not table.num_rows:
        return table
    if pa.types.is_integer(column.type) and not column.null_count:
        values = _other_numbers(np.array(column.to_pylist(), np.object_), draw)
        try:
            return table.set_column(at, table.column_names[at], pa.array(values.tolist(), column.type))
        except (pa.ArrowException, OverflowError):
            return table
    listed = column.to_pylist()
    listed[draw.randrange(len(listed))] = draw.choice([None, *listed])
    return table.set_column(at, table.column_names[at], pa.array(listed, column.type))


def _other_numbers(values: Any, draw: random.Random) -> Any:
    """Extreme ones, or others that could be there."""
    how = draw.random()
    if how < 0.15:
        return values + draw.choice([-1, 1, 5, 2**40])
    if how < 0.25:
        return np.array([draw.choice(list(values))] * len(values), np.object_)
    for _ in range(draw.choice([1, 1, 3, len(values)])):
        near = [draw.choice(list(values)) + draw.choice([-3, -1, 0, 1, 2])]
        values[draw.randrange(len(values))] = draw.choice(EXTREME if how < 0.6 else near)
    return values


def _other_columns(table: pa.Table, draw: random.Random) -> pa.Table:
    at = draw.randrange(table.num_columns)
    name = table.column_names[at]
    rows = range(table.num_rows)
    kinds: list[Callable[[], pa.Array]] = [
        lambda: pa.nulls(table.num_rows, table.column(at).type),
        lambda: pa.nulls(table.num_rows),
        lambda: pa.array([float(row) for row in rows]),
        lambda: pa.array([str(row) for row in rows]),
        lambda: pa.array([str(row) for row in rows]).dictionary_encode(),
        lambda: pa.array([[row] for row in rows], pa.list_(pa.int64())),
        lambda: pa.array(list(rows), pa.uint64()),
        lambda: pa.array([2**64 - 1 - row for row in rows], pa.uint64()),
        lambda: pa.array([row - 2 for row in rows], pa.int8()),
        lambda: pa.array([row for row in rows], pa.timestamp("us", "UTC")),  # noqa: C416
        lambda: pa.array([{"x": row} for row in rows], pa.struct({"x": pa.int64()})),
        lambda: pa.array([str(row).encode() for row in rows], pa.binary()),
    ]
    choice = draw.random()
    if choice < 0.2:
        return table.remove_column(at)
    if choice < 0.3:
        return table.rename_columns(
            [f"{other}_" if place == at else other for place, other in enumerate(table.column_names)]
        )
    if choice < 0.4:
        return table.append_column(name, table.column(at))
    if choice < 0.5:
        return table.append_column("other", table.column(at))
    return table.set_column(at, name, draw.choice(kinds)())


def _other_rows(table: pa.Table, draw: random.Random) -> pa.Table:
    rows = list(range(table.num_rows))
    choice = draw.random()
    if choice < 0.3:
        draw.shuffle(rows)
    elif choice < 0.6:
        rows = rows + rows
    elif choice < 0.8:
        rows = rows[: draw.randint(0, len(rows))]
    else:
        rows = rows * 70
    return table.take(pa.array(rows, pa.int64()))
