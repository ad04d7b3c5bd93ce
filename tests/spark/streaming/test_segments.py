"""The bytes that Spark keeps of a slot: what another version or another query wrote is refused, as is what is damaged.

`python -m tests.spark.streaming.test_segments` writes the state of two slots to `data`. A new version of the format
gets a file of its own beside the old one, which stays as it is.
"""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from tests.engine.batches import events, words
from tests.spark.streaming.driving import Slot, slot_of

from kleene.errors import BadSnapshot
from kleene.spark.packing import from_bytes, to_bytes
from kleene.spark.streaming import live_slot, segments
from kleene.spark.streaming.segments import SlotCheckpoint, read_segment, write_segment

DATA = Path(__file__).parent / "data"
SERVES: dict[str, Any] = {"queries": ["pairs 0123456789abcdef", "other fedcba9876543210"], "buckets": 4}
PAGE = SlotCheckpoint(
    "0011223344556677", SERVES, update=7, recent=("aa", "bb", "cc"), based=3, watermark=-12, timer=1_700_000_000_123
)


# Pages --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", [PAGE, SlotCheckpoint("life", SERVES), replace(PAGE, watermark=None)])
def test_a_page_survives(page: SlotCheckpoint) -> None:
    again = SlotCheckpoint.from_bytes(page.to_bytes(), SERVES)
    assert replace(again, recent=tuple(again.recent)) == page


def test_a_page_knows_its_last_updates_by_name() -> None:
    assert PAGE.name == "cc"
    assert [update for update in range(12) if PAGE.knows(update, "bb")] == [6]
    assert not PAGE.knows(4, "aa")
    assert not PAGE.knows(8, "cc")
    assert SlotCheckpoint("life", SERVES).name is None


