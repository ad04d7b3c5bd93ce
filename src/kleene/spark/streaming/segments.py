"""The state that Spark keeps of a slot, as bytes: a page with how far it is, and segments of events as they arrived.

Nothing is pickled; page and segments carry a version and a checksum. What is of another version or damaged, and a page
of other queries or of another division, is refused with one sentence; and so is what no slot writes, whatever its
checksum.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple, Protocol
from zlib import crc32

import pyarrow as pa

from kleene.engine.state.state_contract import check_events
from kleene.errors import BadSnapshot
from kleene.frames.arrow import fitted
from kleene.frames.kept_tables import read_table
from kleene.pattern.schema import Schema
from kleene.queries.meaning import first_change, is_meaning, is_whole

VERSION = 1
# Magic, version, checksum of everything that follows; as long as Arrow's numbers, which stay aligned behind it.
_HEADER = struct.Struct("<2sHI")
_MAGIC = b"KL"
# A page knows so many of its last updates by name; a live slot that has missed more is made anew.
_RECENT = 16


MEANING_HINT = "restore the schema and the output, or begin with a new checkpoint; columns may be added"


class Kept(Protocol):
    """The state that Spark keeps of one slot; writes count when the batch is committed."""

    def page(self) -> bytes | None: ...

    def set_page(self, data: bytes) -> None: ...

    def get(self, kind: str, number: int) -> bytes | None: ...

    def put(self, kind: str, number: int, data: bytes) -> None: ...

    def remove(self, kind: str, number: int, size: int) -> None: ...

    def all(self, kind: str) -> Iterable[tuple[int, bytes]]: ...

    def set_timer(self, milliseconds: int) -> None: ...

    def drop_timer(self, milliseconds: int) -> None: ...


@dataclass(frozen=True)
class SlotCheckpoint:
    """The progress of a slot.

    life        made at random when the slot was first used: two streams may have slots of the same number
    serves      digests of the queries, by number, and how the events are divided
    update      the number of the last update, and `recent` the names of the last ones, made at random
    based       the update whose snapshot is kept, if any was taken
    watermark   everything that was certain at it has been given
    timer       when Spark wakes the slot, in its milliseconds
    """

    life: str
    serves: Mapping[str, Any]
    update: int = 0
    recent: Sequence[str] = ()
    based: int = 0
    watermark: int | None = None
    timer: int | None = None

    def to_bytes(self) -> bytes:
        return _sealed(json.dumps(asdict(self)).encode())

    @staticmethod
    def from_bytes(data: bytes, serves: Mapping[str, Any]) -> SlotCheckpoint:
        """The page that was written, which must be of these queries."""
        page = SlotCheckpoint(**_page_fields(_said(data)))
        for what, known in page.serves.items():
            if known != serves.get(what):
                raise BadSnapshot(
                    f"this stream's state was kept for other {what}: {_shown(known)}, now {_shown(serves.get(what))}",
                    hint="go on with what it was begun with, or begin with a new checkpoint",
                )
        return page

    @property
    def name(self) -> str | None:
        return self.recent[-1] if self.recent else None

    def knows(self, update: int, name: str) -> bool:
        """Whether an update with this number had this name: one of an attempt that failed had another."""
        place = len(self.recent) - 1 - (self.update - update)
        return 0 <= place < len(self.recent) and self.recent[place] == name

    def recent_with(self, name: str) -> tuple[str, ...]:
        return (*self.recent, name)[-_RECENT:]


def _shown(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


class Segment(NamedTuple):
    """The events that one update brought, of which only the size and the latest end are remembered.

    latest   None: it brought none, and only let time pass
    """

    number: int
    size: int
    latest: int | None


# The watermark of an update, in the metadata of its events.
_WATERMARK = b"kleene.watermark"


def write_segment(rows: pa.Table, watermark: int | None = None) -> bytes:
    """In one piece, and packed: reading and writing state costs more than that.

    watermark   to which time came before the events were taken in, where that is to be known
    """
    known = {} if watermark is None else {_WATERMARK: str(watermark).encode()}
    schema = rows.schema.with_metadata({**(rows.schema.metadata or {}), **known} or None)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(rows.replace_schema_metadata(schema.metadata).combine_chunks())
    return _sealed(sink.getvalue().to_pybytes())


def read_segment(data: bytes) -> pa.Table:
    return read_table(_unsealed(data), "what this stream's state has of its events")


def kept_events(data: bytes, columns: pa.Schema, schema: Schema) -> tuple[pa.Table, int | None]:
    """The events of a segment, and the watermark beside them, where one was written.

    They have exactly these columns, of which some may have been added since.
    """
    rows = read_segment(data)
    watermark = _watermark_of(rows)
    try:
        rows = fitted(rows, columns)
    except pa.ArrowException as problem:
        raise not_kept(f"its events have other columns: {problem}") from None
    check_events(rows, schema, "the events of a stream")
    return rows, watermark


def _watermark_of(rows: pa.Table) -> int | None:
    known = (rows.schema.metadata or {}).get(_WATERMARK)
    if known is None:
        return None
    if not re.fullmatch(rb"-?[0-9]{1,19}", known) or not -(2**63) <= int(known) < 2**63:
        raise not_kept("the watermark of an update is no time")
    return int(known)


def write_meanings(meanings: Mapping[str, Any]) -> bytes:
    """What the columns of a slot's events mean to each query, by its name."""
    return _sealed(json.dumps(meanings).encode())


