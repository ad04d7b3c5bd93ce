"""An engine's state as bytes: Arrow IPC streams behind a header that says which version wrote them.

Nothing is pickled. A blob of another version, of another query, or that is damaged is refused with an error.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from zlib import crc32

import pyarrow as pa

from kleene.errors import BadSnapshot

_MAGIC = b"KLEENE"
VERSION = 2
# Magic, version, checksum of everything that follows, length of the description.
_HEADER = struct.Struct("<6sHII")


@dataclass(frozen=True, eq=False)
class Held:
    """Events of open windows, and numbers that cannot be told from them; one row an event in both."""

    rows: pa.Table
    numbers: pa.Table
    # When all events ended, where that is asked for.
    past: pa.Table | None = None


@dataclass(frozen=True, eq=False)
class State:
    digest: bytes
    watermark: int | None
    # How many rows came in, and how many steps time has made.
    rows: int
    step: int
    waiting: pa.Table | None
    held: Held | None


def to_bytes(state: State) -> bytes:
    held = state.held
    tables = [state.waiting] if held is None else [state.waiting, held.rows, held.numbers]
    if held is not None and held.past is not None:
        tables.append(held.past)
    blobs = [b"" if table is None else _written(table) for table in tables]
    description = {
        "digest": state.digest.hex(),
        "watermark": state.watermark,
        "rows": state.rows,
        "step": state.step,
        "parts": [len(blob) for blob in blobs],
    }
    said = json.dumps(description).encode()
    body = said + b"".join(blobs)
    return _HEADER.pack(_MAGIC, VERSION, _checksum(body, len(said)), len(said)) + body


def from_bytes(data: bytes, digest: bytes) -> State:
    """The state that was written, for the query with this digest."""
    if len(data) < _HEADER.size or not data.startswith(_MAGIC):
        raise BadSnapshot("this is no snapshot of an engine")
    _, version, checksum, length = _HEADER.unpack_from(data)
    if version != VERSION:
        raise BadSnapshot(f"this snapshot has version {version}, and this Kleene reads version {VERSION}")
    body = memoryview(data)[_HEADER.size :]
    if _checksum(body, length) != checksum:
        raise BadSnapshot("this snapshot is damaged")
    said = json.loads(bytes(body[:length]))
    if bytes.fromhex(said["digest"]) != digest:
        raise BadSnapshot(
            "this snapshot is of another query",
            hint="restore it with the same text, parameters and classes; rules and budgets may differ",
        )
    tables: list[pa.Table | None] = []
    at = length
    for size in said["parts"]:
        tables.append(_read(body[at : at + size]) if size else None)
        at += size
    held = None
    if len(tables) > 1:
        rows, numbers, *past = tables[1:]
        assert rows is not None
        assert numbers is not None
        held = Held(rows, numbers, *past)
    return State(digest, said["watermark"], said["rows"], said["step"], tables[0], held)


def _checksum(body: bytes | memoryview, length: int) -> int:
    return crc32(body, crc32(length.to_bytes(4, "little")))


def _written(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    # A dictionary that grew from batch to batch is written once, with only what is used left to the reader.
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.unify_dictionaries().combine_chunks())
    return bytes(sink.getvalue().to_pybytes())


def _read(blob: memoryview) -> pa.Table:
    with pa.ipc.open_stream(pa.py_buffer(bytes(blob))) as reader:
        return reader.read_all()
