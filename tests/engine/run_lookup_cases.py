"""Queries whose runs are found by value on the automaton's edges, and events that try what `=` means there.

`python -m tests.engine.run_lookup_cases '[["runs", 3]]'` compares a case with the reference, for mutants; `"shapes"`
have more events, beside an automaton that offers each event to all runs.
"""

from __future__ import annotations

import json
import random
import sys
import traceback
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from unittest import mock

import numpy as np
import pyarrow as pa
from tests.engine.agreement import check, pair_of
from tests.engine.lookup_cases import REALS, WHOLES
from tests.engine.test_adapting import bound

import kleene
from kleene.engine.engine import Engine
from kleene.engine.executors import run_lookups
from kleene.engine.executors.automaton import AutomatonExecutor
from kleene.kernels import runs as kernel
from kleene.optimize.rules import LOOK_UP_RUNS
from kleene.plan.settings import ExecutorKind, Settings
from kleene.testing.generators import GeneratedCase

# A pattern, and its conditions. x and z are whole, y is real.
LINES = (
    ("SEQ(A a, B+ b[], C c)", "b[1].x = a.z AND b[i].x = a.z AND c.z = a.z"),
    ("SEQ(A a, B+ b[], C c)", "b[i].x = a.z AND c.z = a.x"),
    ("SEQ(A a, B+ b[], C c)", "b[1].y = a.x AND b[i].y = a.x"),
    ("SEQ(A a, B+ b[], C c)", "b[i].z = b[i-1].x AND c.y = b[b.LEN].x AND b[i].s = a.s"),
    ("SEQ(A+ a[], B b)", "a[i].x = a[i-1].z AND b.x = a[a.LEN].z"),
    ("SEQ(A+ a[], B b)", "a[i].x = a[1].x AND b.s = a[1].s AND b.z != a[1].x"),
    # One event may be taken, or begin the next component: both edges find runs, or one does.
    ("SEQ(A+ a[], A b)", "a[i].x = a[i-1].z AND b.z = a[1].x"),
    ("SEQ(A+ a[], ANY(A, B) b, C c)", "a[i].z = a[1].z AND b.x = a[a.LEN].z"),
    ("SEQ(A+ a[], A b)", "a[i].x = a[1].x"),
    ("SEQ(A+ a[], A b)", "b.x = a[1].z"),
    ("SEQ(A{2,3} a[], A{1,2} b[])", "a[i].z = a[i-1].z AND b[1].z = a[1].z AND b[i].x = a[1].z"),
    # Single events, under skip_till_next_match, and where the automaton is asked for.
    ("SEQ(A a, B b, C c)", "b.x = a.z AND c.z = b.x"),
    ("SEQ(A a, B b)", "b.y = a.x AND b.s = a.s"),
    ("SEQ(A a, A b, A c)", "b.x = a.x AND c.x = a.z AND c.z = b.z"),
    ("SEQ(A a, B b)", "b.ts = a.ts + 2"),
    # Computed sides, aggregates, and an event by its number.
    ("SEQ(A a, B+ b[], C c)", "b[1].x + 1 = a.z * 2 AND b[i].z % 2 = a.z AND c.z = a.x + b[1].x"),
    ("SEQ(A a, B+ b[], C c)", "c.z = max(b[..].x) AND b[i].y * 2 = a.x"),
    ("SEQ(A+ a[], B b)", "b.y = avg(a[..].x)"),
    ("SEQ(A+ a[], B b)", "b.x = sum(a.z) AND a[i].z = count(a[..i-1])"),
    ("SEQ(A+ a[], B b)", "b.x = a[2].z"),
    ("SEQ(A+ a[], B b)", "b.s = min(a.s) AND b.z = count(a.x)"),
    # A key beside it, negation, components that may be absent, and types that lack x: these equal everything.
    ("SEQ(A a, B+ b[], C c)", "[id] AND b[1].x = a.z AND b[i].x = a.z AND c.z = a.z"),
    ("SEQ(A a, !(B n), C c)", "c.z = a.x AND n.y = a.y"),
    ("SEQ(A a, B+ b[], !(B n), C c)", "b[1].x = a.z AND b[i].x = a.z AND c.z = a.z AND n.x = a.x"),
    ("SEQ(A a, B+ b[], !(C n))", "b[1].x = a.z AND b[i].x = b[i-1].x AND n.z = a.z"),
    ("SEQ(A a, B? e, C c)", "c.z = a.z AND e.x = a.x AND c.z = e.z"),
    ("SEQ(A a, B* b[], C c)", "c.z = a.z AND b[1].x = a.z AND b[i].x = a.z AND c.z = max(b.x)"),
    ("SEQ(A a, ANY(B, C)+ b[], A c)", "b[1].x = a.z AND b[i].x = a.z AND c.z = a.z"),
    ("SEQ(ANY(A, C) a, B b)", "b.z = a.x"),
    ("SEQ(ANY(A, C)+ a[], B b)", "b.z = max(a.x)"),
)
STRATEGIES = (*["skip_till_next_match", "skip_till_any_match"] * 3, "strict_contiguity")
ENDS = ("", "", "", "", " EVENTS", " OUTPUT NON_OVERLAP", " OUTPUT COMPRESSED", " TIMEOUTS INTO late")


