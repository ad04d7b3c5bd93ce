"""An engine's state as bytes: Arrow IPC streams behind a header that says which version wrote them.

Nothing is pickled. A blob of another version, of another query, of columns that mean something else, or that is
damaged is refused with an error, and so is one that says what no engine writes (`state_contract`).
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import pyarrow as pa

from kleene.errors import BadSnapshot
from kleene.frames.kept_tables import read_table
from kleene.pattern.meaning import first_change, is_meaning, is_whole

_MAGIC = b"KLEENE"
VERSION = 2
# Magic, version, checksum of everything that follows, length of the description.
_HEADER = struct.Struct("<6sHII")
_PARTS = ("events that wait", "events held", "their numbers", "the past")


@dataclass(frozen=True, eq=False)
class HeldEvents:
    """Events of open windows, and numbers that cannot be told from them; one row an event in both."""

    rows: pa.Table
    numbers: pa.Table
    # The ends of all past events, for queries that keep them (`keeps_past`).
    past: pa.Table | None = None


@dataclass(frozen=True, eq=False)
class Snapshot:
    digest: bytes
    # What its events and its output mean (`pattern.meaning`); None: kept by a Kleene that did not say so.
    meaning: Mapping[str, Any] | None
    watermark: int | None
    # How many rows came in, and how many steps time has made.
    rows: int
    step: int
    waiting: pa.Table | None
    held: HeldEvents | None


def to_bytes(state: Snapshot) -> bytes:
    held = state.held
    tables = [state.waiting] if held is None else [state.waiting, held.rows, held.numbers]
    if held is not None and held.past is not None:
        tables.append(held.past)
    blobs = [b"" if table is None else _written(table) for table in tables]
    description = {
        "digest": state.digest.hex(),
        "meaning": state.meaning,
        "watermark": state.watermark,
        "rows": state.rows,
        "step": state.step,
        "parts": [len(blob) for blob in blobs],
    }
    said = json.dumps(description).encode()
    body = said + b"".join(blobs)
    return _HEADER.pack(_MAGIC, VERSION, _checksum(body, len(said)), len(said)) + body


def from_bytes(data: bytes, digest: bytes, meaning: Mapping[str, Any]) -> Snapshot:
    """The state that was written, for the query with this digest, on events with this meaning."""
    if len(data) < _HEADER.size or not data.startswith(_MAGIC):
        raise BadSnapshot("this is no snapshot of an engine")
    _, version, checksum, length = _HEADER.unpack_from(data)
    if version != VERSION:
        raise BadSnapshot(f"this snapshot has version {version}, and this Kleene reads version {VERSION}")
    body = memoryview(data)[_HEADER.size :]
    if _checksum(body, length) != checksum:
        raise BadSnapshot("this snapshot is damaged")
    said = _description(bytes(body[:length]), len(body) - length)
    if said["digest"] != digest.hex():
        raise BadSnapshot(
            "this snapshot is of another query",
            hint="restore it with the same text, parameters and classes; rules and budgets may differ",
        )
    known: Mapping[str, Any] | None = said["meaning"]
    change = None if known is None else first_change(known, meaning)
    if change is not None:
        raise BadSnapshot(
            f"{change} when this snapshot was taken",
            hint="restore it with the schema and the output of then; columns may be added",
        )
    tables: list[pa.Table | None] = []
    at = length
    for name, size in zip(_PARTS, said["parts"], strict=False):
        # Copied, so that its columns begin where kernels take them to begin.
        blob = pa.py_buffer(bytes(body[at : at + size]))
        tables.append(read_table(blob, f"what this snapshot has of {name}") if size else None)
        at += size
    held = None
    if len(tables) > 1:
        rows, numbers, *past = tables[1:]
        if rows is None or numbers is None or None in past:
            raise BadSnapshot("this snapshot is not what an engine keeps: it has a part without a table")
        held = HeldEvents(rows, numbers, *past)
    return Snapshot(digest, known, said["watermark"], said["rows"], said["step"], tables[0], held)


def _description(text: bytes, following: int) -> dict[str, Any]:
    """The description in a snapshot's header, with `following` bytes behind it."""
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        said = None
    if isinstance(said, dict):
        said.setdefault("meaning", None)
        counts = [said.get("rows"), said.get("step")]
        parts = said.get("parts")
        sound = (
            isinstance(said.get("digest"), str)
            and (said["meaning"] is None or is_meaning(said["meaning"]))
            and (said.get("watermark", "") is None or is_whole(said.get("watermark")))
            and all(is_whole(count) and count >= 0 for count in counts)
            and isinstance(parts, list)
            and all(is_whole(size) and size >= 0 for size in parts)
            and len(parts) in (1, 3, 4)
            and sum(parts) == following
        )
        if sound:
            return said
    raise BadSnapshot("this snapshot is not what an engine keeps: it does not say what it holds")


def _checksum(body: bytes | memoryview, length: int) -> int:
    return crc32(body, crc32(length.to_bytes(4, "little")))


def _written(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    # A dictionary that grew from batch to batch is written once, with only what is used left to the reader.
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.unify_dictionaries().combine_chunks())
    return bytes(sink.getvalue().to_pybytes())
