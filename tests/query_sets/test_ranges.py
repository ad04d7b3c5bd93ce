"""Edges that only ranges tell apart are searched by their bounds: an event looks at few others than those it is in."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest

from kleene.kernels.shared_machine import LOOKED_AT
from kleene.query_set import QuerySet

COLUMNS = pa.schema({"type": pa.string(), "ts": pa.int64(), "x": pa.float64(), "y": pa.int64()})
TEMPLATES = {
    "above": "σ{x > :low}(A a)",
    "below": "σ{x < :high}(A a)",
    "between": "σ{x >= :low and x < :high}(A a)",
    "with another": "σ{x >= :low and x < :high and y <= :most}(A a)",
    "with an equality": "σ{y = :most and x >= :low and x < :high}(A a)",
}


def queries(rng: np.random.Generator, size: int, width: float) -> pa.Table:
    lows = rng.random(size)
    highs = np.minimum(lows + width * rng.random(size), 2.0)
    return pa.table({"low": lows, "high": highs, "most": rng.integers(0, 3, size)})


def fits(kind: str, table: pa.Table, x: float, y: int) -> np.ndarray:
    low, high, most = (table.column(name).to_numpy() for name in ("low", "high", "most"))
    inside: np.ndarray = (x >= low) & (x < high)
    by_kind = {"above": x > low, "below": x < high, "between": inside, "with another": inside & (y <= most)}
    return np.flatnonzero(by_kind.get(kind, inside & (y == most)))


@pytest.mark.parametrize("kind", TEMPLATES)
@pytest.mark.parametrize("size", [1, 2, 31, 33, 100, 257, 1000])
def test_an_event_finds_the_ranges_that_it_is_in(kind: str, size: int) -> None:
    rng, chance = np.random.default_rng(size), Random(size)
    table = queries(rng, size, 0.2)
    rules = QuerySet(COLUMNS)
    names = [str(number) for number in range(size)]
    rules.add_many(TEMPLATES[kind], table, names=names)
    rules._shared.nodes.freeze()
    gone = set(chance.sample(names, size // 3))
    for name in gone:
        rules.remove(name)
    # Some come after the order was made.
    more = queries(rng, 20, 0.2)
    rules.add_many(TEMPLATES[kind], more, names=[f"new {number}" for number in range(20)])
    values = [*rng.random(60).tolist(), *table.column("low").to_pylist()[:5], *table.column("high").to_pylist()[:5]]
    events = pa.table(
        {"type": ["A"] * len(values), "ts": range(len(values)), "x": values, "y": [1] * len(values)}, COLUMNS
    )
    lists = {
        row["end"]: set(row["queries"])
        for each in rules.match(events, results="queries").matches
        for row in each.to_pylist()
    }
    for moment, x in enumerate(values):
        expected = {names[number] for number in fits(kind, table, x, 1)} - gone
        expected |= {f"new {number}" for number in fits(kind, more, x, 1)}
        assert lists.get(moment, set()) == expected, (moment, x)


@pytest.mark.parametrize("kind", ["above", "below", "between"])
def test_others_are_hardly_looked_at(kind: str) -> None:
    """Of 20,000 ranges an event looks at those that it is in, and at few others."""
    rng = np.random.default_rng(1)
    table = queries(rng, 20_000, 0.001)
    rules = QuerySet(COLUMNS)
    rules.add_many(TEMPLATES[kind], table, names=[str(number) for number in range(20_000)])
    xs = rng.random(200) if kind == "between" else np.full(200, 0.01 if kind == "above" else 0.99)
    events = pa.table({"type": ["A"] * 200, "ts": range(200), "x": xs, "y": [1] * 200}, COLUMNS)
    found = sum(len(fits(kind, table, x, 1)) for x in xs)
    rules.process(events, watermark=1_000, results="counts")
    assert rules._stream is not None
    looked_at = int(rules._stream.run.counters[LOOKED_AT])
    assert 0 < found <= looked_at < 2 * found + 200 * 20
