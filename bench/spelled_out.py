"""Equality is equality, however it is written: `[id]` beside the equalities that it stands for, in turn.

As a user runs them: `kleene.match` over a table, with every match a row.
"""

from __future__ import annotations

from functools import partial
from statistics import median

import numpy as np
import pyarrow as pa

from bench.measure import Verdict, alternate
from bench.running import found

# How much slower what is spelled out may be.
MOST_SLOWER = 0.10
REPEATS = 7
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
    table = events(number)
    print(f"\n[id] and what it stands for: {number:,} events, 2,000 ids, a window of 10,000; seconds")
    print(f"{'':26}{'matches':>10}{'[id]':>9}{'spelled':>9}{'ratio':>8}")
    ratios = {}
    for name, (pattern, strategy, spelled) in FORMS.items():
        texts = {
            side: f"PATTERN {pattern} WHERE {strategy.format(key)} WITHIN 10000"
            for side, key in (("[id]", "[id]"), ("spelled", spelled))
        }
        works = {side: partial(_count, table, text) for side, text in texts.items()}
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
    return [Verdict("spelled out", ratios[worst] <= 1 + MOST_SLOWER, text)]


def _count(table: pa.Table, text: str) -> int:
    return int(found(table, text).num_rows)