def check_meanings(data: bytes, meanings: Mapping[str, Any]) -> None:
    """Refuse to go on with columns that mean something else than when `data` was written."""
    saved = _said(data)
    if not all(map(is_meaning, saved.values())):
        raise not_kept("it does not say what its columns mean")
    for name, known in saved.items():
        change = first_change(known, meanings.get(name, known))
        if change is not None:
            raise BadSnapshot(f"{change} when this checkpoint was begun", hint=MEANING_HINT)


def not_kept(problem: str) -> BadSnapshot:
    """The error of a state with a right checksum that no slot wrote."""
    return BadSnapshot(f"this stream's state is not what a slot keeps: {problem}", hint="begin with a new checkpoint")


def _said(data: bytes) -> dict[str, Any]:
    try:
        said = json.loads(_unsealed(data).to_pybytes())
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        raise not_kept("it does not say what it holds")
    return said


def _page_fields(said: dict[str, Any]) -> dict[str, Any]:
    """The fields of a page, each as a page has it."""
    names = {field.name for field in fields(SlotCheckpoint)}
    if not said.keys() <= names or not {"life", "serves"} <= said.keys():
        raise not_kept("its page has other fields")
    update, recent, based = said.get("update", 0), said.get("recent", []), said.get("based", 0)
    moments = [said.get(name) for name in ("watermark", "timer")]
    serves = said["serves"]
    sound = (
        isinstance(said["life"], str)
        and isinstance(serves, dict)
        and isinstance(serves.get("queries"), list)
        and is_whole(update)
        and is_whole(based)
        and 0 <= based <= update
        and isinstance(recent, list)
        and len(recent) <= min(update, _RECENT)
        and all(isinstance(name, str) for name in recent)
        and all(moment is None or is_whole(moment) for moment in moments)
    )
    if not sound:
        raise not_kept("its page does not say how far it is")
    return said


def _sealed(data: bytes) -> bytes:
    return _HEADER.pack(_MAGIC, VERSION, crc32(data)) + data


def _unsealed(data: bytes) -> pa.Buffer:
    if len(data) < _HEADER.size or not data.startswith(_MAGIC):
        raise BadSnapshot("this is no state of a stream", hint="begin with a new checkpoint")
    _, version, checksum = _HEADER.unpack_from(data)
    if version != VERSION:
        raise BadSnapshot(
            f"this stream's state has version {version}, and this Kleene reads version {VERSION}",
            hint="finish it with the Kleene that began it, or begin with a new checkpoint",
        )
    body = pa.py_buffer(data)[_HEADER.size :]
    if crc32(body) != checksum:
        raise BadSnapshot("this stream's state is damaged", hint="begin with a new checkpoint")
    return body
