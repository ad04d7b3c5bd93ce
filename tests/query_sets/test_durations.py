"""Bounds on DUR in a set: what is too long for a node is not made, or leaves; matches are those of each by itself."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import kleene
from kleene.engine.query_sets.results import SharedFound
from kleene.engine.query_sets.shared_queries import SharedQueries
from kleene.engine.query_sets.shared_stream import SharedStream
from kleene.frames.arrow import schema_on
from kleene.query_set import QuerySet

TEXTS = ["A a ;{DUR <= :t} A b", "A a ;{DUR < :t} A b", "σ{b.x > 0} ∘ μ{ID, DUR <= :t}(A a, A b)"]


@pytest.mark.parametrize("text", TEXTS)
def test_simultaneous_events_last_a_tick(text: str) -> None:
    """Events that only a tie-breaker tells apart last one tick together: a bound of nothing allows none of them."""
    events = pa.table({"type": ["A"] * 4, "ts": [1, 1, 1, 2], "seq": [1, 2, 3, 1], "x": [1, 2, 3, 4]})
    schema = kleene.Schema(tie_breaker="seq")
    rules, bounds = QuerySet(events, schema=schema), [-3, 0, 1, 2]
    for bound in bounds:
        rules.add(text, name=str(bound), params={"t": bound})
    counted = {row["query"]: row["matches"] for row in rules.match(events, results="counts").counts.to_pylist()}
    alone = {str(t): kleene.match(events, kleene.query(text, params={"t": t}), schema=schema).num_rows for t in bounds}
    assert [counted.get(name, 0) for name in alone] == list(alone.values())
    assert sum(alone.values()) > 0


def test_an_event_that_is_too_long_begins_nothing() -> None:
    events = pa.table({"type": ["A"] * 3, "begin": [1, 8, 9], "ts": [7, 8, 9], "x": [1, 2, 3]})
    schema = kleene.Schema(start="begin")
    rules = QuerySet(events, schema=schema)
    rules.add("A a ;{DUR <= 5} A b", name="short")
    rules._queries.flush()
    stream = SharedStream(rules._shared, lives=False)
    (found,), _, _ = stream.finish(events)
    # The first event lasts seven ticks; the other two are a match, and the last one waits.
    assert (len(found.queries), stream.run.size) == (1, 1)


def test_without_deadlines_instances_stay_and_matches_are_the_same() -> None:
    """As in CESAR's Algorithm 1: only an event ends an instance."""
    rng = np.random.default_rng(2)
    size = 400
    events = pa.table({"type": ["A"] * size, "ts": np.arange(size), "x": rng.integers(0, 8, size)})
    found, waiting = {}, {}
    for deadlines in (True, False):
        shared = SharedQueries(events.schema, schema_on(events.schema, kleene.Schema()), deadlines=deadlines)
        rules = QuerySet(events.schema)
        rules._queries.shared = shared
        for number in range(8):
            rules.add(f"σ{{a.x = {number}}}(A a) ;{{DUR <= 5 and b.x = {(number * 3) % 8}}} A b", name=str(number))
        rules._queries.flush()
        stream = SharedStream(shared, lives=False)
        results, _, _ = stream.finish(events)
        nodes = [each for each in results if isinstance(each, SharedFound)]
        found[deadlines] = sorted((each.results.cells[:, :2].tolist() for each in nodes), key=str)
        waiting[deadlines] = stream.run.size
    assert found[True] == found[False] != []
    assert waiting[False] > 10 * waiting[True]