def run_lookup_case(draw: random.Random, number: int) -> GeneratedCase:
    """A query, and events with ties, NULL, NaN, and numbers that only one of integers and reals has."""
    pattern, conditions = LINES[number % len(LINES)]
    strategy, end = draw.choice(STRATEGIES), draw.choice(ENDS)
    # Few values a case, so that some are equal.
    wholes, reals = draw.sample(WHOLES, 3), draw.sample(REALS, 3)
    start, tie_breaker = draw.choice(((None, None), (None, None), ("began", None), (None, "n")))
    now, rows = 0, []
    for place in range(draw.randint(8, 12)):
        now += draw.choice((0, 1, 1, 2))
        row = {
            "type": draw.choice("AABBBCC"),
            "ts": now,
            "id": draw.choice((1, 1, 1, 2)),
            "s": draw.choice(("u", "v", None)),
            "x": draw.choice(wholes),
            "z": draw.choice(WHOLES[:3]),
            "y": draw.choice(reals),
        }
        row |= {} if start is None else {start: now - draw.choice((0, 0, 1, 2))}
        row |= {} if tie_breaker is None else {tie_breaker: place}
        rows.append(row)
    types = {name: {"id", "s", "x", "y", "z"} - ({"x"} if name == "C" else set()) for name in "ABC"}
    text = f"PATTERN {pattern} WHERE {strategy} {{ {conditions} }} WITHIN {draw.randint(4, 12)}{end}"
    return GeneratedCase(text, rows, types if "ANY" in pattern else None, tie_breaker, start)


@contextmanager
def few(number: int) -> Iterator[None]:
    """So many runs of a partition are not filed."""
    with mock.patch.object(run_lookups, "_FEW", number):
        yield


def compared(seed: int) -> tuple[bool, bool]:
    """Whether a case ran on the engine, at once and in pieces, as the reference says; and whether it has outputs."""
    draw = random.Random(f"runs {seed}")
    pair = pair_of(run_lookup_case(draw, seed))
    if pair is None:
        return False, False
    without = frozenset({draw.choice(("merge_runs", "push_window", "push_equivalence", "none", "none"))} - {"none"})
    with few(draw.choice((0, 0, 1, 2))):
        ran = check(pair, Settings(executor=ExecutorKind.AUTOMATON, without=without), draw)
    outputs = pair.expected.matches if pair.expected.timeouts is None else pair.expected.timeouts
    return ran, outputs.num_rows > 0


NEXT, ANY = "skip_till_next_match", "skip_till_any_match"
SHAPES = {
    "closure": ("SEQ(A a, B+ b[], C c)", NEXT, "b[1].src = a.dst AND b[i].src = a.dst AND c.src = a.dst"),
    "chain": ("SEQ(A+ a[], B b)", NEXT, "a[i].src = a[i-1].dst AND b.src = a[a.LEN].dst"),
    "both edges": ("SEQ(A+ a[], A b)", NEXT, "a[i].src = a[i-1].dst AND b.dst = a[1].src"),
    "every match": ("SEQ(A a, B+ b[], C c)", ANY, "b[1].src = a.dst AND b[i].src = b[i-1].dst AND c.src = a.dst"),
    "single": ("SEQ(A a, B b, C c)", NEXT, "b.src = a.dst AND c.real = b.dst"),
    "with a key": ("SEQ(A a, B+ b[], C c)", NEXT, "[id] AND b[1].src = a.dst AND b[i].src = a.dst AND c.src = a.dst"),
    "aggregate": ("SEQ(A a, B+ b[], C c)", NEXT, "b[1].src = a.dst AND b[i].src = a.dst AND c.src = max(b[..].dst)"),
}
WITHOUT = Settings(executor=ExecutorKind.AUTOMATON, without=frozenset({LOOK_UP_RUNS}))
WITH = Settings(executor=ExecutorKind.AUTOMATON)


