"""Edges without an equality are searched by the range that fewer events lie in, as a sample of events says."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import kleene
from kleene.engine.query_sets.shared_stream import SharedStream
from kleene.kernels import shared_machine as kernel
from kleene.query_set import QuerySet

SIZE = 2_000


def table() -> pa.Table:
    """Values of `far` lie all over, those of `near` close together."""
    rng = np.random.default_rng(3)
    return pa.table(
        {
            "type": ["S"] * SIZE,
            "ts": np.arange(SIZE),
            "near": rng.random(SIZE),
            "far": rng.integers(0, 1_000_000, SIZE),
        }
    )


def rules() -> pa.Table:
    """Ranges of `far` that few events lie in, and of `near` that most do."""
    lows = np.arange(0, 1_000_000, 500)
    names = [f"r{number}" for number in range(len(lows))]
    return pa.table({"name": names, "low": lows, "high": lows + 2_000, "least": np.full(len(lows), 0.05)})


TEXT = "σ{near > :least AND far >= :low AND far < :high}(S a)"


def looked_at(queries: QuerySet) -> float:
    stream = SharedStream(queries._shared, lives=False)
    stream.finish(table())
    return float(stream.run.counters[kernel.LOOKED_AT]) / SIZE


@pytest.mark.parametrize("known", ["from the start", "from the first match", "from the first batch"])
def test_the_better_range_comes_first(known: str) -> None:
    queries = QuerySet(table() if known == "from the start" else table().schema)
    queries.add_many(TEXT, rules())
    if known == "from the first match":
        assert "ranges      by far, then near: no event was seen yet" in queries.explain()
        queries.match(table(), results="counts")
    elif known == "from the first batch":
        queries.process(table().slice(0, 500))
    assert "ranges      by far (of 0% of events), then near (of 95% of events)" in queries.explain()
    # Four ranges of `far` hold an event's value.
    assert looked_at(queries) < 30


def test_a_worse_path_is_left_when_events_come() -> None:
    """By name `a` comes first, which most events satisfy; the queries, and a stream, go on with the other one."""
    events = table().rename_columns(["type", "ts", "a", "b"])
    text = TEXT.replace("near", "a").replace("far", "b")
    queries = QuerySet(events.schema)
    queries.add_many(text, rules())
    queries.add("PATTERN SEQ(S x, S y) WHERE [b] WITHIN 100", name="line")
    assert "ranges      by a, then b: no event was seen yet" in queries.explain()
    expected = {}
    for row in rules().to_pylist()[:40]:
        name = row.pop("name")
        expected[name] = sorted(kleene.match(events, kleene.query(text, params=row)).column("match_id").to_pylist())
    found: dict[str, list[str]] = {name: [] for name in expected}
    for begin in range(0, SIZE, 500):
        outputs = queries.process(events.slice(begin, 500), watermark=begin + 500)
        for each in outputs.matches:
            for row in each.to_pylist():
                if row["query"] in found:
                    found[row["query"]].append(row["match_id"])
    assert "ranges      by b (of 0% of events), then a (of 95% of events)" in queries.explain()
    assert {name: sorted(ids) for name, ids in found.items()} == expected
    assert any(expected.values())


def test_values_that_are_none_are_no_events_of_a_range() -> None:
    events = pa.table(
        {
            "type": ["S"] * 4,
            "ts": [1, 2, 3, 4],
            "x": pa.array([1.0, None, float("nan"), 5.0]),
            "y": pa.array([None, None, None, None], pa.int64()),
        }
    )
    queries = QuerySet(events)
    queries.add("σ{x > 0.5 AND y > 3}(S a)", name="a")
    assert "ranges      by y (of 0% of events), then x (of 50% of events)" in queries.explain()
