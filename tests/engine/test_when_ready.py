"""What runs uncompiled, what is begun again with compiled kernels, and what the log says of it."""

from __future__ import annotations

import logging

import pytest
from tests.engine.batches import bound, events

from kleene.engine import readiness, warming
from kleene.engine.readiness import when_ready
from kleene.evaluation import evaluate
from kleene.kernels import kernel_cache
from kleene.kernels.interpreting import _DEADLINE, OutOfTime
from kleene.optimize.planner import plan_query
from kleene.pattern import Query
from kleene.plan.physical import AutomatonPlan, Plan

SEQUENCE = "PATTERN SEQ(A a, B b) WITHIN 9"
CLOSURE = "PATTERN SEQ(C+ c[], B b) WITHIN 500"
STREAM = " ".join(f"c{number}" for number in range(1, 16)) + " b90"


@pytest.fixture(autouse=True)
def cold(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has compiled nothing, where nothing is kept."""
    monkeypatch.setattr(readiness, "_PROCESS", readiness._Process())
    monkeypatch.setattr(warming, "_ready", False)
    monkeypatch.setattr(warming, "stamp_name", lambda: "no such stamp")
    monkeypatch.setattr(warming, "shipped_stamp_name", lambda _: "no such stamp")
    monkeypatch.setenv("KLEENE_WARM", "0")


def ways(number: int, text: str, *, fails: int = 0) -> list[bool]:
    """How some work was done, each time that it was begun: uncompiled or not; the first times it takes too long."""
    begun: list[bool] = []

    def work() -> None:
        begun.append(_DEADLINE.get() is not None)
        if len(begun) <= fails:
            raise OutOfTime

    when_ready(work, number, plan_query(bound(text)))
    return begun


def test_few_events_run_uncompiled_and_many_compiled() -> None:
    assert ways(readiness.MOST_EVENTS, SEQUENCE) == [True]
    assert ways(readiness.MOST_EVENTS + 1, SEQUENCE) == [False]


def test_what_takes_too_long_uncompiled_is_begun_again_compiled() -> None:
    assert ways(10, SEQUENCE, fails=1) == [True, False]


def test_an_executor_whose_kernels_were_compiled_here_stays_compiled() -> None:
    assert ways(readiness.MOST_EVENTS + 1, SEQUENCE) == [False]
    assert ways(10, SEQUENCE) == [False]
    assert ways(10, CLOSURE) == [True]


def test_a_process_that_ran_uncompiled_for_long_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ways(10, SEQUENCE) == [True]
    monkeypatch.setattr(readiness._PROCESS, "uncompiled_seconds", 1e6)
    assert ways(10, SEQUENCE) == [False]


def test_everything_is_compiled_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KLEENE_WARM", "now")
    assert ways(10, SEQUENCE) == [False]


def test_the_reference_evaluator_waits_for_no_kernel() -> None:
    done: list[bool] = []
    plan = Plan.on_reference(bound(SEQUENCE), "it is to be slow")
    when_ready(lambda: done.append(_DEADLINE.get() is not None), readiness.MOST_EVENTS + 1, plan)
    assert done == [False]


def test_a_few_events_with_too_many_matches_are_matched_in_the_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """2^15 matches of 16 events: uncompiled they would take longer than is given, and the answer is the same."""
    monkeypatch.setattr(readiness, "MOST_SECONDS", 0.05)
    caplog.set_level(logging.INFO, "kleene")
    made = evaluate(events(STREAM), [Query(CLOSURE)])
    assert made.matches.num_rows == 2**15 - 1
    assert any("begin again" in line for line in caplog.messages)


def test_who_waits_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    def work() -> None:
        for number in range(30):
            for observer in list(kernel_cache.observers):
                observer(f"some.kernel{number}")

    caplog.set_level(logging.INFO, "kleene")
    when_ready(work, 10**6, plan_query(bound(CLOSURE)))
    warned = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert [record.getMessage() for record in warned] == [
        f"compiling kernels, once, about {readiness.SHARES[AutomatonPlan].seconds} s"
    ]
    assert "compiled 20 of about" in caplog.messages[-1]
    assert not kernel_cache.observers


def test_nothing_is_said_when_nothing_is_compiled(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "kleene")
    when_ready(lambda: None, 10**6, plan_query(bound(CLOSURE)))
    assert caplog.messages == []


def test_a_show_of_progress_replaces_the_log(caplog: pytest.LogCaptureFixture) -> None:
    shown: list[int] = []
    with readiness.shown_by(lambda done, share: shown.append(done)):
        when_ready(
            lambda: [observer("a.kernel") for observer in kernel_cache.observers], 10**6, plan_query(bound(CLOSURE))
        )
    assert shown == [0]
    assert caplog.messages == []
