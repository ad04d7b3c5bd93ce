"""Messages between workers of one machine about slots: a head of JSON, then bytes as they are. Nothing is pickled.

A message is the length of its head, the head, and its buffers, whose sizes are in the head. Whoever is told half of one
has been told nothing: the writes of an update count when all of them are there.
"""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from kleene.spark.streaming.segments import Kept

# What leaves the operator: of which query, what, how many rows, and the rows as Arrow bytes.
Envelope = tuple[int, str, int, bytes | None]

_LENGTH = struct.Struct("<Q")
_LONGEST_HEAD = 1 << 26
_AT_ONCE = 1 << 20


def send(connection: socket.socket, head: Mapping[str, Any], buffers: Sequence[Any] = ()) -> None:
    views = [memoryview(buffer).cast("B") for buffer in buffers]
    text = json.dumps({**head, "sizes": [len(view) for view in views]}).encode()
    connection.sendall(_LENGTH.pack(len(text)) + text)
    for view in views:
        connection.sendall(view)


def receive(connection: socket.socket) -> tuple[dict[str, Any], list[pa.Buffer]]:
    """The head and the buffers of a message; `EOFError` when it is not whole, `ValueError` when it is none."""
    (length,) = _LENGTH.unpack(_exactly(connection, _LENGTH.size))
    if length > _LONGEST_HEAD:
        raise ValueError("the head of a message is too long")
    head = json.loads(_exactly(connection, length).to_pybytes())
    return head, [_exactly(connection, size) for size in head["sizes"]]


def _exactly(connection: socket.socket, size: int) -> pa.Buffer:
    buffer = pa.allocate_buffer(size)
    view, at = memoryview(buffer).cast("B") if size else memoryview(b""), 0
    while at < size:
        got = connection.recv_into(view[at:], min(_AT_ONCE, size - at))
        if not got:
            raise EOFError("the other process is gone")
        at += got
    return buffer


class _Write(NamedTuple):
    """A call of `Kept` that writes: its name, its arguments, and the bytes behind them, if it has any."""

    name: str
    arguments: Sequence[Any]
    data: bytes | None = None


class Writes:
    """What an update would have Spark keep, written down for the worker that can tell Spark."""

    def __init__(self, writes: Iterable[_Write] = ()) -> None:
        self._writes = list(writes)

    # As `Kept`; an update reads nothing.

    def page(self) -> bytes | None:
        raise NotImplementedError("the worker of the task has read it")

    def get(self, kind: str, number: int) -> bytes | None:
        raise NotImplementedError("an update reads nothing")

    def all(self, kind: str) -> Iterable[tuple[int, bytes]]:
        raise NotImplementedError("an update reads nothing")

    def set_page(self, data: bytes) -> None:
        self._writes.append(_Write("set_page", (), data))

    def put(self, kind: str, number: int, data: bytes) -> None:
        self._writes.append(_Write("put", (kind, number), data))

    def remove(self, kind: str, number: int, size: int) -> None:
        self._writes.append(_Write("remove", (kind, number, size)))

    def set_timer(self, milliseconds: int) -> None:
        self._writes.append(_Write("set_timer", (milliseconds,)))

    def drop_timer(self, milliseconds: int) -> None:
        self._writes.append(_Write("drop_timer", (milliseconds,)))

    def apply(self, store: Kept) -> None:
        calls: dict[str, Callable[..., None]] = {
            "set_page": store.set_page,
            "put": store.put,
            "remove": store.remove,
            "set_timer": store.set_timer,
            "drop_timer": store.drop_timer,
        }
        for name, arguments, data in self._writes:
            calls[name](*arguments, *(() if data is None else (data,)))

    def __iter__(self) -> Any:
        return iter(self._writes)


def updated_message(writes: Writes, envelopes: Sequence[Envelope]) -> tuple[dict[str, Any], list[bytes]]:
    """The answer of a worker that has updated a slot of its own for another worker's task."""
    head = {
        "answer": "updated",
        "writes": [(name, arguments, data is not None) for name, arguments, data in writes],
        "envelopes": [(query, kind, number, rows is not None) for query, kind, number, rows in envelopes],
    }
    return head, [last for *_, last in (*writes, *envelopes) if last is not None]


def read_updated(head: Mapping[str, Any], buffers: Sequence[pa.Buffer]) -> tuple[Writes, list[Envelope]]:
    """What `updated_message` says."""
    data = (buffer.to_pybytes() for buffer in buffers)
    writes = Writes([_Write(name, arguments, next(data) if has else None) for name, arguments, has in head["writes"]])
    return writes, [
        (query, kind, number, next(data) if has else None) for query, kind, number, has in head["envelopes"]
    ]
