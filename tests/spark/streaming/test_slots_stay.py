"""A slot stays with the worker that has it: tasks of other workers hand over what came, and nothing is replayed."""

from __future__ import annotations

import random
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from tests.engine.agreement import content
from tests.engine.batches import events
from tests.spark.streaming.driving import FAR, Slot, Worker, fed, slot_of

from kleene.errors import KleeneError
from kleene.evaluation import evaluate
from kleene.pattern import Query
from kleene.spark.streaming import live_slots
from kleene.spark.streaming.live_slot import LiveSlot
from kleene.spark.streaming.slot_owner import forget_stream, hand_over, slots_folder

TEXT = "PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_next_match { [id] } WITHIN 40"
NON_OVERLAP = "PATTERN SEQ(A a, B b) WITHIN 40 OUTPUT NON_OVERLAP"


@pytest.fixture
def folder() -> Iterator[Path]:
    # Not pytest's own: its paths are too long for a socket.
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


def _agrees(slot: Slot, text: str, batches: int, **options: int) -> None:
    """Feed a long stream: the slot must find what the events as one table hold."""
    every = list(fed(slot, batches=batches, each=8, jitter=0, **options))
    slot.batch(None, FAR)
    slot.batch(events(f"a{FAR}"), FAR)
    slot.batch(None, 2 * FAR)
    expected = evaluate(pa.concat_tables(every), [Query(text)])
    assert slot.rows("matches") == sorted(content(expected.matches))
    assert slot.number("matches")


@pytest.mark.parametrize("text", [TEXT, NON_OVERLAP], ids=["windows", "snapshots"])
def test_no_slot_is_made_anew_because_another_worker_was_free(folder: Path, text: str) -> None:
    slot = slot_of(text, workers=3, folder=folder)
    _agrees(slot, text, batches=40)
    metrics = slot.every_metrics()
    assert sum(each["handed_over"] for each in metrics) > 10
    assert not sum(each["made_anew"] + each["caught_up"] for each in metrics)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("text", [TEXT, NON_OVERLAP], ids=["windows", "snapshots"])
def test_workers_that_fail_and_die_lose_nothing_and_find_nothing_twice(folder: Path, text: str, seed: int) -> None:
    """Attempts fail before, while and after another worker has worked for them; workers and Spark start again."""
    slot = slot_of(text, workers=3, folder=folder, failing=0.3, draw=random.Random(seed))
    _agrees(slot, text, batches=30)
    assert slot.counted["made anew"], "some attempts fail after the slot has worked"
    assert sum(each["handed_over"] for each in slot.every_metrics())


def test_an_update_of_an_attempt_that_failed_is_not_believed(folder: Path) -> None:
    slot = slot_of(TEXT, workers=2, folder=folder)
    first, second = slot.at
    slot.at = [first]
    slot.batch(events("a1 b2"), 0)
    slot.at = [second]
    slot.store.begin()
    list(slot._attempt(second, events("b3"), 0, stops=False))  # The first worker has done it for the second one,
    slot.store.rollback()  # and Spark has not kept it.
    slot.batch(events("c4"), 0)
    slot.batch(None, 50)
    assert [len(row["b"]) for table in slot.given["matches"] for row in table.to_pylist()] == [1]
    assert slot.counted["made anew"] == 1


