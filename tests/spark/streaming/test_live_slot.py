"""A slot of a stream: when it is woken, what it writes, and which worker is believed."""

from __future__ import annotations

import random
from unittest import mock

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.engine.agreement import content
from tests.engine.batches import events, words
from tests.spark.streaming.driving import FAR, Gone, Slot, fed, given_at, slot_of

from kleene.engine.engine import Engine
from kleene.errors import BadSnapshot
from kleene.evaluation import evaluate
from kleene.pattern import Query, Schema
from kleene.plan.settings import Settings, Stream
from kleene.spark.packing import to_bytes
from kleene.spark.streaming import live_slot, processor
from kleene.spark.streaming.event_time import Pace

# Time ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pace", "moment"), [(Pace(), 16), (Pace(steps=3), 6), (Pace(milliseconds=7), 15 * 7 + 1)], ids=str
)
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("PATTERN SEQ(A a, !(N n)) WITHIN 5", "matches"),
        ("PATTERN SEQ(A a, !(N n)) WITHIN 5 INCLUSIVE", "matches"),
        ("PATTERN SEQ(A+ a[], !(N n)) WITHIN 5", "matches"),
        ("PATTERN SEQ(A a, !(N n)) WITHIN 5 OUTPUT NON_OVERLAP", "matches"),
        ("PATTERN SEQ(A a, !(N n)) WITHIN 5 OUTPUT COMPRESSED", "matches"),
        ("PATTERN SEQ(A a, B b) WITHIN 5 TIMEOUTS INTO unmet", "timeouts"),
        ("PATTERN (A a & B b) ; !(N n) WITHIN 5", "matches"),
    ],
)
def test_a_window_closes_when_time_has_passed_its_end_and_nothing_comes(
    text: str, kind: str, pace: Pace, moment: int
) -> None:
    """At start + size something may still come that lies in it; Spark wakes the slot one step later."""
    slot = slot_of(text, pace=pace)
    slot.batch(events("a10 b10"), 0)
    assert given_at(slot, kind, range(1, 40 * pace.milliseconds)) == [moment]
    assert not slot.store.timers


@pytest.mark.parametrize("window", ["WITHIN 20", "WITHIN 50 INCLUSIVE"])
def test_a_timeout_that_another_query_reads_is_given_when_its_window_has_closed(window: str) -> None:
    """At start + size = 15, where no event is, and no window of the reader later."""
    slot = slot_of("PATTERN SEQ(A a, B b) WITHIN 5 TIMEOUTS INTO Late", f"PATTERN Late l {window} RETURN l.ts AS at")
    slot.batch(events("a10"), 0)
    assert given_at(slot, "matches", range(1, 80)) == [16]
    assert [row["at"] for table in slot.given["matches"] for row in table.to_pylist()] == [15]


def test_types_are_told_when_they_come_first() -> None:
    slot = slot_of("PATTERN SEQ(A a, !(Nn n), B b) WITHIN 5")
    slot.batch(events("a1 c2"), 0)
    assert {kind for kind in slot.given if kind.startswith("type ")} == {"type A"}
    slot.batch(events("b3 a4"), 0)
    assert {kind for kind in slot.given if kind.startswith("type ")} == {"type A", "type B"}


def test_a_slot_is_woken_only_when_something_may_have_become_certain() -> None:
    slot = slot_of("PATTERN SEQ(A a, !(N n)) WITHIN 5")
    slot.batch(events("a10"), 0)
    assert given_at(slot, "metrics", range(1, 40)) == [11, 16]


def test_a_match_that_nothing_can_forbid_is_given_when_time_has_passed_its_end() -> None:
    slot = slot_of("PATTERN SEQ(A a, B b) WITHIN 5")
    slot.batch(events("b12 a10"), 0)
    assert given_at(slot, "matches", range(1, 40)) == [13]


