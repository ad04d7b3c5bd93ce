"""A table in slices of time: the same rows in the same order, however many threads."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from tests.engine.agreement import STRATA, case_of, content, in_slices, pair_of
from tests.soaking import least, rounds

import kleene
from kleene.engine import engine, slices
from kleene.engine.engine import BegunSlice, Engine
from kleene.engine.slices import FEWEST_ROWS, Slice, cores, side_by_side, slices_of, slices_of_keys
from kleene.errors import BudgetExceeded
from kleene.frames.arrow import schema_on
from kleene.pattern import Query, Schema
from kleene.plan.program import NotCompilable
from kleene.plan.settings import Budget, Policy, Settings

EVENTS = 4 * FEWEST_ROWS
TEXT = "PATTERN SEQ(A a, B b, C c) WHERE [k] WITHIN 400"


def stream(size: int = EVENTS, seed: int = 1) -> pa.Table:
    draw = np.random.default_rng(seed)
    types = pa.DictionaryArray.from_arrays(pa.array(draw.integers(0, 4, size), pa.int8()), pa.array([*"ABCD"]))
    times = np.cumsum(draw.integers(0, 3, size))
    return pa.table({"type": types, "ts": times, "k": draw.integers(0, 50, size), "x": draw.random(size)})


@pytest.fixture(autouse=True)
def _also_where_rows_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "_DENSE", 0)


@pytest.mark.parametrize("stratum", ["sequence", "kleene_any", "conjunction", "negation", "ties", "compressed"])
def test_slices_agree_with_the_reference(stratum: str, record_property: Callable[[str, object], None]) -> None:
    """Where slices are cut anywhere; some of the pairs of all other tests of agreement run so, too."""
    compared, cut = 0, 0
    for seed in range(rounds(STRATA[stratum], 4)):
        draw = random.Random(f"slices {stratum} {seed}")
        pair = pair_of(case_of(draw, stratum))
        if pair is None:
            continue
        with mock.patch.object(engine, "side_by_side", wraps=side_by_side) as running:
            try:
                ran = in_slices(pair, Settings(), draw.randint(2, 6))
            except NotCompilable:
                continue
        assert ran.matches == content(pair.expected.matches), pair.text
        compared += 1
        cut += running.called
    record_property("counted", f"in slices = reference: {stratum} {compared} pairs, {cut} cut")
    assert cut >= least(STRATA[stratum], 4) // 4


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        "PATTERN SEQ(A a, !(B b), C c) WHERE [k] AND a.x < c.x WITHIN 200",
        "PATTERN !(B b) ; A a ; C c WHERE [k] WITHIN 400",
        "PATTERN SEQ(A+ a[], C c) WHERE skip_till_next_match { [k] AND a[i].x > a[i-1].x } WITHIN 300",
        "PATTERN A a & B b WHERE [k] AND a.x < b.x WITHIN 60",
        "PATTERN SEQ(A a, B b) WHERE [k] WITHIN 200 RETURN a.k AS k, b.x - a.x AS more",
    ],
)
def test_results_do_not_depend_on_the_number_of_threads(text: str) -> None:
    table = stream()
    one, *others = (kleene.match(table, text, settings=Settings(threads=number)) for number in (1, 2, 4))
    assert one.num_rows > 100
    for other in others:
        assert other.combine_chunks().equals(one.combine_chunks())


def test_slices_cover_every_row_once() -> None:
    table, schema = stream(), schema_on(stream().schema, Schema())
    ends = table.column("ts").to_numpy()
    for number in (2, 3, 4):
        parts = slices_of(table, schema, 500, number)
        assert len(parts) == number
        assert parts[0].since is None
        own = 0
        for part in parts:
            times = part.rows.column("ts").to_numpy()
            since = int(times[0]) if part.since is None else part.since
            own += int(np.count_nonzero(times >= since))
            # Nothing that a window reaches is missing.
            assert len(times) == np.count_nonzero((ends >= since - (500 if part.since else 0)) & (ends <= times[-1]))
        assert own == table.num_rows


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("PATTERN SEQ(A a, B b) WHERE [k]", "no window, and events that end together"),
        ("PATTERN SEQ(A a, B b) WHERE [k] WITHIN 9 EVENTS", "a window of events"),
        ("PATTERN SEQ(A a, B b) WHERE [k] WITHIN 400 OUTPUT NON_OVERLAP", "what is chosen depends on all before"),
        ("PATTERN SEQ(A a, B b, !(C c)) WHERE [k] WITHIN 400", "matches are certain later than they end"),
        ("PATTERN SEQ(A a, B b) WHERE [k] WITHIN 400 TIMEOUTS INTO Late", "timeouts"),
        ("PATTERN SEQ(A a, B b) WHERE [k] WITHIN 200000", "a window as long as a slice"),
    ],
)
def test_one_slice_where_several_would_not_do(text: str, why: str) -> None:
    table = stream()
    query = Query(text).bind(schema_on(table.schema, Schema()))
    assert len(Engine(query).slices(table, 4)) == 1, why


def strict(size: int = EVENTS) -> pa.Table:
    """A stream in which no two events end together, with many keys, so that a query needs no window."""
    table = stream(size)
    keys = np.random.default_rng(5).integers(0, size // 16, size)
    return table.set_column(1, "ts", pa.array(np.arange(size) * 3)).set_column(2, "k", pa.array(keys))


@pytest.mark.parametrize(
    "text",
    [
        "PATTERN SEQ(A a, B b, C c) WHERE [k]",
        "PATTERN SEQ(A+ a[], C c) WHERE skip_till_next_match { [k] AND a[i].x > a[i-1].x }",
        "PATTERN (A a | B b) ; C c WHERE [k]",
        "PATTERN A a & B b WHERE [k] AND a.x < b.x RETURN a.x AS x, b.k AS k",
    ],
)
def test_without_a_window_slices_are_of_keys(text: str) -> None:
    table = strict()
    with mock.patch.object(engine, "slices_of_keys", wraps=slices_of_keys) as cutting:
        one, *others = (kleene.match(table, text, settings=Settings(threads=number)) for number in (1, 2, 3))
    assert cutting.call_count == 2
    assert one.num_rows > 1_000
    for other in others:
        assert other.combine_chunks().equals(one.combine_chunks())


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("PATTERN SEQ(A a, B b)", "no key"),
        ("PATTERN SEQ(A a, !(B b), C c) WHERE [k]", "a negated event may have no key"),
        ("PATTERN SEQ(A a, B b) WHERE partition_contiguity { [k] }", "events have places"),
        ("PATTERN SEQ(A a, B b) WHERE strict_contiguity { [k] }", "events have places"),
        ("PATTERN SEQ(A a, B b) WHERE [k] OUTPUT NON_OVERLAP", "what is chosen depends on all before"),
    ],
)
def test_one_slice_where_keys_would_not_do(text: str, why: str) -> None:
    table = strict()
    query = Query(text).bind(schema_on(table.schema, Schema()))
    assert len(Engine(query).slices(table, 4)) == 1, why
    dropping = Settings(budget=Budget(policy=Policy.DROP_OLDEST))
    free = Query("PATTERN SEQ(A a, B b) WHERE [k]").bind(schema_on(table.schema, Schema()))
    assert len(Engine(free).slices(table, 4)) == 4
    assert len(Engine(free, dropping).slices(table, 4)) == 1


def test_rows_in_no_order_and_few_rows_are_one_slice() -> None:
    table, schema = stream(), schema_on(stream().schema, Schema())
    shuffled = table.take(pa.array(np.random.default_rng(3).permutation(table.num_rows)))
    assert len(slices_of(shuffled, schema, 500, 4)) == 1
    assert len(slices_of(table.slice(0, 2 * FEWEST_ROWS - 1), schema, 500, 4)) == 1
    assert len(slices_of(table.slice(0, 2 * FEWEST_ROWS), schema, 500, 4)) == 2


def test_few_rows_of_a_key_in_a_window_are_one_slice() -> None:
    table, schema = stream(), schema_on(stream().schema, Schema())
    for key, horizon, number in (((), 100, 4), (("k",), 100, 1), (("k",), 2_000, 4), (("k", "x"), 2_000, 1)):
        with mock.patch.object(slices, "_DENSE", 16):
            assert len(slices_of(table, schema, horizon, 4, key)) == number
        assert len(slices_of(table, schema, horizon, 4, key)) == 4


@pytest.mark.parametrize("type_", [*"AD"])
def test_a_row_out_of_order_that_no_look_meets(type_: str) -> None:
    """Slices cut by few looks are given up where their events tell that rows are in no order, and only there."""
    table = stream()
    times, types = table.column("ts").to_numpy().copy(), np.array(table.column("type").to_pylist())
    # Rows that belong to a slice before or behind their own, or to their own.
    for place, moved in ((EVENTS // 2 + 1, -100_000), (EVENTS // 3, 100_000), (EVENTS // 4 + 3, -3)):
        row = place + int(np.flatnonzero(types[place:] == type_)[0])
        changed = times.copy()
        changed[row] += moved
        rows = table.set_column(1, "ts", pa.array(changed))
        with mock.patch.object(engine, "_settled_slice", wraps=engine._settled_slice) as settled:
            one, other = (kleene.match(rows, TEXT, settings=Settings(threads=number)) for number in (1, 3))
        assert settled.called == (type_ == "D")
        said = str(kleene.explain(TEXT, events=rows, settings=Settings(threads=3)))
        assert ("  threads  " in said) == (type_ == "D")
        assert one.num_rows > 100
        assert other.combine_chunks().equals(one.combine_chunks())


def test_each_slice_has_a_thread() -> None:
    table, names = stream(), set()
    running = Engine(Query(TEXT).bind(schema_on(table.schema, Schema())))
    work = running._begin_slice

    def noted(part: Slice) -> BegunSlice:
        names.add(threading.current_thread().name)
        return work(part)

    with mock.patch.object(running, "_begin_slice", noted):
        outputs = running.finish(table, threads=3)
    assert len(names) == 3
    assert outputs.statistics.rows == table.num_rows
    assert outputs.statistics.relevant == np.count_nonzero(np.array(table.column("type").to_pylist()) != "D")


def test_a_budget_fails_as_on_one_thread() -> None:
    table = stream()
    messages = []
    for number in (1, 4):
        with pytest.raises(BudgetExceeded) as problem:
            kleene.match(table, TEXT, settings=Settings(threads=number, budget=Budget(matches_per_event=3)))
        messages.append(str(problem.value))
    assert messages[0] == messages[1]


def test_explain_says_how_many_threads_work() -> None:
    text = str(kleene.explain(TEXT, events=stream(), settings=Settings(threads=3)))
    assert "  threads    3, each with a slice of time" in text
    assert "nothing is sorted" in text
    by_key = str(kleene.explain("PATTERN SEQ(A a, B b) WHERE [k]", events=strict(), settings=Settings(threads=3)))
    assert "  threads    3, each with the events of some keys" in by_key
    for settings, table in ((Settings(threads=1), stream()), (Settings(threads=3), stream(FEWEST_ROWS))):
        assert "threads" not in str(kleene.explain(TEXT, events=table, settings=settings))


def test_threads_are_at_least_one() -> None:
    with pytest.raises(ValueError, match="`threads` must be at least 1"):
        Settings(threads=0)
    assert cores(Settings(threads=3)) == 3
    assert cores(Settings()) >= 1
