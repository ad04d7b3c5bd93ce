"""Queries that feed each other on a slot of a stream: as on a table, whatever fails, and no slower with time."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from time import process_time
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from tests.composition.piecewise import graph_of
from tests.engine.agreement import SETTINGS, content, eager_rebuilding
from tests.engine.batches import events
from tests.engine.feeding import READER, Listed, feeding_pair, late_pair
from tests.soaking import least, rounds, some_of
from tests.spark.streaming.driving import FAR, OUTPUTS, Slot, fed
from tests.spark.streaming.test_slots_agree import IN_TIME, PACES, TOO_LATE, late_rows, micro_batches

from kleene.engine.intake.timeline import bad_rows, integers
from kleene.errors import NotOnStreams, UnboundedState
from kleene.evaluation import evaluate
from kleene.frames.numbers import to_arrow
from kleene.pattern import Query, Schema
from kleene.pattern.query import BoundQuery
from kleene.plan.settings import Settings
from kleene.queries.any_query import read_query
from kleene.spark.streaming import live_slot
from kleene.spark.streaming.preparing import check_runs

Draw = Callable[[random.Random], Listed | None]
pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("kind", "drawn", "number"),
    [("feeding", feeding_pair, 400), pytest.param("late", late_pair, 300, marks=pytest.mark.soak)],
)
def test_chained_queries_on_a_slot_agree_with_a_batch(
    kind: str, drawn: Draw, number: int, record_property: Callable[[str, object], None]
) -> None:
    counted: Counter[str] = Counter()
    for seed in range(rounds(number)):
        _compare(f"chained {kind} {seed}", drawn, SETTINGS[seed % len(SETTINGS)], counted)
    names = ("pairs", "with matches", "with late events", "refused", "made anew", "as it stood", "caught up", "restart")
    record_property(
        "counted", f"chained slots = batch: {kind}: {', '.join(f'{counted[name]} {name}' for name in names)}"
    )
    assert counted["pairs"] >= least(number // 6)
    assert counted["with matches"] >= least(number // 20)


def _compare(name: str, drawn: Draw, settings: Settings, counted: Counter[str]) -> None:
    draw = random.Random(name)
    listed = drawn(draw)
    if listed is None:
        return
    if any(isinstance(node.query, BoundQuery) and node.query.counts_events for node in graph_of(listed).nodes):
        return  # Some of what a batch decides at its end a stream leaves open.
    good = bad_rows(listed.table, listed.schema, 0)[1]
    table = listed.table if good is None else listed.table.filter(to_arrow(good))
    try:
        check_runs(graph_of(listed), settings)
    except (UnboundedState, NotOnStreams):
        counted["refused"] += 1
        return
    if not table.num_rows:
        return
    times = integers(table.column(listed.schema.time)).tolist()
    pace, (disorder, delay) = draw.choice(PACES), draw.choice([*IN_TIME, *TOO_LATE])
    batches = micro_batches(draw, times, pace, disorder=disorder, delay=delay)
    late = late_rows(batches, times, pace)
    in_time = pa.array(sorted(set(range(table.num_rows)).difference(late)), pa.int64())
    expected = evaluate(table.take(in_time), listed.queries, schema=listed.schema, several=True, settings=settings)
    failing = draw.choice([0, 0.25])
    slot = Slot(
        listed.queries, listed.schema, table.schema, settings, pace, True, draw.randint(1, 3), failing, draw, counted
    )
    with mock.patch.object(live_slot, "_LEAST_LOG", draw.choice([0, 1 << 18])), eager_rebuilding():
        for batch in batches:
            slot.batch(table.take(pa.array(batch.rows, pa.int64())), batch.milliseconds)
    for kind in OUTPUTS:
        assert slot.rows(kind) == sorted(content(getattr(expected, kind))), f"{kind} of {name}: {listed.text}"
    assert slot.number("late") == len(late)
    assert not slot.store.timers, "nothing waits for time any more"
    counted["pairs"] += 1
    counted["with matches"] += READER in expected.matches.column("query").to_pylist()
    counted["with late events"] += bool(late)


# Chains of every kind ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("maker", "reader"),
    [
        ("SEQ(A a, B b)", "SEQ(S s, C c)"),
        ("SEQ(A a, !(B b))", "SEQ(C c, S s)"),
        ("SEQ(A a, B b)", "SEQ(C c, !(S s))"),
        ("SEQ(A a, B b)", "SEQ(!(S s), C c)"),
    ],
)
def test_queries_that_feed_each_other_share_a_slot(maker: str, reader: str) -> None:
    made = Query(f"PATTERN {maker} WHERE [id] WITHIN 10 RETURN a.id AS id INTO S", name="made")
    read = Query(f"PATTERN {reader} WHERE [id] WITHIN 20", name="read")
    slot = Slot([made, read], Schema(), events("").schema, several=True, workers=3, failing=0.2)
    rows = pa.concat_tables(list(fed(slot, batches=8, each=6)))
    slot.batch(None, FAR)
    expected = evaluate(rows, [made, read], several=True).matches
    assert slot.rows("matches") == sorted(content(expected))
    assert set(expected.column("query").to_pylist()) == {"made", "read"}


@pytest.mark.parametrize(
    "reader", ["SEQ(S s, C c)", "SEQ(C c, S s)", "SEQ(A a, !(S s), C c)", "SEQ(C c, !(S s))", "S s & B b", "S s"]
)
def test_timeouts_feed_a_query_in_a_slot(reader: str) -> None:
    made = Query("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 5 TIMEOUTS INTO S", name="made")
    read = Query(f"PATTERN {reader} WHERE [id] WITHIN 20", name="read")
    slot = Slot([made, read], Schema(), events("").schema, several=True, workers=3, failing=0.2)
    rows = pa.concat_tables(list(fed(slot, batches=10, each=6)))
    slot.batch(None, FAR)
    expected = evaluate(rows, [made, read], several=True)
    assert slot.rows("matches") == sorted(content(expected.matches))
    assert slot.rows("timeouts") == sorted(content(expected.timeouts))
    assert set(expected.matches.column("query").to_pylist()) == {"made", "read"}


# However long it runs ------------------------------------------------------------------------------------------------

A_BATCH = 10_000
CHAINS = {
    "patterns": (
        "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 20000 RETURN a.id AS id, b.x AS x INTO Pair",
        "PATTERN SEQ(Pair p, Pair q, !(C c)) WHERE [id] AND q.x > p.x WITHIN 20000",
    ),
    "streams": (
        "ρ{a.id ↦ id, b.x ↦ x} ∘ π{a.id, b.x}(A a ;{a.id = b.id AND DUR <= 20000} B b) publish Pair",
        "σ{q.x > p.x}(Pair p ;{p.id = q.id AND DUR <= 20000} Pair q)",
    ),
}


def _events(number: int) -> pa.Table:
    """A batch of a stream, one event a step: each is like the one before."""
    draw = np.random.default_rng(7)
    types = pa.array(["A", "B", "C"]).take(pa.array(draw.choice(3, A_BATCH, p=[0.45, 0.45, 0.1])))
    ids, values = draw.integers(0, 5_000, A_BATCH), draw.integers(0, 1_000, A_BATCH)
    first = number * A_BATCH
    return pa.table({"type": types, "ts": np.arange(first, first + A_BATCH), "id": ids, "x": values})


def _slot_of(chain: str) -> Slot:
    pairs, climbs = CHAINS[chain]
    return Slot([read_query(pairs, "pairs"), read_query(climbs, "climbs")], Schema(), _events(0).schema)


@pytest.mark.parametrize("chain", some_of(CHAINS, 2))
def test_a_batch_deep_in_the_stream_costs_what_an_early_one_does(
    chain: str, record_property: Callable[[str, object], None]
) -> None:
    """Composite events are made as time passes, and state follows the windows."""
    slot = _slot_of(chain)
    seconds, state, matches = [], [], []
    for number in range(80):
        began = process_time()
        slot.batch(_events(number), number * A_BATCH)
        seconds.append(process_time() - began)
        state.append(slot.metrics()["state_bytes"])
        matches.append(slot.metrics()["matches"])
    # The store is made anew every few batches, and other work on the machine may slow down half of them.
    early, deep = (sorted(each)[len(each) // 4] for each in (seconds[5:25], seconds[60:]))
    record_property(
        "counted",
        f"a chain of two {chain}: a batch costs {1000 * early:.1f} ms after 3 windows, {1000 * deep:.1f} ms after 30;"
        f" state {max(state[5:20]):,} and {max(state[40:]):,} bytes",
    )
    assert deep < 1.2 * early
    assert max(state[40:]) <= 1.05 * max(state[5:20]), "state follows the window, over twenty of them"
    assert set(matches[10:]) == {matches[-1]}
    assert matches[-1] > 100


@pytest.mark.parametrize("chain", CHAINS)
def test_a_chain_goes_on_where_it_was_killed(chain: str) -> None:
    """After each batch on another worker, from what Spark keeps, of which time forgets what it has left behind."""
    steady, killed = _slot_of(chain), _slot_of(chain)
    for number in range(12):
        for slot in (steady, killed):
            slot.batch(_events(number), number * A_BATCH)
        for worker in killed.at:
            worker.forget_all()
    assert killed.counted["made anew"] == 11
    assert killed.rows("matches") == steady.rows("matches")
    assert len(killed.rows("matches")) > 1_000
    assert len(killed.store.segments) < 12
