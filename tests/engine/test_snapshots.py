"""An engine's state as bytes: it goes on elsewhere as if nothing had happened, and refuses what is not its own."""

from __future__ import annotations

import json
import pickle
import struct
from collections.abc import Sequence
from unittest import mock
from zlib import crc32

import pyarrow as pa
import pytest
from tests.engine.batches import bound, events, words
from tests.engine.saved_snapshot import AFTER, BEFORE, DATA, FOUND, QUERY

from kleene.engine.engine import Engine
from kleene.engine.state import container
from kleene.errors import BadSnapshot
from kleene.plan.settings import Settings

STACKS = "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 10"
RUNS = "PATTERN SEQ(A+ a[], B b) WHERE [id] WITHIN 10"
BOTH = pytest.mark.parametrize("text", [STACKS, RUNS], ids=["stacks", "runs"])
Stream = Sequence[tuple[str, int]]


def run(text: str, stream: Stream, *, restoring: bool) -> tuple[list[str], list[str]]:
    """Matches and timeouts of batches with their watermarks, and of the end; restored after every batch, or never."""
    engine = Engine(bound(text))
    found: list[str] = []
    late: list[str] = []
    for batch, watermark in stream:
        made = engine.process(events(batch), watermark)
        found += words(made.matches)
        late += words(made.timeouts)
        if restoring:
            engine = Engine.restore(bound(text), engine.snapshot())
    made = engine.finish()
    return found + words(made.matches), late + words(made.timeouts)


# What survives -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "stream", "expected"),
    [
        pytest.param(STACKS, [("a1 a2/1", 3), ("b3", 4), ("b4 b9/1", 20)], ["a1 b3", "a1 b4", "a2 b9"], id="stacks"),
        pytest.param(RUNS, [("a1", 2), ("a2", 3), ("b3", 4)], ["a2 b3", "a1 a2 b3", "a1 b3"], id="runs"),
        pytest.param(
            "PATTERN SEQ(A a, !(N n), B b) WITHIN 10",
            [("a1", 2), ("n2 a3", 4), ("b5", 6)],
            ["a3 b5"],
            id="a negated event is not forgotten",
        ),
        pytest.param(
            "PATTERN SEQ(!(N n), A a, B b) WITHIN 10",
            [("n1", 2), ("a2", 3), ("x9", 10), ("b10 b11", 12)],
            ["a2 b11"],
            id="nor is one before the match, until the window has passed it",
        ),
        pytest.param(
            "PATTERN SEQ(A a, !(N n)) WITHIN 5",
            [("a1 a3", 4), ("n7", 7), ("x8", 8), ("x9", 9)],
            ["a1"],
            id="an end that is not certain yet",
        ),
        pytest.param(
            "PATTERN SEQ(A a, B b) WITHIN 10 OUTPUT NON_OVERLAP",
            [("a1 b2", 3), ("b3", 4), ("a4 b4", 5), ("b5", 6)],
            ["a1 b2", "a4 b5"],
            id="where the chosen match ended",
        ),
        pytest.param(
            "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 10 OUTPUT NON_OVERLAP",
            [("a1 a1/1 b2", 3), ("b3 b3/1", 4), ("b4/1 a4", 5), ("b5", 6)],
            ["a1 b2", "a1 b3", "a4 b5"],
            id="in each partition",
        ),
        pytest.param(
            "PATTERN SEQ(A a, B b) WHERE strict_contiguity { [id] } WITHIN 10 OUTPUT NON_OVERLAP",
            [("a1 b2", 3), ("a3/1", 4), ("b4/1", 5), ("x5", 6), ("a6", 7), ("x7", 8), ("b8", 9)],
            ["a1 b2", "a3 b4"],
            id="or in the stream, which is one under strict contiguity",
        ),
        pytest.param(
            "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 3 EVENTS",
            [("a1 a1/1", 2), ("x2 x2/1", 3), ("b3/1", 4), ("x4 b5", 6)],
            ["a1 b3"],
            id="how many events a partition had",
        ),
        pytest.param(
            "PATTERN SEQ(A a, !(N n)) WITHIN 3 EVENTS",
            [("a1", 2), ("x2 x3", 4), ("x4", 5)],
            ["a1"],
            id="and so when its windows close",
        ),
        pytest.param(
            "PATTERN SEQ(A a, B b) WHERE partition_contiguity { [id] } WITHIN 10",
            [("a1 a1/1", 2), ("x2", 3), ("b3 b3/1", 4)],
            ["a1 b3"],
            id="which event of a partition was its last",
        ),
        pytest.param(
            "PATTERN SEQ(A a, B b) WHERE skip_till_next_match { } WITHIN 10",
            [("a1", 2), ("b2", 3), ("b3", 4)],
            ["a1 b2"],
            id="which runs have been used up",
        ),
        pytest.param(
            "PATTERN SEQ(A{2,3} a[], B b) WITHIN 10",
            [("a1", 2), ("a2", 3), ("b3", 4)],
            ["a1 a2 b3"],
            id="how many events a list has",
        ),
        pytest.param(
            "PATTERN SEQ(A+ a[], B b) WHERE a[i].ts > a[i-1].ts + 1 AND sum(a[..].ts) > 3 WITHIN 10",
            [("a1", 2), ("a2", 3), ("a3", 4), ("b4", 5)],
            ["a1 a3 b4"],
            id="aggregates of what was taken",
        ),
    ],
)
def test_a_restored_engine_goes_on_as_if_nothing_had_happened(text: str, stream: Stream, expected: list[str]) -> None:
    never, _ = run(text, stream, restoring=False)
    assert sorted(never) == sorted(expected)
    assert run(text, stream, restoring=True)[0] == never