def test_a_page_stays_small() -> None:
    page = PAGE
    for number in range(100):
        page = replace(page, update=page.update + 1, recent=page.recent_with(f"{number:016}"))
    assert len(page.recent) == 16
    assert page.knows(page.update - 15, f"{84:016}")
    assert not page.knows(page.update - 16, f"{83:016}")
    assert len(page.to_bytes()) < 1024


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {"queries": ["pairs 1111111111111111", "other fedcba9876543210"]},
            "kept for other queries: pairs 0123456789abcdef, other fedcba9876543210, now pairs 1111111111111111, other",
        ),
        ({"queries": ["pairs 0123456789abcdef"]}, "other fedcba9876543210, now pairs 0123456789abcdef"),
        ({"buckets": 8}, "kept for other buckets: 4, now 8"),
    ],
)
def test_a_page_of_something_else_is_refused(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(BadSnapshot) as raised:
        SlotCheckpoint.from_bytes(PAGE.to_bytes(), {**SERVES, **changed})
    assert said in raised.value.message
    assert raised.value.code == "KL511"
    assert "begin with a new checkpoint" in str(raised.value.hint)


# Segments -----------------------------------------------------------------------------------------------------------


def test_events_survive() -> None:
    rows = events("a1 b2 c3/k")
    assert read_segment(write_segment(rows)).equals(rows)
    nothing = rows.slice(0, 0)
    assert read_segment(write_segment(nothing)).equals(nothing)


def test_only_the_rows_of_a_slice_are_written() -> None:
    rows = pa.table({"type": ["A"] * 10_000, "ts": range(10_000)})
    assert len(write_segment(rows.slice(5_000, 2))) < 1_000
    assert read_segment(write_segment(rows.slice(5_000, 2))).column("ts").to_pylist() == [5_000, 5_001]


def test_nothing_is_pickled() -> None:
    """But kernels are, when they are first used."""
    went_on(saved("snapshot"))
    refused = mock.Mock(side_effect=AssertionError("pickled"))
    with mock.patch.multiple(pickle, dumps=refused, loads=refused, Pickler=refused, Unpickler=refused):
        slot = saved("snapshot")
        slot.at[0].forget_all()
        assert went_on(slot) == FOUND["snapshot"]
    assert slot.counted["made anew"] == 1


# What is refused ----------------------------------------------------------------------------------------------------

BLOBS = pytest.mark.parametrize("blob", [PAGE.to_bytes(), write_segment(events("a1 b2"))], ids=["page", "segment"])


def read(blob: bytes, of: bytes) -> None:
    """Read a blob as what another one is."""
    if of == PAGE.to_bytes():
        SlotCheckpoint.from_bytes(blob, SERVES)
    else:
        read_segment(blob)


@BLOBS
@pytest.mark.parametrize("version", [0, 2, 65535])
def test_another_version_is_refused(blob: bytes, version: int) -> None:
    with pytest.raises(BadSnapshot, match=f"state has version {version}, and this Kleene reads version 1") as raised:
        read(blob[:2] + version.to_bytes(2, "little") + blob[4:], blob)
    assert "the Kleene that began it" in str(raised.value.hint)


@BLOBS
def test_damage_is_refused(blob: bytes) -> None:
    """Whatever bit is damaged, and wherever it was cut off."""
    for place in range(len(blob)):
        damaged = bytearray(blob)
        damaged[place] ^= 1 << place % 8
        with pytest.raises(BadSnapshot):
            read(bytes(damaged), blob)
    for length in range(len(blob)):
        with pytest.raises(BadSnapshot):
            read(blob[:length], blob)
    with pytest.raises(BadSnapshot, match="this stream's state is damaged"):
        read(blob + b"more", blob)


@BLOBS
@pytest.mark.parametrize("data", [b"", b"KL", b"{}", b"PAR1" * 100], ids=repr)
def test_what_is_no_state_is_refused(blob: bytes, data: bytes) -> None:
    with pytest.raises(BadSnapshot, match="no state of a stream"):
        read(data, blob)


# State that was saved -----------------------------------------------------------------------------------------------

# One slot that keeps the events of its window, and one that keeps a snapshot and what came since.
SAVED = {
    "window": "PATTERN SEQ(A+ a[], !(N n), B b) WHERE [id] WITHIN 10",
    "snapshot": "PATTERN SEQ(A+ a[], !(N n), B b) WHERE [id] WITHIN 10 OUTPUT NON_OVERLAP",
}
# Open runs of two keys, one of which n18 spoils; something that waits, and something that time has left behind.
BEFORE = [("a1 a2/1 b4", 0), ("a5", 5), ("a16 a17/1", 15), ("n18/1 a19 a21", 17)]
# One is late, and one ends a run that n18 spoilt.
AFTER = [("b20 b18 b20/1", 19), ("b22", 21), ("x50", 23), ("", 60)]
FOUND = {
    "window": [
        *("a16 a19 a21 b22", "a16 a19 b20", "a16 a19 b22", "a16 a21 b22", "a16 b20"),
        *("a16 b22", "a19 a21 b22", "a19 b20", "a19 b22", "a21 b22"),
    ],
    "snapshot": ["a19 b20", "a21 b22"],
}


def saved(kind: str) -> Slot:
    """A slot as it is after the first batches."""
    slot = slot_of(SAVED[kind])
    with mock.patch.object(live_slot, "_LEAST_LOG", 0):
        for said, watermark in BEFORE:
            slot.batch(events(said), watermark)
    return slot


def went_on(slot: Slot) -> list[str]:
    slot.given.clear()
    for said, watermark in AFTER:
        slot.batch(events(said), watermark)
    assert [row["ts"] for table in slot.given["late"] for row in table.to_pylist()] == [18]
    return sorted(word for table in slot.given["matches"] for word in words(table))


def write() -> Path:
    rows = []
    for kind in SAVED:
        store = saved(kind).store
        rows.append({"slot": kind, "kind": "page", "number": 0, "data": store.page})
        for (what, number, piece), data in sorted(store.parts.items()):
            assert piece == 0
            rows.append({"slot": kind, "kind": what, "number": number, "data": data})
    path = DATA / f"version-{segments.VERSION}.arrows"
    path.write_bytes(to_bytes(pa.Table.from_pylist(rows)))
    return path


@pytest.mark.parametrize("kind", SAVED)
def test_state_that_version_1_wrote_still_loads_and_goes_on(kind: str) -> None:
    slot = slot_of(SAVED[kind])
    for row in from_bytes(pa.py_buffer((DATA / "version-1.arrows").read_bytes())).to_pylist():
        if row["slot"] == kind and row["kind"] == "page":
            slot.store.page = row["data"]
        elif row["slot"] == kind:
            slot.store.parts[row["kind"], row["number"], 0] = row["data"]
    assert {what for what, _, _ in slot.store.parts} == ({"segment"} if kind == "window" else {"segment", "snapshot"})
    assert slot.page.timer is not None
    slot.store.timers = {slot.page.timer}
    assert went_on(slot) == FOUND[kind]
    assert slot.counted["made anew"] == 1


@pytest.mark.parametrize("kind", SAVED)
def test_what_saved_state_must_give_is_what_one_worker_gives(kind: str) -> None:
    slot = saved(kind)
    assert went_on(slot) == FOUND[kind]
    assert slot.counted["made anew"] == 0


def test_this_version_has_saved_state() -> None:
    assert (DATA / f"version-{segments.VERSION}.arrows").stat().st_size < 16_384


if __name__ == "__main__":
    print(write())
