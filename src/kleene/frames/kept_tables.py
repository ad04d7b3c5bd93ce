"""Arrow tables from bytes that were kept somewhere: read only as far as they are what they say.

A checksum tells that bytes are those that were written, not who wrote them, and Arrow's reader trusts lengths, offsets
and codes. Behind `read_table` every value can be touched, and no more memory is taken than the bytes account for.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pyarrow as pa

from kleene.errors import BadSnapshot

# What may be unpacked of compressed bytes: events that differ at all in their times do not pack as well as that.
_MOST_RATIO, _ALWAYS_ALLOWED = 256, 1 << 30
# Buffers begin at multiples of this in what Arrow writes, and compiled kernels take it for granted.
_ALIGNMENT = 8
# Fields of Arrow's messages (format/Message.fbs), by their places there.
_HEADER_TYPE, _HEADER = 1, 2
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3
_DICTIONARY_ROWS = 1
_BUFFERS, _COMPRESSION = 2, 3


def read_table(data: pa.Buffer, what: str) -> pa.Table:
    """The one table of an IPC stream; `what` says in an error what it was to be."""
    try:
        if _unpacked_size(data) > max(_ALWAYS_ALLOWED, _MOST_RATIO * data.size):
            raise BadSnapshot(f"{what} would be unpacked to more than it can hold")
        with pa.ipc.open_stream(data) as reader:
            table = reader.read_all()
        table.validate(full=True)
        names = table.column_names
    except BadSnapshot:
        raise
    # A name that is no UTF-8 is a ValueError, and what is too large to allocate a MemoryError, as Arrow has them.
    except (pa.ArrowException, ValueError, KeyError, TypeError, OSError, MemoryError, struct.error) as problem:
        raise BadSnapshot(f"{what} is no table of Arrow's: {_first_line(problem)}") from None
    if len(set(names)) < len(names):
        raise BadSnapshot(f"{what} has two columns of one name")
    if any(buffer.address % _ALIGNMENT for buffer in _buffers(table)):
        raise BadSnapshot(f"{what} has columns at odd places")
    return table


def _first_line(problem: BaseException) -> str:
    return (str(problem) or type(problem).__name__).splitlines()[0][:200]


def _buffers(table: pa.Table) -> Iterator[pa.Buffer]:
    for column in table.columns:
        for chunk in column.chunks:
            parts = [chunk, chunk.dictionary] if isinstance(chunk, pa.DictionaryArray) else [chunk]
            yield from (buffer for part in parts for buffer in part.buffers() if buffer is not None and buffer.size)


# Compressed bodies -------------------------------------------------------------------------------------------------


def _unpacked_size(data: pa.Buffer) -> int:
    """How large the compressed buffers of a stream say that they become: each begins with its length."""
    messages = pa.ipc.MessageReader.open_stream(data)
    size = 0
    while True:
        try:
            message = messages.read_next_message()
        except StopIteration:
            return size
        batch = _batch(message)
        if batch is not None and batch.field(_COMPRESSION):
            body = memoryview(message.body)
            for offset, length in batch.pairs(_BUFFERS):
                if length:
                    (declared,) = struct.unpack_from("<q", body, offset)
                    size += length if declared < 0 else declared


def _batch(message: pa.ipc.Message) -> _Fields | None:
    """The fields of a message that brings rows."""
    metadata = memoryview(message.metadata)
    root = _Fields(metadata, struct.unpack_from("<I", metadata, 0)[0])
    at = root.field(_HEADER_TYPE)
    kind = metadata[at] if at else 0
    if kind == _RECORD_BATCH:
        return root.table(_HEADER)
    return root.table(_HEADER).table(_DICTIONARY_ROWS) if kind == _DICTIONARY_BATCH else None


class _Fields:
    """A table of a flatbuffer: the places of its fields stand in a list of their own."""

    def __init__(self, data: memoryview, at: int) -> None:
        self._data, self._at = data, at
        self._places = at - int(struct.unpack_from("<i", data, at)[0])
        self._size = int(struct.unpack_from("<H", data, self._places)[0])

    def field(self, number: int) -> int:
        """Where a field stands; 0: it is not there."""
        place = 4 + 2 * number
        if place + 2 > self._size:
            return 0
        offset = int(struct.unpack_from("<H", self._data, self._places + place)[0])
        return self._at + offset if offset else 0

    def table(self, number: int) -> _Fields:
        return _Fields(self._data, self._target(number))

    def pairs(self, number: int) -> Iterator[tuple[int, int]]:
        """A list of pairs of 64 bits."""
        if not self.field(number):
            return
        at = self._target(number)
        (count,) = struct.unpack_from("<I", self._data, at)
        for place in range(count):
            yield struct.unpack_from("<qq", self._data, at + 4 + 16 * place)

    def _target(self, number: int) -> int:
        at = self.field(number)
        return at + int(struct.unpack_from("<I", self._data, at)[0])
