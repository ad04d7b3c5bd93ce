"""Equality is equality, however it is written: `[id]` beside the equalities that it stands for, in turn.

As a user runs them: `kleene.match` over a table, with every match a row. First some shapes at length, then hundreds of
random queries over few events each, then equalities that are no key, looked up and tried one by one.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import inf
from random import Random
from statistics import median
from unittest import mock

import numpy as np
import pyarrow as pa

from bench import spelled_pairs
from bench.measure import CountsDiffer, Verdict, alternate
from bench.running import bound, found, found_with, rows_found
from kleene.optimize.planner import plan_query
from kleene.optimize.rules import LOOK_UP_RUNS
from kleene.optimize.trees import parts, placing
from kleene.pattern.recent import Recent
from kleene.plan.settings import ExecutorKind, Settings

# How much slower what is spelled out may be.
MOST_SLOWER = 0.10
REPEATS = 7
# Of random queries: how many, the events of each, and how often each runs.
QUERIES, FEW_EVENTS, FEW_REPEATS = 500, 4_000, 12
NEXT = "skip_till_next_match"
# A pattern with its strategy, and what [id] stands for there.
FORMS = {
    "two": ("SEQ(A a, B b)", "{}", "a.id = b.id"),
    "three": ("SEQ(A a, B b, C c)", "{}", "a.id = b.id AND b.id = c.id"),
    "three, chained": ("SEQ(A a, B b, C c)", "{}", "a.id = b.id = c.id"),
    "negation": ("SEQ(A a, !(B b), C c)", "{}", "a.id = c.id AND b.id = c.id"),
    "negation at the end": ("SEQ(A a, C c, !(B b))", "{}", "a.id = c.id AND a.id = b.id"),
    "closure": ("SEQ(A+ a[], B b)", f"{NEXT} {{{{ {{}} }}}}", "a[i].id = a[i-1].id AND b.id = a[a.LEN].id"),
    "closure in the middle": (
        "SEQ(A a, B+ b[], C c)",
        f"{NEXT} {{{{ {{}} }}}}",
        "b[1].id = a.id AND b[i].id = b[1].id AND c.id = a.id",
    ),
    "conjunction": ("A a & B b", "{}", "a.id = b.id"),
    "conjunction, then": ("(A a & B b) ; C c", "{}", "a.id = b.id AND b.id = c.id"),
    "disjunction": ("A a ; (B b | C c)", "{}", "a.id = b.id AND c.id = a.id"),
}


_CLOSURE = "SEQ(A a, B+ b[], C c)"
# Equalities that make no key, and the executor that must look them up: any, or trees.
LOOKUPS = {
    "attributes": ("SEQ(A a, B b)", "a.src = b.dst", None),
    "a sum": ("SEQ(A a, B b)", "a.src + 1 = b.dst", None),
    "a remainder": ("SEQ(A a, B b)", "a.src % 400 = b.dst", None),
    "both sides": ("SEQ(A a, B b)", "a.src - a.dst = b.dst - b.src", None),
    "of whole with real": ("SEQ(A a, B b)", "a.src * 2 = b.price", None),
    "of two with one": ("SEQ(A a, B b, C c)", "a.src = b.src AND a.dst + b.dst = c.src", None),
    "NSEQ": ("A a ; !(B b) ; C c", "a.src = c.src AND b.dst = c.dst", ExecutorKind.TREES),
    "NEG": ("A a ; !(B b) ; C c", "a.src = c.src AND b.dst = a.dst + c.dst", ExecutorKind.TREES),
    "NEG at the end": ("A a ; C c ; !(B b)", "a.src = c.src AND b.dst = a.dst", ExecutorKind.TREES),
    "KSEQ": ("A a ; B+ ; C c", "a.src = c.src AND B.dst = a.dst", ExecutorKind.TREES),
    # On the automaton's edges.
    "closure": (_CLOSURE, f"{NEXT} {{ b[1].src = a.dst AND b[i].src = a.dst AND c.src = a.dst }}", None),
    "closure of a chain": ("SEQ(A+ a[], B b)", f"{NEXT} {{ a[i].src = a[i-1].dst AND b.src = a[a.LEN].dst }}", None),
    "closure, every match": (_CLOSURE, "b[1].src = a.dst AND b[i].src = b[i-1].dst AND c.src = a.dst", None),
    "closure, whole and real": (
        _CLOSURE,
        f"{NEXT} {{ b[1].price = a.dst AND b[i].price = a.dst AND c.src = a.dst }}",
        None,
    ),
    "closure, an aggregate": (
        _CLOSURE,
        f"{NEXT} {{ b[1].src = a.dst AND b[i].src = a.dst AND c.src = max(b[..].dst) }}",
        None,
    ),
    "next match": ("SEQ(A a, B b, C c)", f"{NEXT} {{ b.src = a.dst AND c.src = b.dst }}", None),
}


def events(number: int) -> pa.Table:
    rng = np.random.default_rng(18)
    return pa.table(
        {
            "type": rng.choice(["A", "B", "C"], number),
            "ts": np.arange(number),
            "id": rng.integers(0, 2_000, number),
            "price": rng.random(number),
        }
    )


def spelled_out(number: int) -> list[Verdict]:
    return [_shapes(number), _random_queries(), _looked_up(number // 4)]


def _shapes(number: int) -> Verdict:
    table = events(number)
    print(f"\n[id] and what it stands for: {number:,} events, 2,000 ids, a window of 10,000; seconds")
    print(f"{'':26}{'matches':>10}{'[id]':>9}{'spelled':>9}{'ratio':>8}")
    ratios = {}
    for name, (pattern, strategy, spelled) in FORMS.items():
        texts = {
            side: f"PATTERN {pattern} WHERE {strategy.format(key)} WITHIN 10000"
            for side, key in (("[id]", "[id]"), ("spelled", spelled))
        }
        works = {side: partial(rows_found, table, text) for side, text in texts.items()}
        timings = alternate(works, REPEATS)
        one, other = (timings[side] for side in texts)
        # Of two runs next to each other, so that a busy moment falls on both.
        ratios[name] = median(b / a for a, b in zip(one.seconds, other.seconds, strict=True))
        print(f"{name:26}{one.count:10,}{one.median:9.3f}{other.median:9.3f}{ratios[name]:8.2f}")
    worst = max(ratios, key=ratios.__getitem__)
    text = (
        f"spelled out beside [id]: {median(ratios.values()):.2f} of its time at the median,"
        f" {ratios[worst]:.2f} at most ({worst}); goal at most {1 + MOST_SLOWER:.2f}"
    )
    return Verdict("spelled out", ratios[worst] <= 1 + MOST_SLOWER, text)


def _random_queries() -> Verdict:
    """Both spellings of random queries: their plans, their matches, and the least processor time of each.

    Brackets run twice a round, so that the figures show how far two runs of the same text differ on this machine.
    """
    draw, alike, empty = Random(30), 0, 0
    least = np.zeros((QUERIES, 3))
    tables = [spelled_pairs.events(FEW_EVENTS, seed) for seed in range(8)]
    for number in range(QUERIES):
        table, pair = tables[number % len(tables)], spelled_pairs.drawn_pair(draw, FEW_EVENTS // 20)
        plans = [plan_query(bound(table, text)) for text in (pair.brackets, pair.spelled)]
        alike += plans[0].alternatives == plans[1].alternatives and plans[0].why_on_reference is None
        matches = [_without_name(found(table, text)) for text in (pair.brackets, pair.spelled)]
        if not matches[0].equals(matches[1]):
            raise CountsDiffer(f"other matches than {pair.brackets} has: {pair.spelled}")
        empty += not matches[0].num_rows
        least[number] = _least([partial(found, table, text) for text in (pair.brackets, pair.spelled, pair.brackets)])
    some = f"{QUERIES - empty} with matches"
    print(f"\n{QUERIES} random queries of {FEW_EVENTS:,} events, {some}; processor time beside brackets")
    print(f"{'':18}{'median':>8}{'9 of 10':>9}{'most':>8}{'in all':>8}")
    shares = {}
    for side, name in ((1, "spelled out"), (2, "brackets again")):
        ratios = least[:, side] / least[:, 0]
        shares[name] = float(np.quantile(ratios, 0.9))
        whole = least[:, side].sum() / least[:, 0].sum()
        print(f"{name:18}{np.median(ratios):8.3f}{shares[name]:9.3f}{ratios.max():8.2f}{whole:8.3f}")
    text = (
        f"{QUERIES} random queries have the same matches, {alike} the same plan; nine of ten take at most"
        f" {shares['spelled out']:.3f} of the time of brackets ({shares['brackets again']:.3f} beside themselves);"
        f" goal at most {1 + MOST_SLOWER:.2f}"
    )
    return Verdict("random spellings", alike == QUERIES and shares["spelled out"] <= 1 + MOST_SLOWER, text)


def _least(works: Sequence[Callable[[], object]]) -> list[float]:
    """The least processor time of each, in rounds in which each runs once; rounds begin with another each time."""
    least = [inf] * len(works)
    gc.collect()
    gc.disable()
    for turn in range(FEW_REPEATS):
        for place in range(len(works)):
            side = (place + turn) % len(works)
            began = time.process_time()
            works[side]()
            least[side] = min(least[side], time.process_time() - began)
    gc.enable()
    return least


def _without_name(table: pa.Table) -> pa.Table:
    """Matches without what the text of a query decides: ids, its name, and the key's column, which brackets show."""
    return table.select([name for name in table.column_names if name not in ("match_id", "query", "key")])