def test_events_from_before_the_beginning_of_time_are_not_forgotten() -> None:
    """Spark's watermark begins with 0, at which nothing is known: a timer must not fire there, and be gone."""
    early = events("a0 b1").set_column(1, "ts", pa.array([-9, -7], pa.int64()))
    slot = slot_of("PATTERN SEQ(A a, B b) WITHIN 5")
    slot.batch(early, 0)
    assert slot.store.timers == {1}
    assert given_at(slot, "matches", range(3)) == [1]


def test_while_nothing_is_known_of_time_nothing_is_late() -> None:
    slot = slot_of("PATTERN SEQ(A a, B b) WITHIN 5")
    slot.batch(events("b3"), 0)
    slot.batch(events("a2 a0"), 0)
    assert slot.page.watermark is None
    slot.batch(events("a4 b9"), 5)
    assert [words(table) for table in slot.given["matches"]] == [["a2 b3", "a0 b3"]]
    assert [table.to_pylist() for table in slot.given["late"]] == [[{"type": "A", "ts": 4, "id": "0"}]]


# What is kept -------------------------------------------------------------------------------------------------------

KEYED = "PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_next_match { [id] } WITHIN 40"


@pytest.mark.parametrize("text", [KEYED, "PATTERN A a & C c WHERE [id] WITHIN 40"], ids=["line", "tree"])
def test_what_an_update_writes_follows_what_it_brought(text: str) -> None:
    slot = slot_of(text, workers=2)
    segments = []
    for rows in fed(slot, batches=40, each=8):
        assert slot.store.wrote <= 2 * len(to_bytes(rows))
        assert len(slot.store.page or b"") < 1024
        segments.append(len(slot.store.segments))
    # As many as lie in the window, twice where it could forbid, and in the delay.
    length = 40 if text == KEYED else 80
    assert max(segments) <= length // 10 + 4
    assert segments[-1] == segments[20]


