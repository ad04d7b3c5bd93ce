"""An executor of one's own runs through `Engine`, and every executor of ours keeps to the contract."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.engine.batches import bound

import kleene
from kleene.engine.engine import Engine
from kleene.engine.executors.automaton import AutomatonExecutor
from kleene.engine.executors.contract import Completions, Executor, ExecutorContext, Flags
from kleene.engine.executors.registry import EXECUTORS
from kleene.engine.executors.trees.executor import TreeExecutor
from kleene.engine.executors.windows import Closing
from kleene.engine.intake.bits import Bits, scan
from kleene.engine.intake.columns import ColumnStore
from kleene.engine.output.matches import ColumnarMatches
from kleene.engine.state.statistics import ComponentCounts
from kleene.engine.state.store import EventStore
from kleene.kernels.timeline import Timeline
from kleene.plan.costs import Measured
from kleene.plan.physical import Plan, SequencePlan

QUERY = "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 10"


@dataclass(frozen=True)
class ToyPlan:
    """Every pair of an A and a B is tried, in plain Python."""

    key: tuple[str, ...] = ("id",)
    has_negated_end: bool = False
    has_negated_start: bool = False


class ToyExecutor(Executor):
    def __init__(self, plan: ToyPlan, context: ExecutorContext) -> None:
        self.plan, self.key, self._context = plan, plan.key, context
        self._firsts: list[int] = []
        self._pairs: list[tuple[int, int]] = []
        self._seen = 0

    def bits(self, columns: ColumnStore, in_partition: Flags) -> Bits:
        asked = [(component, ()) for component in self._context.query.positives]
        found = scan(asked, columns, self._context.strings, in_partition)
        nothing = np.zeros(len(in_partition), np.int64)
        self._seen += len(in_partition)
        return Bits(found.bits, nothing, nothing)

    def advance(self, store: EventStore, begin: int, bits: Bits, time: Timeline, keys: int) -> None:
        for number, could_be in enumerate(bits.begins.tolist(), begin):
            if could_be & 2:
                self._pairs += [(first, number) for first in self._firsts if self._belong(first, number, time)]
            if could_be & 1:
                self._firsts.append(number)

    def _belong(self, first: int, last: int, time: Timeline) -> bool:
        apart = int(time.ends[last] - time.starts[first])
        return time.keys[first] == time.keys[last] and time.rights[first] < time.lefts[last] and apart < 10

    def settle(self, store: EventStore, time: Timeline, keys: int, closing: Closing) -> Completions:
        pairs, self._pairs = np.array(self._pairs, np.int32).reshape(-1, 2), []
        return Completions(ColumnarMatches(pairs.T.astype(np.int32), np.array([0, 1], np.uint8)))

    def counts(self) -> tuple[ComponentCounts, ...]:
        return (ComponentCounts("a", self._seen, self._seen),)

    def count_from(self, counts: Mapping[str, ComponentCounts], measured: Measured | None) -> None:
        self._seen = counts["a"].seen

    @property
    def runs(self) -> int:
        return len(self._firsts)

    def open_runs(self, closing: Closing) -> int:
        return int(np.count_nonzero(~closing.closed(np.array(self._firsts, np.int64))))

    @property
    def nbytes(self) -> int:
        return 8 * len(self._firsts)

    def open_bytes(self, closing: Closing, time: Timeline) -> int:
        return 8 * self.open_runs(closing)


def events(number: int = 200) -> pa.Table:
    rng = np.random.default_rng(7)
    return pa.table(
        {
            "type": rng.choice(["A", "B", "C"], number),
            "ts": np.sort(rng.integers(0, number, number)),
            "id": rng.integers(0, 3, number),
        }
    )


def toy_engine(table: pa.Table) -> Engine:
    query = bound(QUERY, table)
    plan: Any = ToyPlan()
    return Engine(query, plan=Plan(query, (plan,)))


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EXECUTORS, ToyPlan, ToyExecutor)


def test_an_executor_of_ones_own_finds_what_ours_find() -> None:
    table = events()
    wanted = kleene.match(table, kleene.query(QUERY, name="pairs"))
    running = toy_engine(table)
    given = [
        running.process(table.slice(at, 20), int(table["ts"][min(at + 20, 199)].as_py())) for at in range(0, 200, 20)
    ]
    given.append(running.finish())
    found = pa.concat_tables([each.matches for each in given if each.matches is not None])
    assert wanted.num_rows > 20
    assert found.select(["a", "b"]).to_pylist() == wanted.select(["a", "b"]).to_pylist()
    assert running.statistics.rows == 200


def test_it_is_made_anew_of_the_events_it_needs() -> None:
    table = events()
    running = toy_engine(table)
    first = running.process(table.slice(0, 100), int(table["ts"][100].as_py()))
    restored = Engine.restore(running.query, running.snapshot(), plan=running.plan)
    for engine in (running, restored):
        assert engine.process(table.slice(100), None).matches is None
    ends = [engine.finish().matches for engine in (running, restored)]
    assert first.matches is not None
    assert first.matches.num_rows
    assert ends[0] is not None
    assert ends[0].equals(ends[1])


# What every executor has to say for itself; the rest of the contract has an answer that most can give.
REQUIRED = {"bits", "advance", "settle", "counts", "count_from", "runs", "open_runs", "nbytes", "open_bytes"}


@pytest.mark.parametrize("executor", [*EXECUTORS.values(), ToyExecutor], ids=lambda one: one.__name__)
def test_executors_have_what_the_contract_asks_for(executor: type) -> None:
    asked = {name for name in vars(Executor) if not name.startswith("_")}
    assert asked > REQUIRED
    assert vars(executor).keys() >= REQUIRED
    assert Executor in executor.__mro__
    public = {name for name in vars(executor) if not name.startswith("_")}
    beside = {AutomatonExecutor: "the graph of its runs", TreeExecutor: "its changes of plan"}
    assert public <= asked or executor in beside


def test_the_planner_still_chooses_ours() -> None:
    assert isinstance(Engine(bound(QUERY, events())).plan.alternatives[0], SequencePlan)
