"""What an engine keeps on a stream: the events of open windows, and without a window what its budget allows."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from tests.engine.agreement import eager_rebuilding
from tests.engine.batches import bound, events, words

from kleene.engine.engine import Engine
from kleene.errors import UnboundedState
from kleene.plan.settings import Budget, Settings

STACKS = "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 10"
RUNS = "PATTERN SEQ(A+ a[], B b) WHERE [id] WITHIN 10"
BOTH = pytest.mark.parametrize("text", [STACKS, RUNS], ids=["stacks", "runs"])


def long_stream(batches: int, size: int) -> list[pa.Table]:
    """One event a tick, half of them A, three keys."""
    draw = np.random.default_rng(7)
    made = []
    for number in range(batches):
        made.append(
            pa.table(
                {
                    "type": pa.array(np.array(["A", "B"])[draw.integers(0, 2, size)]),
                    "ts": pa.array(np.arange(number * size, (number + 1) * size)),
                    "id": pa.array(np.array(["0", "1", "2"])[draw.integers(0, 3, size)]),
                }
            )
        )
    return made


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        STACKS,
        RUNS.replace("A+", "A{1,2}"),
        "PATTERN SEQ(A a, !(B b)) WHERE [id] WITHIN 10",
        "PATTERN SEQ(!(B b), A a, A c) WHERE [id] WITHIN 10",
        "PATTERN SEQ(A a, B b) WHERE partition_contiguity { [id] } WITHIN 10 EVENTS",
        "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 10 OUTPUT NON_OVERLAP",
        "PATTERN SEQ(A a, B b) WHERE skip_till_next_match { [id] } WITHIN 10 TIMEOUTS INTO late",
    ],
)
def test_the_state_is_bounded_by_the_window(text: str) -> None:
    """And what was made anew gives what was never made anew gives."""
    batches = long_stream(60, 20)
    calm = Engine(bound(text))
    expected: list[str] = []
    late: list[str] = []
    for batch in batches:
        made = calm.process(batch, watermark=int(batch.column("ts")[-1].as_py()))
        expected += words(made.matches)
        late += words(made.timeouts)
    found: list[str] = []
    found_late: list[str] = []
    sizes, bytes_ = [], []
    with eager_rebuilding():
        engine = Engine(bound(text))
        for batch in batches:
            made = engine.process(batch, watermark=int(batch.column("ts")[-1].as_py()))
            found += words(made.matches)
            found_late += words(made.timeouts)
            sizes.append(engine.statistics.events)
            bytes_.append(engine.nbytes)
    assert len(expected) > 50
    assert found == expected
    assert found_late == late
    # A window of ten ticks, or of ten events of three keys, at most doubled for what a negated start forbade; as much
    # again may be dead; and the batch itself.
    assert max(sizes) <= 2 * 60 + 20
    assert calm.statistics.events > 1_000
    assert max(bytes_[30:]) <= 1.5 * max(bytes_[10:30])


@BOTH
def test_the_store_is_made_anew_when_that_is_worth_it(text: str) -> None:
    engine = Engine(bound(text.replace("WITHIN 10", "WITHIN 3")))
    sizes = []
    for batch in long_stream(8, 20_000):
        engine.process(batch, watermark=int(batch.column("ts")[-1].as_py()))
        sizes.append(engine.statistics.events)
    assert any(after < before for before, after in pairwise(sizes))
    assert max(sizes) < 100_000
    # What was counted is not forgotten with the events.
    assert engine.statistics.relevant == 8 * 20_000 - 1
    assert sum(counts.seen for counts in engine.statistics.components[0]) == 8 * 20_000 - 1


def test_keys_that_come_and_go_are_forgotten() -> None:
    with eager_rebuilding():
        engine = Engine(bound(STACKS))
        bytes_ = []
        for number in range(300):
            batch = events(" ".join(f"a{20 * number + n}/{20 * number + n}" for n in range(20)))
            engine.process(batch, watermark=20 * number + 20)
            bytes_.append(engine.nbytes)
    assert max(bytes_[100:]) <= 1.2 * max(bytes_[10:100])


# Without a window --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["PATTERN SEQ(A a, B b)", "PATTERN SEQ(A+ a[], B b)"])
def test_a_query_without_within_is_refused_on_a_stream_without_a_state_budget(text: str) -> None:
    engine = Engine(bound(text))
    with pytest.raises(UnboundedState, match="keeps its events for ever") as raised:
        engine.process(events("a1 b2"), watermark=3)
    assert "Budget(state_bytes=" in str(raised.value.hint)


@pytest.mark.parametrize("text", ["PATTERN SEQ(A a, B b)", "PATTERN SEQ(A+ a[], B b)"])
def test_a_query_without_within_runs_on_bounded_input_and_under_a_budget(text: str) -> None:
    engine = Engine(bound(text))
    engine.process(events("a1 b2"))
    assert words(engine.finish().matches) == ["a1 b2"]
    engine = Engine(bound(text), Settings(budget=Budget(state_bytes=1 << 20)))
    found = words(engine.process(events("a1"), watermark=2).matches)
    for number in range(2, 50):
        found += words(engine.process(events(f"x{number}"), watermark=number + 1).matches)
    found += words(engine.process(events("b50"), watermark=51).matches)
    assert found == ["a1 b50"]