@pytest.mark.parametrize("text", [f"{KEYED} OUTPUT NON_OVERLAP", KEYED.replace("40", "9 EVENTS")])
def test_snapshots_take_no_more_than_what_they_stand_for(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two of them at least as much came as the first one took."""
    monkeypatch.setattr(live_slot, "_LEAST_LOG", 0)
    slot = slot_of(text, workers=2)
    wrote = brought = 0
    kept = []
    for rows in fed(slot, batches=40, each=10):
        brought += len(to_bytes(rows))
        wrote += slot.store.wrote
        kept.append(slot.store.nbytes)
    assert slot.page.based > 20
    assert slot.counted["caught up"] > 0
    assert wrote <= 3 * brought
    assert max(kept[20:]) <= 1.5 * max(kept[:20])


def test_there_is_no_snapshot_before_there_is_much_to_replay() -> None:
    slot = slot_of(f"{KEYED} OUTPUT NON_OVERLAP")
    for _ in fed(slot, batches=10, each=5):
        pass
    assert slot.page.based == 0
    assert len(slot.store.segments) == 10


def test_values_are_kept_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "_PIECE", 100)
    monkeypatch.setattr(live_slot, "_LEAST_LOG", 3000)
    slot = slot_of(f"{KEYED} OUTPUT NON_OVERLAP", workers=2)
    rows = list(fed(slot, batches=20, each=5))
    assert slot.page.based > 0
    assert max(map(len, slot.store.parts.values())) == 100
    expected = evaluate(pa.concat_tables(rows), slot.queries)
    slot.batch(None, FAR)
    assert slot.rows("matches") == sorted(content(expected.matches)) != []


# Workers ------------------------------------------------------------------------------------------------------------

PAIRS = "PATTERN SEQ(A a, B b) WITHIN 50"


def at(slot: Slot, worker: int) -> Slot:
    """The slot, whose next batch this worker has."""
    slot.draw = mock.Mock(wraps=random.Random(0), choice=lambda among: among[worker] if among is slot.at else among[0])
    return slot


def found(slot: Slot) -> list[str]:
    return sorted(word for table in slot.given.get("matches", ()) for word in words(table))


def test_a_worker_takes_in_what_others_have_taken_in() -> None:
    slot = slot_of(PAIRS, workers=2)
    at(slot, 0).batch(events("a1"), 0)
    at(slot, 1).batch(events("a2"), 0)
    at(slot, 1).batch(None, 2)
    at(slot, 0).batch(events("b5"), 3)
    at(slot, 1).batch(None, 9)
    assert found(slot) == ["a1 b5", "a2 b5"]
    assert slot.counted == {"updates": 5, "made anew": 1, "as it stood": 1, "caught up": 2}


def test_a_worker_that_has_missed_much_makes_the_slot_anew() -> None:
    slot = slot_of(PAIRS, workers=2)
    at(slot, 0).batch(events("a1"), 0)
    for number in range(20):
        at(slot, 1).batch(events(f"b{number + 2}"), 0)
    at(slot, 0).batch(events("x30"), 29)
    assert slot.counted["made anew"] == 2
    assert len(found(slot)) == 20


def test_an_attempt_that_failed_after_it_had_worked_left_nothing() -> None:
    """Neither in the worker that had it, nor when another one has done the batch since."""
    slot = slot_of(PAIRS, workers=2)
    at(slot, 0).batch(events("a1"), 0)
    slot.store.begin()
    assert len(list(slot._attempt(slot.at[0], events("a2"), 0, stops=False))) == 1
    slot.store.rollback()
    at(slot, 1).batch(events("a2"), 0)
    at(slot, 0).batch(events("b5"), 0)
    at(slot, 0).batch(None, 9)
    assert found(slot) == ["a1 b5", "a2 b5"]


def test_an_attempt_that_failed_half_way_left_nothing() -> None:
    """It had let time pass, and given the first match, when it failed."""
    slot = slot_of(PAIRS)
    slot.batch(events("a1 b2"), 0)
    slot.store.begin()
    with pytest.raises(Gone):
        list(slot._attempt(slot.at[0], events("b5"), 3, stops=True))
    slot.store.rollback()
    slot.batch(events("b5"), 3)
    slot.batch(None, 9)
    assert found(slot) == ["a1 b2", "a1 b5"]
    assert slot.counted["made anew"] == 1


@pytest.mark.parametrize("lives", range(6))
def test_a_worker_that_died_catching_up_left_nothing(lives: int) -> None:
    """After any number of calls of Spark's."""
    slot = slot_of(PAIRS, workers=2)
    at(slot, 0).batch(events("a1"), 0)
    for time in (2, 3, 4):
        at(slot, 1).batch(events(f"a{time}"), 0)
    slot.store.begin(lives)
    with pytest.raises(Gone):
        list(slot._attempt(slot.at[0], events("b5"), 0, stops=False))
    slot.store.rollback()
    at(slot, 0).batch(events("b5"), 0)
    at(slot, 0).batch(None, 9)
    assert found(slot) == ["a1 b5", "a2 b5", "a3 b5", "a4 b5"]


def test_a_worker_that_failed_while_it_replayed_left_nothing() -> None:
    slot = slot_of(PAIRS, workers=2)
    at(slot, 0).batch(events("a1"), 0)
    at(slot, 1).batch(events("a2"), 0)
    replay = Engine.replay

    def failing(engine: Engine, rows: pa.Table, watermark: int | None, *, gives: bool) -> None:
        replay(engine, rows, watermark, gives=gives)
        raise Gone

    slot.store.begin()
    with mock.patch.object(Engine, "replay", failing), pytest.raises(Gone):
        list(slot._attempt(slot.at[0], events("b5"), 0, stops=False))
    slot.store.rollback()
    at(slot, 0).batch(events("b5"), 0)
    at(slot, 0).batch(None, 9)
    assert found(slot) == ["a1 b5", "a2 b5"]


def test_two_streams_have_slots_of_the_same_number() -> None:
    one, two = slot_of(PAIRS), slot_of(PAIRS)
    two.at = one.at
    one.batch(events("a1"), 0)
    two.batch(events("a2"), 0)
    two.batch(events("b4"), 0)
    one.batch(events("b3"), 0)
    one.batch(None, 9)
    two.batch(None, 9)
    assert (found(one), found(two)) == (["a1 b3"], ["a2 b4"])
    assert one.counted["as it stood"] == 4


def test_a_worker_holds_only_so_much() -> None:
    small = Settings(stream=Stream(cache_bytes=1))
    one, two = slot_of(PAIRS, settings=small), slot_of(PAIRS, settings=small)
    two.at = one.at
    one.batch(events("a1"), 0)
    two.batch(events("a2"), 0)
    assert one.at[0].last().page == two.at[0].last().page
    assert len(one.at[0]._slots) == 1
    one.batch(events("b3"), 0)
    one.batch(None, 9)
    assert found(one) == ["a1 b3"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "PATTERN SEQ(A a, B b) WITHIN 10 INCLUSIVE",
        "PATTERN SEQ(!(N n), A a, B b) WITHIN 10",
        "PATTERN SEQ(A a, B b, !(N n)) WITHIN 10",
        "PATTERN SEQ(A a, B b, !(N n)) WITHIN 10 OUTPUT NON_OVERLAP",
        # The first of two matches that end with the same event has left the window when the second is certain.
        "PATTERN SEQ(A a, B b, !(N n)) WITHIN 10 OUTPUT COMPRESSED",
        "PATTERN SEQ(A a, B b, C c) WITHIN 10 TIMEOUTS INTO unmet",
        "PATTERN SEQ(A a, B b) WHERE strict_contiguity { } WITHIN 10 OUTPUT NON_OVERLAP",
    ],
)
@pytest.mark.parametrize("log", [0, 1 << 18], ids=["snapshots", "segments"])
def test_a_slot_that_every_batch_makes_anew_misses_nothing(
    text: str, log: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One event a batch, and time one step on."""
    monkeypatch.setattr(live_slot, "_LEAST_LOG", log)
    rows = events("n0 a1 a9 b10 a12 b13 n14 a17 b18 c19 b22 a30 b31 a45")
    slot = slot_of(text)
    for now in range(60):
        slot.at[0].forget_all()
        slot.batch(rows.filter(pc.equal(rows.column("ts"), now)), now)
    expected = evaluate(rows, slot.queries)
    assert slot.rows("matches") == sorted(content(expected.matches)) != []
    assert slot.rows("timeouts") == sorted(content(expected.timeouts))
    assert slot.counted["as it stood"] == slot.counted["caught up"] == 0


def test_an_event_completes_one_row_though_others_complete_theirs_at_the_same_time() -> None:
    """Runs of 123 are decided before those of 125, and released with them."""
    slot = slot_of("PATTERN SEQ(A+ a[], !(N n)) WITHIN 14 OUTPUT COMPRESSED")
    rows = events("a123 a125/1 a125/2")
    slot.batch(rows, 0)
    assert given_at(slot, "matches", range(1, 200)) == [138, 140]
    assert slot.rows("matches") == sorted(content(evaluate(rows, slot.queries).matches))


def test_a_group_at_the_end_is_whole_when_its_window_has_closed() -> None:
    slot = slot_of("PATTERN B b ; A+ a WITHIN 14")
    for word, now in (("b1", 0), ("a2", 1), ("a3", 2)):
        slot.batch(events(word), now)
    assert given_at(slot, "matches", range(2, 40)) == [16]
    assert found(slot) == ["b1 a2 a3"]


def test_several_queries_share_a_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some of which need snapshots, and some none: on stacks, on the automaton, on a tree."""
    monkeypatch.setattr(live_slot, "_LEAST_LOG", 0)
    texts = [
        KEYED,
        f"{KEYED} OUTPUT NON_OVERLAP",
        "PATTERN A a & C c WHERE [id] WITHIN 10",
        "PATTERN B b WITHIN 3 EVENTS",
    ]
    queries = [Query(text, name=f"q{number}") for number, text in enumerate(texts)]
    slot = Slot(queries, Schema(), events("").schema, several=True, workers=3, failing=0.2)
    rows = pa.concat_tables(list(fed(slot, batches=20, each=6)))
    slot.batch(None, FAR)
    expected = evaluate(rows, queries, several=True)
    assert slot.rows("matches") == sorted(content(expected.matches))
    assert set(expected.matches.column("query").to_pylist()) == {"q0", "q1", "q2", "q3"}
    assert slot.page.based > 0


def test_state_of_another_query_is_refused() -> None:
    slot, other = slot_of(PAIRS), slot_of(PAIRS.replace("50", "51"))
    slot.batch(events("a1"), 0)
    other.store = slot.store
    with pytest.raises(BadSnapshot, match="kept for other queries"):
        other.batch(events("b3"), 0)


# What is told of it -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("PATTERN SEQ(A a, B b, C c) WHERE [id] WITHIN 10", 4),
        ("PATTERN SEQ(A a, B b, C c) WHERE [id] WITHIN 10 OUTPUT NON_OVERLAP", 4),
        ("PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_next_match { [id] } WITHIN 10", 3),
        ("PATTERN SEQ(A a, B b, C c) WHERE [id] WITHIN 10 TIMEOUTS INTO unmet", 4),
    ],
)
def test_runs_and_state_are_those_of_open_windows(text: str, runs: int) -> None:
    """Of a slot to which nothing comes any more, too: the last of its windows closes at 17."""
    slot = slot_of(text)
    slot.batch(events("a1/1 a2/2 b3/1 a6/3"), 0)
    assert (slot.metrics()["held"], slot.metrics()["runs"]) == (4, 0)
    slot.batch(events("x7"), 7)
    assert slot.metrics()["held"] == 5
    assert slot.metrics()["runs"] == runs
    # The windows of 1 and 2 have closed, and the run that the B at 3 belongs to is dead with its A.
    slot.batch(events("x13"), 13)
    assert slot.metrics()["runs"] == 1
    for now in range(14, 40):
        slot.batch(None, now)
    assert {name: slot.metrics()[name] for name in ("held", "runs", "state_bytes")} == {
        "held": 0,
        "runs": 0,
        "state_bytes": 0,
    }
    assert not slot.store.timers


