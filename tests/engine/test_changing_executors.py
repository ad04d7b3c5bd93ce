"""Lines move between stacks, automaton and trees while they run, and no match is lost or doubled."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from tests.engine.agreement import case_of, check, pair_of
from tests.engine.test_adapting import TEXT, bound, ids, trades
from tests.engine.tree_agreement import all_plans
from tests.soaking import rounds, some_of

import kleene
from kleene.engine import engine_state, planning
from kleene.engine.engine import Engine
from kleene.engine.engine_state import EngineState
from kleene.lang.tree import OutputMode
from kleene.optimize.planner import line_plans
from kleene.optimize.trees.building import why_not_trees
from kleene.pattern.nodes import ComponentKind
from kleene.pattern.query import BoundQuery
from kleene.plan.mermaid import plan_mermaid
from kleene.plan.physical import AutomatonPlan, Plan, SequencePlan
from kleene.plan.settings import Adapting, ExecutorKind, Policy, Settings
from kleene.plan.trees import TreePlan

# Any executor at any round -------------------------------------------------------------------------------------------

# The random cases of each stratum; of some few are lines that all executors run.
STRATA = {
    "sequence": 200,
    "negation": 250,
    "optional": 150,
    "disjunction": 300,
    "ties": 800,
    "tie_breaker": 800,
    "durations": 800,
    "count_window": 150,
    "nulls_missing": 200,
    "boolean_conditions": 100,
}


def may_run_anyhow(query: BoundQuery, settings: Settings) -> bool:
    """Whether stacks, automaton and trees all run a line, whether or not a tree could ever pay."""
    plain = query.output is OutputMode.ALL and query.timeouts is None and settings.budget.policy is Policy.FAIL
    single = all(component.kind is ComponentKind.SINGLE for component in query.positives)
    return plain and single and why_not_trees(query) is None


@dataclass
class Restless:
    """Changes executors at random, after rounds of a few events and after batches."""

    draw: random.Random
    plans: list[Plan]
    # How often each kind of executor took over from each other.
    changes: Counter[tuple[str, str]] = field(default_factory=Counter)
    within_batches: int = 0

    @contextmanager
    def changing(self) -> Iterator[None]:
        plain = EngineState._change_plan

        def better(state: EngineState, until: int, watermark: int | None = None) -> Plan | None:
            planned = state._planning is not None and state._planning.may_change_executors
            return self.draw.choice(self.plans) if planned and self.draw.random() < 0.7 else None

        def change(state: EngineState, plan: Plan, until: int, watermark: int | None) -> Any:
            self.changes[_kind(state.plan), _kind(plan)] += 1
            self.within_batches += until < state.store.size
            return plain(state, plan, until, watermark)

        with (
            mock.patch.object(planning, "may_be_trees", may_run_anyhow),
            mock.patch.object(EngineState, "_better_plan", better),
            mock.patch.object(EngineState, "_change_plan", change),
            mock.patch.multiple(engine_state, _ROUND=self.draw.randint(1, 3), _MOST_ROUNDS=1000),
        ):
            yield


def _kind(plan: Plan) -> str:
    names = {SequencePlan: "stacks", AutomatonPlan: "automaton", TreePlan: "trees"}
    return names[type(plan.alternatives[0])]


def changed_at_random(stratum: str, seeds: range) -> tuple[int, int, Restless]:
    """The pairs compared, those with matches, and what changed."""
    pairs = matched = 0
    every = Restless(random.Random(), [])
    for seed in seeds:
        draw = random.Random(f"executors {stratum} {seed}")
        pair = pair_of(case_of(draw, stratum))
        settings = Settings(adapting=Adapting(round=draw.choice((None, 1, 3))))
        if pair is None or not pair.bound.is_lines or not may_run_anyhow(pair.bound, settings):
            continue
        plans = [*line_plans(pair.bound, settings), *all_plans(pair.bound, draw)[:6]]
        restless = Restless(draw, plans)
        with restless.changing():
            if not check(pair, settings, draw):
                continue
        pairs, matched = pairs + 1, matched + (pair.expected.matches.num_rows > 0)
        every.changes += restless.changes
        every.within_batches += restless.within_batches
    return pairs, matched, every


@pytest.mark.slow
@pytest.mark.parametrize("stratum", some_of(STRATA, 3))
def test_a_change_of_executor_at_any_round_loses_and_doubles_nothing(
    stratum: str, record_property: Callable[[str, object], None]
) -> None:
    """Rows with their ids, at once and in pieces, restored from snapshots and rebuilt, are those of the reference."""
    number = rounds(STRATA[stratum])
    pairs, matched, ran = changed_at_random(stratum, range(number))
    text = ", ".join(f"{one} → {other} {count}" for (one, other), count in sorted(ran.changes.items()))
    counted = f"{pairs} pairs, {matched} with matches, {ran.within_batches} changes within batches; {text}"
    record_property("counted", f"executors changed at random: {stratum:18} {counted}")
    assert pairs >= number // 16
    assert ran.changes.total() > pairs
    assert ran.within_batches >= pairs // 4 or stratum == "count_window"


# When it pays --------------------------------------------------------------------------------------------------------

LINKED = "PATTERN SEQ(A a, B b, C c) WHERE a.x = b.x WITHIN 120"


def linked(events: int, apart: int, begin: int = 0) -> pa.Table:
    """Events so far apart; few of an A and a B have the same x.

    Stacks construct from each C back over all of B; a tree looks up the few pairs that are equal.
    """
    draw = np.random.default_rng(begin + events)
    return pa.table(
        {
            "type": draw.choice(["A", "B", "C"], events),
            "ts": begin + apart * np.arange(events),
            "x": draw.integers(0, 200, events),
        }
    )


DENSE = linked(6000, 1)
DENSE_THEN_SPARSE = pa.concat_tables([DENSE, linked(40_000, 200, 6000)])
SPARSE_THEN_DENSE = pa.concat_tables([linked(18_000, 200), linked(24_000, 1, 18_000 * 200)])


def in_batches(engine: Engine, table: pa.Table, rows: int) -> tuple[list[str], list[str]]:
    """The ids of all matches, and the executor after each batch."""
    found, ran = [], []
    for begin in range(0, table.num_rows, rows):
        part = table.slice(begin, rows)
        found += ids(engine.process(part, int(part["ts"][-1].as_py()) + 1))
        ran.append(_kind(engine.plan))
    return found, ran


def on_stacks(table: pa.Table) -> list[str]:
    return ids(Engine(bound(table, LINKED), Settings(executor=ExecutorKind.STACKS)).finish(table))


def test_a_stream_that_begins_with_tiny_batches_gets_the_tree_when_it_pays() -> None:
    engine = Engine(bound(DENSE, LINKED))
    found, ran = in_batches(engine, DENSE, 64)
    assert ran[0] == "stacks"
    assert ran[-1] == "trees"
    # It stays there.
    assert ran == sorted(ran)
    assert engine.statistics.plan_changes >= 1
    assert sorted(found) == sorted(on_stacks(DENSE))


def test_without_adapting_it_stays_where_it_began() -> None:
    engine = Engine(bound(DENSE, LINKED), Settings(adapting=Adapting(on=False)))
    _, ran = in_batches(engine, DENSE, 512)
    assert set(ran) == {"stacks"}
    assert engine.statistics.plan_changes == 0


def test_a_tree_goes_back_to_stacks_when_little_is_left_to_order() -> None:
    engine = Engine(bound(DENSE, LINKED))
    found, ran = in_batches(engine, DENSE_THEN_SPARSE, 2500)
    assert ran[0] == "trees"
    assert ran[-1] == "stacks"
    assert sorted(found) == sorted(on_stacks(DENSE_THEN_SPARSE))


def test_executors_change_within_one_batch() -> None:
    """A table comes in one batch, and its matches in their order, whatever ran in between."""
    engine = Engine(bound(DENSE, LINKED))
    found = ids(engine.finish(SPARSE_THEN_DENSE))
    assert engine.statistics.plan_changes >= 1
    assert _kind(engine.plan) == "trees"
    assert found == on_stacks(SPARSE_THEN_DENSE)


def test_counts_of_events_go_on_when_executors_change() -> None:
    engine = Engine(bound(DENSE, LINKED))
    in_batches(engine, DENSE, 512)
    assert engine.statistics.plan_changes >= 1
    (counts,) = engine.statistics.components
    kinds = Counter(DENSE["type"].to_pylist())
    assert {count.variable.upper(): count.seen for count in counts} == kinds


# Explained and run ---------------------------------------------------------------------------------------------------

TABLES = {
    "few": (TEXT, trades(1500, (1, 100, 100, 100), 1, 1)),
    "rare first": (TEXT, trades(9000, (1, 100, 100, 100), 1, 1)),
    "first selective": (TEXT, trades(30_000, (1, 1, 1, 1), 1 / 50, 1)),
    "second selective": (TEXT, trades(30_000, (1, 1, 1, 1), 1, 1 / 50)),
    "dense": (LINKED, DENSE),
    "sparse": (LINKED, linked(70_000, 200)),
    "many": (LINKED, linked(70_000, 2)),
}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("shuffled", [False, True])
def test_what_is_explained_on_a_table_is_what_runs(name: str, shuffled: bool) -> None:
    text, table = TABLES[name]
    if shuffled:
        table = table.take(pa.array(np.random.default_rng(1).permutation(table.num_rows)))
    engine = Engine(bound(table, text))
    engine.finish(table)
    assert kleene.explain(text, events=table).mermaid == plan_mermaid(engine.plan)
    assert engine.statistics.plan_changes == 0


def test_explained_plans_differ() -> None:
    """Otherwise what is said above would say little."""
    assert len({kleene.explain(text, events=table).mermaid for text, table in TABLES.values()}) >= 5