def test_what_goes_wrong_elsewhere_is_met_by_the_worker_of_the_task(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slot = slot_of(TEXT, workers=2, folder=folder)
    first, second = slot.at
    slot.at = [first]
    slot.batch(events("a1"), 0)

    def fails(*_: object) -> None:
        raise KleeneError("no room")

    slot.at = [second]
    with monkeypatch.context() as patched:
        patched.setattr(LiveSlot, "_apart", fails)
        with pytest.raises(KleeneError, match="no room"):
            slot.batch(events("b2"), 0)
    slot.store.rollback()
    slot.batch(events("b2"), 0)
    assert slot.counted["made anew"] == 2


def test_a_worker_of_other_queries_or_settings_is_not_asked_in_vain(folder: Path) -> None:
    """Its slot is of another task, as after a change of settings: the slot is made anew."""
    slot = slot_of(TEXT, workers=2, folder=folder)
    first, second = slot.at
    slot.at = [first]
    slot.batch(events("a1"), 0)
    slot.told = {**slot.told, "several": False, "pace": (1, 1), "further": 1}
    slot.at = [second]
    slot.batch(events("b2"), 0)
    assert slot.counted["made anew"] == 1


# Who has how many ---------------------------------------------------------------------------------------------------


def test_a_busy_worker_gives_slots_away_until_others_have_as_many(folder: Path) -> None:
    slots = [slot_of(TEXT, workers=2, folder=folder) for _ in range(4)]
    first, second = slots[0].at
    for slot in slots:
        slot.at, slot.known = [first], [first, second]
        slot.batch(events("a1"), 0)
        slot.at = [second]
    assert (len(first), len(second)) == (4, 0)
    with first._working:
        for slot in slots[:2]:
            slot.batch(events("b2"), 0)
    assert (len(first), len(second)) == (2, 2)
    for slot in slots:  # It is not busy any more.
        slot.batch(events("b3"), 0)
    assert (len(first), len(second)) == (2, 2)


# The end ------------------------------------------------------------------------------------------------------------


def test_an_ended_stream_leaves_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    streams = {"one": slot_of(TEXT, folder=folder), "two": slot_of(TEXT, folder=folder)}
    worker = streams["one"].at[0]
    for name, slot in streams.items():
        slot.at = slot.known = [worker]
        monkeypatch.setattr("kleene.spark.streaming.processor._stream", lambda name=name: name)
        slot.batch(events("a1"), 0)
    assert len(worker) == 2
    assert len(list(folder.iterdir())) == 3
    (address,) = folder.glob("*.socket")
    assert stat.S_IMODE(address.lstat().st_mode) == 0o600
    forget_stream(folder, "one")
    assert len(worker) == 1
    assert len(list(folder.iterdir())) == 2
    forget_stream(folder, "two")
    assert not len(worker)
    assert not list(folder.iterdir())


def test_streams_whose_workers_meet_elsewhere(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker with streams of two drivers answers in the folder of each, and leaves each when its own have ended."""
    other = folder / "other"
    other.mkdir(mode=0o700)
    here, there = slot_of(TEXT, workers=2, folder=folder), slot_of(TEXT, workers=2, folder=other)
    first, second = here.at

    def batch(slot: Slot, at: Worker, text: str) -> None:
        slot.at, slot.known = [at], [first, second]
        name = "here" if slot is here else "there"
        monkeypatch.setattr("kleene.spark.streaming.processor._stream", lambda: name)
        slot.batch(events(text), 0)

    for slot in (here, there, here):
        batch(slot, first, "a1")
    assert [len(list(each.glob("*.socket"))) for each in (folder, other)] == [1, 1]
    # What another worker hands over is still found where it was.
    for slot in (here, there, here, there):
        batch(slot, second, "b2")
    assert not here.counted["made anew"] + there.counted["made anew"]
    forget_stream(folder, "here")
    assert [each.name for each in folder.iterdir()] == ["other"]
    assert len(first) == 1
    forget_stream(other, "there")
    assert not list(other.iterdir())


def test_what_a_stream_began_before_it_ended_is_not_remembered(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slot = slot_of(TEXT, folder=folder)
    worker = slot.at[0]
    monkeypatch.setattr("kleene.spark.streaming.processor._stream", lambda: "one")
    update = live_slots._updated

    def ends_meanwhile(*arguments: object) -> object:
        worker.forget_stream("one")
        return update(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(live_slots, "_updated", ends_meanwhile)
    slot.store.begin()
    list(slot._attempt(worker, events("a1"), 0, stops=False))
    assert not len(worker)
    assert not list(folder.iterdir())


def test_a_slot_that_is_not_used_for_long_is_forgotten(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slot = slot_of(TEXT, folder=folder)
    slot.batch(events("a1"), 0)
    slot.at[0].forget_unused()
    assert len(slot.at[0]) == 1
    monkeypatch.setattr(live_slots, "UNUSED_SECONDS", -1.0)
    slot.at[0].forget_unused()
    assert not len(slot.at[0])
    assert not list(folder.iterdir())


def test_a_worker_that_is_gone_is_no_owner(folder: Path) -> None:
    """Its socket and its links are there until somebody looks."""
    slot = slot_of(TEXT, workers=2, folder=folder)
    first, second = slot.at
    slot.at = [first]
    slot.batch(events("a1"), 0)
    owner = first._owners[folder]
    assert owner is not None
    owner._stop()
    owner._thread.join()
    slot.at = [second]
    slot.batch(events("b2"), 0)
    assert slot.counted["made anew"] == 1
    assert len(list(folder.glob("*.socket"))) == 2
    forget_stream(folder, "none")
    assert len(list(folder.glob("*.socket"))) == 1


# Where they meet ----------------------------------------------------------------------------------------------------


def test_workers_meet_only_where_nobody_else_may_enter(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    assert slots_folder(str(folder)) == folder
    folder.chmod(0o755)
    assert slots_folder(str(folder)) is None
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{folder},/elsewhere")
    own = slots_folder(None)
    assert own == folder / "kleene-slots"
    assert stat.S_IMODE(own.lstat().st_mode) == 0o700
    own.chmod(0o770)
    assert slots_folder(None) is None


def test_a_name_that_no_slot_has_leads_nowhere(folder: Path) -> None:
    (folder / "inner").mkdir()
    (folder / "x-1").symlink_to("y")
    assert hand_over(folder / "inner", ("../x", 1), {}, []) is None


def test_workers_without_sockets_work_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kleene.spark.streaming.live_slots.SlotOwner", _no_sockets)
    slot = slot_of(TEXT, workers=3, folder=folder)
    _agrees(slot, TEXT, batches=12)
    assert slot.counted["caught up"]


def _no_sockets(folder: Path, slots: Worker) -> None:
    raise OSError("AF_UNIX path too long")
