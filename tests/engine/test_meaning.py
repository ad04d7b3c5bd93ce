"""A snapshot knows what its columns mean: each change is refused by name, and what changes nothing is not."""

from __future__ import annotations

import json
import struct
from zlib import crc32

import pyarrow as pa
import pytest
from tests.engine.batches import words
from tests.engine.changed_meanings import CHANGES, EVENTS, NO_CHANGES, TEXT, Change

from kleene.engine.engine import Engine
from kleene.errors import BadSnapshot
from kleene.frames.arrow import schema_on
from kleene.pattern.query import BoundQuery, Query
from kleene.pattern.schema import Schema


def bound(text: str, events: pa.Table, **schema: str) -> BoundQuery:
    return Query(text).bind(schema_on(events.schema, Schema(**schema)))  # type: ignore[arg-type]


def snapshot(change: Change) -> bytes:
    engine = Engine(bound(TEXT, EVENTS, **change.before))
    engine.process(EVENTS, watermark=6)
    return engine.snapshot()


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_is_refused_by_name(change: Change) -> None:
    query = bound(change.text, change.events, **change.schema)
    with pytest.raises(BadSnapshot) as refused:
        Engine.restore(query, snapshot(change))
    assert refused.value.message == f"{change.said} when this snapshot was taken"
    assert refused.value.hint == "restore it with the schema and the output of then; columns may be added"


@pytest.mark.parametrize("change", NO_CHANGES.values(), ids=NO_CHANGES)
def test_what_means_the_same_goes_on(change: Change) -> None:
    engine = Engine.restore(bound(change.text, change.events, **change.schema), snapshot(change))
    later = change.events.slice(1, 1).set_column(1, "ts", pa.array([7]))
    assert words(engine.process(later, watermark=9).matches) == ["a1 b7"]


def test_a_column_may_be_added() -> None:
    more = EVENTS.append_column("more", pa.array(["x"] * 3))
    engine = Engine.restore(bound(TEXT, more), snapshot(Change("")))
    assert words(engine.process(more.slice(1, 1).set_column(1, "ts", pa.array([7])), watermark=9).matches) == ["a1 b7"]


def test_a_column_that_the_query_does_not_read_may_change() -> None:
    text = f"{TEXT} RETURN a.v AS first INTO pairs"
    engine = Engine(bound(text, EVENTS))
    engine.process(EVENTS, watermark=6)
    other = Change("", types={"number": pa.string(), "began": pa.float64()}).events
    Engine.restore(bound(text, other), engine.snapshot())
    with pytest.raises(BadSnapshot, match="column `v`"):
        Engine.restore(bound(text, Change("", types={"v": pa.float64()}).events), engine.snapshot())


def test_a_snapshot_that_does_not_say_is_taken_as_it_is() -> None:
    """Before meanings were kept, it was for the caller to see to them."""
    blob = snapshot(Change(""))
    length = struct.unpack_from("<I", blob, 12)[0]
    said = json.loads(blob[16 : 16 + length])
    assert said.pop("meaning")["time"] == "ts"
    old = json.dumps(said).encode()
    body = len(old).to_bytes(4, "little") + old + blob[16 + length :]
    engine = Engine.restore(bound(TEXT, EVENTS), blob[:8] + struct.pack("<I", crc32(body)) + body)
    assert engine.snapshot() == blob


def test_the_ids_of_matches_do_not_depend_on_what_is_kept() -> None:
    """Another tick or another column names no other query."""
    assert len({bound(TEXT, EVENTS, **change.schema).digest for change in CHANGES.values() if not change.types}) == 1
