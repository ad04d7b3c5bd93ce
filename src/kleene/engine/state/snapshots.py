"""An engine's state as bytes: Arrow tables behind a header (`container`).

A blob of another query, of columns that mean something else, or that says what no engine writes (`state_contract`) is
refused with an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from kleene.engine.state.container import pack, unpack
from kleene.errors import BadSnapshot

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
    events: HeldEvents | None


def to_bytes(state: Snapshot) -> bytes:
    events = state.events
    tables = [state.waiting] if events is None else [state.waiting, events.rows, events.numbers]
    if events is not None and events.past is not None:
        tables.append(events.past)
    description = {
        "digest": state.digest.hex(),
        "meaning": state.meaning,
        "watermark": state.watermark,
        "rows": state.rows,
        "step": state.step,
    }
    return pack(description, tables)


def from_bytes(data: bytes, digest: bytes, meaning: Mapping[str, Any]) -> Snapshot:
    """The state that was written, for the query with this digest, on events with this meaning."""
    said, tables = unpack(data, digest, meaning, _PARTS)
    if len(tables) not in (1, 3, 4):
        raise BadSnapshot("this snapshot is not what an engine keeps: it does not say what it holds")
    events = None
    if len(tables) > 1:
        rows, numbers, *past = tables[1:]
        if rows is None or numbers is None or None in past:
            raise BadSnapshot("this snapshot is not what an engine keeps: it has a part without a table")
        events = HeldEvents(rows, numbers, *past)
    return Snapshot(digest, said["meaning"], said["watermark"], said["rows"], said["step"], tables[0], events)