def _looked_up(number: int) -> Verdict:
    """Equalities that make no key, looked up as plans have them, and tried one by one."""
    table, ratios = _links(number), {}
    print(f"\nlooked up, and tried one by one: {number:,} events, 500 values, a window of 2,000; processor seconds")
    print(f"{'':26}{'matches':>10}{'tried':>9}{'looked up':>11}{'ratio':>8}")
    for name, (pattern, condition, executor) in LOOKUPS.items():
        text, settings = f"PATTERN {pattern} WHERE {condition} WITHIN 2000", Settings(executor=executor)
        works = {"tried": partial(_tried, table, text, settings), "looked up": partial(_found, table, text, settings)}
        timings = alternate(works, clock=time.process_time)
        tried, looked_up = (min(timings[side].seconds) for side in works)
        ratios[name] = looked_up / tried
        print(f"{name:26}{timings['tried'].count:10,}{tried:9.3f}{looked_up:11.3f}{ratios[name]:8.2f}")
    worst = max(ratios, key=ratios.__getitem__)
    text = f"equalities that are no key: {ratios[worst]:.2f} of the time of trying each, at most ({worst})"
    return Verdict("looked up", ratios[worst] <= 1, text)


def _links(number: int) -> pa.Table:
    rng = np.random.default_rng(3)
    table = events(number).drop_columns(["id", "price"])
    for name in ("src", "dst", "price"):
        values = rng.integers(0, 500, number)
        table = table.append_column(name, pa.array(values.astype(np.float64) if name == "price" else values))
    return table


def _found(table: pa.Table, text: str, settings: Settings) -> int:
    return int(found_with(table, text, settings).num_rows)


def _tried(table: pa.Table, text: str, settings: Settings) -> int:
    """As without look-ups: lines stay where they are, trees test each pair, and the automaton each run."""
    never, settings = mock.Mock(return_value=False), replace(settings, without=frozenset({LOOK_UP_RUNS}))
    with (
        mock.patch.object(placing, "is_lookup", never),
        mock.patch.object(parts, "finds_events", never),
        mock.patch("kleene.optimize.planner.is_lookup", never),
        mock.patch("kleene.optimize.planner._PLANS", Recent()),
    ):
        return _found(table, text, settings)