def test_a_timeout_is_said_once_and_a_start_that_became_a_match_has_none() -> None:
    stream = [("a1 a2", 3), ("b4/1", 5), ("a6", 8), ("x9", 15), ("x20", 21)]
    text = "PATTERN SEQ(A a, B b) WHERE skip_till_next_match { a.ts > 1 } WITHIN 5 TIMEOUTS INTO late"
    never = run(text, stream, restoring=False)
    assert never == (["a2 b4"], ["a6"])
    assert run(text, stream, restoring=True) == never


@BOTH
def test_the_watermark_and_the_events_that_wait_survive(text: str) -> None:
    engine = Engine(bound(text))
    engine.process(events("a1 b5"), watermark=4)
    engine = Engine.restore(bound(text), engine.snapshot())
    made = engine.process(events("b3"), watermark=6)
    assert made.statistics.late == 1
    assert words(made.matches) == ["a1 b5"]


@BOTH
def test_rows_are_numbered_on(text: str) -> None:
    engine = Engine(bound(text))
    engine.process(events("a1 a- b2"), watermark=3)
    engine = Engine.restore(bound(text), engine.snapshot())
    assert [row.index for row in engine.process(events("b9 b-"), watermark=4).bad] == [4]


@BOTH
def test_a_snapshot_of_nothing_is_a_beginning(text: str) -> None:
    engine = Engine.restore(bound(text), Engine(bound(text)).snapshot())
    engine.process(events("a1 b2"))
    assert words(engine.finish().matches) == ["a1 b2"]


@BOTH
def test_a_snapshot_changes_nothing(text: str) -> None:
    engine = Engine(bound(text))
    engine.process(events("a1 a2 b5"), watermark=4)
    first = engine.snapshot()
    assert engine.snapshot() == first
    again = Engine.restore(bound(text), first)
    assert again.snapshot() == first
    assert words(engine.finish().matches) == words(again.finish().matches) != []


@BOTH
def test_the_plan_may_be_another_one(text: str) -> None:
    engine = Engine(bound(text))
    engine.process(events("a1 a2/1"), watermark=3)
    other = Settings(without=frozenset({"push_equivalence", "push_window", "merge_runs"}))
    engine = Engine.restore(bound(text), engine.snapshot(), other)
    assert engine.plan.alternatives[0].key == ()
    assert words(engine.process(events("b3 b4/1"), watermark=5).matches) == ["a1 b3", "a2 b4"]


@BOTH
def test_dictionaries_survive_and_may_be_others_afterwards(text: str) -> None:
    def coded(said: str) -> pa.Table:
        table = events(said)
        for place, name in ((0, "type"), (2, "id")):
            table = table.set_column(place, name, table.column(name).dictionary_encode())
        return table

    query = bound(text, coded("a1"))
    engine = Engine(query)
    engine.process(coded("a1/k"), watermark=2)
    engine.process(coded("b2/m a3/l"), watermark=4)
    engine = Engine.restore(query, engine.snapshot())
    assert words(engine.process(coded("b4/l b5/k"), watermark=6).matches) == ["a3 b4", "a1 b5"]


# The format --------------------------------------------------------------------------------------------------------


def test_a_snapshot_that_version_2_wrote_still_loads_and_goes_on() -> None:
    engine = Engine.restore(bound(QUERY), (DATA / "version-2.kleene").read_bytes())
    made = engine.process(*AFTER)
    assert words(made.matches) + words(engine.finish().matches) == FOUND
    assert made.statistics.late == 1


def test_what_the_saved_snapshot_must_give_is_what_one_engine_gives() -> None:
    engine = Engine(bound(QUERY))
    assert words(engine.process(*BEFORE).matches) == ["a1 b4"]
    assert words(engine.process(*AFTER).matches) == FOUND