def text_of(shape: str, window: int) -> str:
    pattern, strategy, conditions = SHAPES[shape]
    return f"PATTERN {pattern} WHERE {strategy} {{ {conditions} }} WITHIN {window}"


def linked(events: int, values: int = 40, seed: int = 3) -> pa.Table:
    draw = np.random.default_rng(seed)
    return pa.table(
        {
            "type": draw.choice(["A", "B", "C"], events),
            "ts": np.arange(events),
            "id": draw.integers(0, 3, events),
            "src": draw.integers(0, values, events),
            "dst": draw.integers(0, values, events),
            # Zeros are negative ones.
            "real": -draw.integers(1 - values, 1, events).astype(np.float64),
        }
    )


def ran(table: pa.Table, text: str, settings: Settings, batch: int) -> tuple[pa.Table, AutomatonExecutor, list[int]]:
    """The matches, in batches of so many events; the executor of the last; and how many runs there were after each."""
    engine = Engine(bound(table, text), settings)
    found, runs = [], []
    for begin in range(0, table.num_rows, batch):
        some = table.slice(begin, batch)
        found.append(engine.process(some, watermark=int(some["ts"][-1].as_py()) + 1).matches)
        assert engine._state is not None
        (executor,) = engine._state.executors
        runs.append(executor.runs)
    assert isinstance(executor, AutomatonExecutor)
    return pa.concat_tables([each for each in found if each is not None]), executor, runs


def check_same_runs(shape: str, events: int, most: int, values: int = 40) -> None:
    """Not only the same matches: the same runs in the same order, whoever is passed over."""
    table, text = linked(events, values), text_of(shape, events // 8)
    with few(most):
        matches, looked_up, several = ran(table, text, WITH, events // 40)
    expected, tried, each = ran(table, text, WITHOUT, events // 40)
    assert matches.num_rows > 0
    assert matches["match_id"].to_pylist() == expected["match_id"].to_pylist()
    one, other = looked_up.pool, tried.pool
    assert one.sizes[kernel.NODES] == other.sizes[kernel.NODES]
    fields = [place for place in range(kernel.CHAIN) if place != kernel.SIBLING]
    nodes = [runs.nodes[1 : runs.sizes[kernel.NODES], fields] for runs in (one, other)]
    links = [runs.links[: runs.sizes[kernel.LINKS]] for runs in (one, other)]
    assert np.array_equal(nodes[0], nodes[1])
    assert np.array_equal(links[0], links[1])
    assert one.counts[:, kernel.REACHED].tolist() == other.counts[:, kernel.REACHED].tolist()
    # Few others are tried, and dead ones do not pile up.
    assert one.counts[:, kernel.FAILED].sum() < 0.5 * other.counts[:, kernel.FAILED].sum()
    assert max(several) <= 2.5 * max(each) + 3 * most
    assert one.heads.shape[1] <= 64 * max(*each, 32)
    expired, all_expired = (int(runs.counts[:, kernel.EXPIRED].sum()) for runs in (one, other))
    assert abs(expired - all_expired) <= looked_up.runs


def run(places: Iterable[tuple[str, int]]) -> dict[str, object]:
    """How many pairs were compared, and where the first disagreement is."""
    number = 0
    for stratum, seed in places:
        try:
            if stratum == "runs":
                number += compared(seed)[0]
            else:
                check_same_runs(list(SHAPES)[seed % len(SHAPES)], 400, most=seed % 4, values=8)
                number += 1
        except Exception:
            return {"compared": number, "place": [stratum, seed], "problem": traceback.format_exc()}
    return {"compared": number}


if __name__ == "__main__":
    # NumPy warns of overflow where compiled code does not.
    warnings.simplefilter("ignore")
    print(json.dumps({**run(json.loads(sys.argv[1])), "kleene": kleene.__file__}))
