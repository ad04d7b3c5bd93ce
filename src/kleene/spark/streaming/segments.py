"""What Spark keeps of a slot, as bytes: a page that says how far it is, and segments of events as they arrived.

Nothing is pickled; page and segments carry a version and a checksum. What is of another version or damaged, and a page
of other queries or of another division, is refused with one sentence.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Protocol
from zlib import crc32

import pyarrow as pa

from kleene.errors import BadSnapshot
from kleene.spark.packing import from_bytes

VERSION = 1
# Magic, version, checksum of everything that follows; as long as Arrow's numbers, which stay aligned behind it.
_HEADER = struct.Struct("<2sHI")
_MAGIC = b"KL"
# A page knows so many of its last updates by name; a live slot that has missed more is made anew.
_RECENT = 16


class Kept(Protocol):
    """What Spark keeps of the slot at hand; what is written counts when the batch is committed."""

    def page(self) -> bytes | None: ...

    def set_page(self, data: bytes) -> None: ...

    def get(self, kind: str, number: int) -> bytes | None: ...

    def put(self, kind: str, number: int, data: bytes) -> None: ...

    def remove(self, kind: str, number: int, size: int) -> None: ...

    def all(self, kind: str) -> Iterable[tuple[int, bytes]]: ...

    def set_timer(self, milliseconds: int) -> None: ...

    def drop_timer(self, milliseconds: int) -> None: ...


@dataclass(frozen=True)
class Page:
    """How far a slot is.

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
    def from_bytes(data: bytes, serves: Mapping[str, Any]) -> Page:
        """The page that was written, which must be of these queries."""
        page = Page(**json.loads(_unsealed(data).to_pybytes()))
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
    """The events that one update brought, of which only the size and the latest end are remembered."""

    number: int
    size: int
    latest: int


def write_segment(rows: pa.Table) -> bytes:
    """In one piece, and packed: reading and writing state costs more than that."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(rows.combine_chunks())
    return _sealed(sink.getvalue().to_pybytes())


def read_segment(data: bytes) -> pa.Table:
    return from_bytes(_unsealed(data))


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