def test_this_version_has_a_saved_snapshot() -> None:
    saved = (DATA / f"version-{container.VERSION}.kleene").read_bytes()
    assert struct.unpack_from("<6sH", saved) == (b"KLEENE", container.VERSION)
    assert len(saved) < 8_192


@BOTH
def test_a_snapshot_is_a_description_and_arrow_streams_and_nothing_is_pickled(text: str) -> None:
    engine = Engine(bound(text))
    engine.process(events("a1 a2 b9"), watermark=4)
    refused = mock.Mock(side_effect=AssertionError("pickled"))
    with mock.patch.multiple(pickle, dumps=refused, loads=refused, Pickler=refused, Unpickler=refused):
        blob = engine.snapshot()
        assert words(Engine.restore(bound(text), blob).finish().matches) != []
    magic, version, checksum, length = struct.unpack_from("<6sHII", blob)
    body = blob[16:]
    assert (magic, version, checksum) == (b"KLEENE", container.VERSION, crc32(blob[12:]))
    said = json.loads(body[:length])
    assert sum(said["parts"]) + length == len(body)
    assert said["watermark"] == 4
    at = length
    tables = []
    for size in said["parts"]:
        tables.append(pa.ipc.open_stream(body[at : at + size]).read_all())
        at += size
    waiting, held, numbers = tables
    assert (waiting.num_rows, held.num_rows, numbers.num_rows) == (1, 2, 2)


@pytest.mark.slow
@BOTH
def test_the_size_of_a_snapshot_follows_the_window_and_not_the_stream(text: str) -> None:
    engine = Engine(bound(text))
    sizes = []
    for number in range(200):
        first = 50 * number
        batch = " ".join(f"{'a' if n % 10 else 'b'}{first + n}/{n % 10 // 5}" for n in range(0, 50, 5))
        engine.process(events(batch), watermark=first + 50)
        sizes.append(len(engine.snapshot()))
    assert engine.statistics.rows == 2_000
    assert max(sizes[100:]) <= 1.05 * max(sizes[:10])
    wide = Engine(bound(text.replace("WITHIN 10", "WITHIN 100000")))
    for number in range(200):
        first = 50 * number
        wide.process(events(" ".join(f"a{first + n}" for n in range(0, 50, 5))), watermark=first + 50)
    assert len(wide.snapshot()) > 10 * max(sizes)


# What is refused ---------------------------------------------------------------------------------------------------


def blob_of(text: str) -> bytes:
    engine = Engine(bound(text))
    engine.process(events("a1 b5"), watermark=4)
    return engine.snapshot()


@pytest.mark.parametrize(
    "other",
    [
        RUNS,
        STACKS.replace("10", "11"),
        STACKS.replace("[id]", "[type]"),
        f"{STACKS} OUTPUT NON_OVERLAP",
    ],
)
def test_a_snapshot_of_another_query_is_refused(other: str) -> None:
    with pytest.raises(BadSnapshot, match="another query") as raised:
        Engine.restore(bound(other), blob_of(STACKS))
    assert "same text" in str(raised.value.hint)


@pytest.mark.parametrize("version", [0, 3, 65535])
def test_a_snapshot_of_another_version_is_refused(version: int) -> None:
    blob = blob_of(STACKS)
    with pytest.raises(BadSnapshot, match=f"has version {version}, and this Kleene reads version 2"):
        Engine.restore(bound(STACKS), blob[:6] + struct.pack("<H", version) + blob[8:])


def test_a_snapshot_that_version_1_wrote_is_refused() -> None:
    """It knows ordinals where version 2 knows barriers."""
    with pytest.raises(BadSnapshot, match="has version 1, and this Kleene reads version 2"):
        Engine.restore(bound(QUERY), (DATA / "version-1.kleene").read_bytes())


def test_a_damaged_snapshot_is_refused() -> None:
    """Whatever bit is damaged, and wherever it was cut off."""
    blob = blob_of(STACKS)
    for place in [*range(len(blob)), *range(16)]:
        damaged = bytearray(blob)
        damaged[place] ^= 1 << place % 8
        with pytest.raises(BadSnapshot):
            Engine.restore(bound(STACKS), bytes(damaged))
    for length in range(0, len(blob), 7):
        with pytest.raises(BadSnapshot):
            Engine.restore(bound(STACKS), blob[:length])
    with pytest.raises(BadSnapshot, match="damaged"):
        Engine.restore(bound(STACKS), blob + b"more")


@pytest.mark.parametrize("data", [b"", b"KLEENE", b"KLEENE\x01\x00", b"PAR1" * 100, pickle.dumps({"kleene": 1})])
def test_what_is_no_snapshot_is_refused(data: bytes) -> None:
    with pytest.raises(BadSnapshot, match="no snapshot") as raised:
        Engine.restore(bound(STACKS), data)
    assert raised.value.code == "KL511"