def test_records_of_a_tree_are_runs() -> None:
    """At 7: the A and B events and the pair of 1 and 3. At 13 the pair is dead, and so are the A at 1 and that at 2."""
    slot = slot_of("PATTERN (A a & B b) ; C c WHERE [id] WITHIN 10")
    slot.batch(events("a1/1 a2/2 b3/1 a5/3 c6/4"), 0)
    slot.batch(None, 7)
    assert slot.metrics()["runs"] == 5
    slot.batch(events("x13"), 13)
    assert slot.metrics()["runs"] == 2
    for now in range(14, 40):
        slot.batch(None, now)
    assert (slot.metrics()["held"], slot.metrics()["runs"]) == (0, 0)


def test_a_silent_slot_keeps_nothing_when_its_windows_have_closed() -> None:
    slot = slot_of(PAIRS)
    slot.batch(events("a1 a2"), 0)
    assert given_at(slot, "metrics", range(1, 100)) == [2, 3, 53]
    assert slot.metrics()["kept_bytes"] == slot.store.nbytes == 0


def test_what_lies_in_a_window_of_events_stays_alive_while_none_comes() -> None:
    slot = slot_of("PATTERN SEQ(A a, B b) WITHIN 5 EVENTS")
    slot.batch(events("a1 a2"), 0)
    slot.batch(events("c3"), 1_000)
    assert slot.metrics()["runs"] == 2
    assert not slot.store.timers
