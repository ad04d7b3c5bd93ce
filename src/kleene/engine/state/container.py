"""Bytes that hold a description and some Arrow tables, behind a header that says which version wrote them.

Nothing is pickled. What is damaged, of another version, or does not say what it holds is refused with an error.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any
from zlib import crc32

import pyarrow as pa

from kleene.errors import BadSnapshot
from kleene.frames.kept_tables import read_table
from kleene.queries.meaning import first_change, is_meaning, is_whole

_MAGIC = b"KLEENE"
VERSION = 2
# Magic, version, checksum of everything that follows, length of the description.
_HEADER = struct.Struct("<6sHII")


def pack(description: Mapping[str, Any], tables: Sequence[pa.Table | None]) -> bytes:
    """A description of plain values and some tables as bytes."""
    blobs = [b"" if table is None else _written(table) for table in tables]
    said = json.dumps({**description, "parts": [len(blob) for blob in blobs]}).encode()
    body = said + b"".join(blobs)
    return _HEADER.pack(_MAGIC, VERSION, _checksum(body, len(said)), len(said)) + body


def unpack(
    data: bytes, digest: bytes, meaning: Mapping[str, Any], parts: Sequence[str]
) -> tuple[dict[str, Any], list[pa.Table | None]]:
    """What was packed for the query with this digest, on events with this meaning.

    parts   what errors call the tables, of which there may be fewer
    """
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
    if len(said["parts"]) > len(parts):
        raise BadSnapshot("this snapshot is not what an engine keeps: it does not say what it holds")
    tables: list[pa.Table | None] = []
    at = length
    for name, size in zip(parts, said["parts"], strict=False):
        # Copied, so that its columns begin where kernels take them to begin.
        blob = pa.py_buffer(bytes(body[at : at + size]))
        tables.append(read_table(blob, f"what this snapshot has of {name}") if size else None)
        at += size
    return said, tables


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
