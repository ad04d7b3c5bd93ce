"""Plans that change while they run (ZStream §5.3): nothing lost, nothing doubled, and soon the right one."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from tests.engine.agreement import Pair, case_of, content, pair_of
from tests.soaking import some_of

from kleene.engine.engine import Engine
from kleene.engine.executors.trees.adapting import Adapter
from kleene.engine.output.outputs import EngineOutputs
from kleene.frames.arrow import schema_on
from kleene.optimize.choosing import logicals
from kleene.optimize.statistics import Statistics, scaled
from kleene.optimize.trees.all_trees import all_trees
from kleene.pattern import Query, Schema
from kleene.pattern.query import BoundQuery
from kleene.plan.program import NotCompilable
from kleene.plan.settings import Adapting, ExecutorKind, Settings
from kleene.plan.trees import TreePlan

TYPES = ("IBM", "Sun", "Oracle", "Google")
TEXT = "PATTERN IBM; Sun; Oracle; Google WHERE Oracle.price > Sun.price AND Oracle.price > Google.price WITHIN 80 units"
ROUND = 256


def trades(events: int, rates: tuple[int, ...], first: float, second: float, begin: int = 0) -> pa.Table:
    """`first` of the pairs of Oracle and Sun satisfy their condition, `second` of those of Oracle and Google."""
    draw = np.random.default_rng(begin + 1)
    kinds = draw.choice(len(TYPES), events, p=np.array(rates) / sum(rates))
    price = draw.random(events) * 100
    price[kinds == 1] = 100 * (1 - first)
    price[kinds == 3] = 100 * (1 - second)
    return pa.table({"type": np.array(TYPES)[kinds], "ts": np.arange(begin, begin + events), "price": price})


def bound(table: pa.Table, text: str = TEXT) -> BoundQuery:
    return Query(text).bind(schema_on(table.schema, Schema()))


def settings(**given: Any) -> Settings:
    return Settings(executor=ExecutorKind.TREES, adapting=Adapting(round=ROUND, **given))


def ran(engine: Engine, *tables: pa.Table) -> list[str]:
    found: list[str] = []
    for table in tables:
        found += ids(engine.process(table, int(table["ts"][-1].as_py()) + 1))
    return found + ids(engine.finish())


def ids(made: EngineOutputs) -> list[str]:
    return [] if made.matches is None else list(made.matches["match_id"].to_pylist())


def known(query: BoundQuery, table: pa.Table) -> Statistics:
    """What there is to know of a table."""
    engine = Engine(query, settings())
    engine.process(table, int(table["ts"][-1].as_py()) + 1)
    assert engine._planning is not None
    return engine._planning.again().statistics


PHASES = (
    trades(4000, (1, 100, 100, 100), 1, 1),
    trades(4000, (1, 1, 1, 1), 1 / 50, 1, 4000),
    trades(4000, (1, 1, 1, 1), 1, 1 / 50, 8000),
)


def test_each_phase_gets_its_own_plan() -> None:
    query = bound(PHASES[0])
    engine = Engine(query, settings())
    plans = []
    found: list[str] = []
    for table in PHASES:
        found += ids(engine.process(table, int(table["ts"][-1].as_py()) + 1))
        plans.append(engine.plan.alternatives)
    found += ids(engine.finish())
    assert plans[0] != plans[1] != plans[2] != plans[0]
    assert engine.statistics.plan_changes >= 2
    stacks = Engine(query, Settings(executor=ExecutorKind.STACKS))
    assert sorted(found) == sorted(ran(stacks, pa.concat_tables(PHASES)))
    # Where plans may not change, there are as many matches.
    assert sorted(ran(Engine(query, settings(on=False)), *PHASES)) == sorted(found)


def test_what_never_changes_is_left_alone() -> None:
    engine = Engine(bound(PHASES[1]), settings())
    ran(engine, PHASES[1])
    assert engine.statistics.plan_changes == 0
    (measured,) = engine.measured
    assert measured is not None
    assert measured.rounds >= 11


@pytest.mark.slow
@pytest.mark.parametrize("factor", [1000.0, 1 / 1000])
@pytest.mark.parametrize("wrong", ["IBM", "Sun", "Oracle", "Google", "all rates", "conditions"])
def test_statistics_that_mislead_cost_some_rounds_and_no_match(wrong: str, factor: float) -> None:
    table = PHASES[2]
    query = bound(table)
    truth = known(query, table)
    right = Engine(query, settings(), statistics=truth)
    expected = ran(right, table)
    names = {
        "all rates": set(truth.rates),
        "conditions": set(truth.selectivities),
        **{kind: {fingerprint} for kind, fingerprint in zip(TYPES, _rates(query, truth), strict=True)},
    }[wrong]
    misled = Engine(query, settings(), statistics=scaled(truth, factor, names))
    rounds = 10 * ROUND
    found = ran(misled, table.slice(0, rounds))
    assert found == ran(Engine(query, settings(), statistics=truth), table.slice(0, rounds))
    # What it runs after ten rounds costs no more than a little above the best for what is true.
    assert _cost(query, misled, truth) <= 1.3 * _cost(query, right, truth)
    assert sorted(ran(Engine(query, settings(), statistics=scaled(truth, factor, names)), table)) == sorted(expected)


def _rates(query: BoundQuery, truth: Statistics) -> list[str]:
    from kleene.optimize.fingerprints import of_scan
    from kleene.plan.physical import Scan

    return [of_scan(Scan(component)) for component in query.components if of_scan(Scan(component)) in truth.rates]


def _cost(query: BoundQuery, engine: Engine, truth: Statistics) -> float:
    from kleene.optimize.cost import cost_of

    (plan,) = engine.plan.alternatives
    assert isinstance(plan, TreePlan)
    return cost_of(query, plan, truth).total


# Any plan at any time ------------------------------------------------------------------------------------------------


STRATA = ("sequence", "negation", "conjunction", "disjunction", "nested", "closure", "count_window", "optional", "ties")


@pytest.mark.slow
@pytest.mark.parametrize("stratum", some_of(STRATA, 4))
def test_a_change_at_any_round_loses_and_doubles_nothing(
    stratum: str, record_property: Callable[[str, object], None]
) -> None:
    """After each round another plan, drawn at random: the rows are those of the reference."""
    pairs = changes = 0
    for seed in range(60):
        draw = random.Random(f"{stratum} {seed}")
        pair = pair_of(case_of(draw, stratum))
        if pair is None:
            continue
        try:
            made = _restlessly(pair, draw)
        except NotCompilable:
            continue
        pairs, changes = pairs + 1, changes + made
    record_property("counted", f"plans changed at random: {stratum:14} {pairs} pairs, {changes} changes")
    assert changes > 30


def _restlessly(pair: Pair, draw: random.Random) -> int:
    if any(component.kind.name == "KLEENE" for component in pair.bound.components) and pair.bound.window is None:
        return 0
    parts, _ = logicals(pair.bound)
    plans = [list(_some_plans(pair.bound, part)) for part in parts]

    def any_plan(adapter: Adapter, *_: object) -> TreePlan | None:
        own = next(number for number, part in enumerate(parts) if part is adapter._logical)
        return draw.choice(plans[own]) if draw.random() < 0.7 else None

    chosen = Settings(executor=ExecutorKind.TREES, adapting=Adapting(round=draw.choice((1, 2, 3))))
    with mock.patch.object(Adapter, "after_round", any_plan):
        engine = Engine(pair.bound, chosen)
        if not any(isinstance(alternative, TreePlan) for alternative in engine.plan.alternatives):
            return 0
        assert engine._planning is not None
        parts = engine._planning.parts
        engine.process(pair.table)
        made = engine.finish()
    assert content(made.matches) == content(pair.expected.matches), pair.text
    return engine.statistics.plan_changes


def _some_plans(query: BoundQuery, part: Any) -> Iterator[TreePlan]:
    return islice(all_trees(query, part), 40)
