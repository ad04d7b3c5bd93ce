"""Patterns in a set: lines of single events share nodes, everything else runs on one engine for each template."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

import kleene
from kleene.engine.query_sets.results import SharedFound
from kleene.engine.query_sets.shared_stream import SharedStream
from kleene.errors import UnboundedState
from kleene.kernels import shared_machine as kernel
from kleene.plan.settings import Budget, Settings
from kleene.query_set import QuerySet, SetOutputs

EVENTS = pa.schema(
    {"type": pa.string(), "ts": pa.int64(), "k": pa.int64(), "x": pa.int64(), "s": pa.string(), "f": pa.bool_()}
)


def events(*rows: tuple[str, int, int]) -> pa.Table:
    """Events given as type, key and x, one a step."""
    listed = [
        {"type": kind, "ts": number, "k": k, "x": x, "s": "pq"[x % 2], "f": x > 2}
        for number, (kind, k, x) in enumerate(rows)
    ]
    return pa.Table.from_pylist(listed, schema=EVENTS)


def ids(outputs: SetOutputs, name: str) -> list[str]:
    return sorted(row["match_id"] for table in outputs.matches for row in table.to_pylist() if row.get("query") == name)


def alone(table: pa.Table, query: kleene.Query | kleene.StreamQuery | kleene.EqlQuery) -> list[str]:
    return sorted(kleene.match(table, query).column("match_id").to_pylist())


SOME = events(*[("ABC"[n * 7 % 3], n % 2, n * 5 % 6) for n in range(40)])


# Lines ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "strategy", ["strict_contiguity", "partition_contiguity", "skip_till_next_match", "skip_till_any_match"]
)
def test_lines_are_nodes_under_every_strategy(strategy: str) -> None:
    text = "PATTERN SEQ(A a, C b, B c) WHERE {0} {{ [k] AND a.x >= {1} AND c.x > {2} }} WITHIN 12"
    queries = {f"q{n}": kleene.query(text.format(strategy, n % 3, n), name=f"q{n}") for n in range(5)}
    rules = QuerySet(EVENTS)
    for name, query in queries.items():
        rules.add(query, name=name)
    assert "5 queries: 5 share nodes, 0 the engine of their template, 0 run by themselves" in rules.explain()
    # One node after the first event for each of three bounds.
    levels = rules._shared.nodes.levels
    assert levels[0] == 3
    found = rules.match(SOME)
    for name, query in queries.items():
        assert ids(found, name) == alone(SOME, query), name
    assert any(ids(found, name) for name in queries) or strategy == "strict_contiguity"


def test_lines_share_whatever_their_variables_are_called() -> None:
    rules = QuerySet(EVENTS)
    rules.add("PATTERN SEQ(A a, B b) WHERE a.x > 1 WITHIN 5", name="ab")
    rules.add("PATTERN SEQ(A x, B y) WHERE x.x > 1 WITHIN 5", name="xy")
    found = rules.match(SOME)
    assert rules._shared.nodes.levels[0] == 1
    assert {tuple(table.column_names[-2:]) for table in found.matches} == {("a", "b"), ("x", "y")}
    assert len(ids(found, "ab")) == len(ids(found, "xy")) > 0


def test_edges_of_one_hash_are_told_apart() -> None:
    """By the set of columns, too: the hash of (set 0, values 3 and 4) was that of (set 3, value 4)."""
    texts = [
        "PATTERN SEQ(C a) WHERE [k] AND a.x = 1 RETURN a.x, a.k AS kk",
        "PATTERN SEQ(C a, B b) WHERE partition_contiguity { [k] AND a.x = 2 AND (a.x = 1 OR a.s = 'q') } WITHIN 9",
        "PATTERN SEQ(A a, A b, ANY(A, B) c) WHERE strict_contiguity { a.x IN (1, 3) AND c.x != 1 } WITHIN 10",
        "PATTERN SEQ(C a, C b) WITHIN 5 INCLUSIVE RETURN a.x + 1 AS y",
    ]
    table = events(*[("A", 1, x) for x in (4, 4, 4, 1, 2, 3, 0, 5, 1, 1, 1)])
    rules = QuerySet(EVENTS)
    for number, text in enumerate(texts):
        rules.add(text, name=f"q{number}")
    assert ids(rules.match(table), "q2") == alone(table, kleene.query(texts[2], name="q2"))


def test_events_of_lines_are_let_go_with_the_window() -> None:
    rules = QuerySet(EVENTS)
    rules.add("PATTERN SEQ(A a, B b) WHERE [k] AND b.x = 99 WITHIN 50", name="a")
    held = []
    for begin in range(0, 5_000, 250):
        batch = events(*[("A", 1, n % 7) for n in range(begin + 250)]).slice(begin)
        rules.process(batch, watermark=begin + 250)
        held.append(rules._live.state_bytes)
    assert max(held[5:]) <= 1.1 * held[4]


def test_a_pattern_without_a_window_is_refused_on_a_stream() -> None:
    for text in ("PATTERN SEQ(A a, B b)", "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match { a[i].x > 1 }"):
        rules = QuerySet(EVENTS)
        rules.add(text, name="a")
        assert rules.match(SOME, results="counts").counts.num_rows == 1
        with pytest.raises(UnboundedState, match="without WITHIN"):
            rules.process(SOME, watermark=10)


@pytest.mark.parametrize("condition", ["b.x > a.x", "b.x >= a.x", "a.x > b.x", "b.x <= a.x", "b.x > 250", "b.x <= 150"])
def test_what_waits_for_a_bound_is_not_looked_at_before(condition: str) -> None:
    """Hundreds of instances wait, most with bounds of their own; an event looks at those that it serves."""
    table = events(*[("A", 1, x) for x in range(100, 400)], *[("B", 1, x) for x in (250, 180, 300, 120, 399, 400, 1)])
    text = f"PATTERN SEQ(A a, B b) WHERE skip_till_next_match {{ {condition} }} WITHIN 2000"
    rules = QuerySet(EVENTS)
    rules.add(text, name="a")
    assert "waiting     by type, in order of x" in rules.explain()
    stream = SharedStream(rules._shared, lives=False)
    (found,) = stream.finish(table)[0]
    assert isinstance(found, SharedFound)
    assert len(found.queries) == kleene.match(table, text).num_rows > 0
    assert stream.run.counters[kernel.TOUCHED] == len(found.queries)


# One engine for a template -------------------------------------------------------------------------------------------

RISING = (
    "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match"
    " { [k] AND b.k = :k AND a[i].x > :step AND b.s = :s AND b.f = :f } WITHIN 15"
)


def limits(number: int) -> dict[str, list[Any]]:
    return {
        "k": [n % 2 for n in range(number)],
        "step": [n % 5 for n in range(number)],
        "s": ["pq"[n // 3 % 2] for n in range(number)],
        "f": [n % 3 == 0 for n in range(number)],
    }


def test_rows_of_a_template_run_on_one_engine() -> None:
    """Constants of every kind, each read from the row of its query."""
    rules = QuerySet(EVENTS)
    rows = pa.table({"name": [f"r{n}" for n in range(40)], **limits(40)})
    assert rules.add_many(RISING, rows).number == 40
    assert "40 queries: 0 share nodes, 40 the engine of their template, 0 run by themselves" in rules.explain()
    assert "-- one engine runs all queries of its template: it is no line of single events" in rules.describe("r3")
    found = rules.match(SOME)
    some = 0
    for row in rows.to_pylist():
        name = row.pop("name")
        expected = alone(SOME, kleene.query(RISING, name=name, params=row))
        assert ids(found, name) == expected, name
        some += bool(expected)
    assert some >= 5


def test_an_event_goes_to_the_queries_that_it_concerns() -> None:
    """A condition on one event fixes the key of all: negated and Kleene events are looked up by it, too."""
    rules = QuerySet(EVENTS)
    text = "PATTERN SEQ(A a, !(C c), B b) WHERE [k] AND a.k = :k WITHIN 9"
    rules.add_many(text, pa.table({"name": [f"r{n}" for n in range(100)], "k": list(range(100))}))
    (queries,) = rules._shared.row_templates.values()
    ordered, points = rules._shared.intake.ordered(SOME)
    numbered, rows = queries.index.pairs(ordered, points)
    assert len(numbered) == SOME.num_rows
    assert set(rows.tolist()) == {0, 1}


def test_queries_of_an_engine_come_and_go() -> None:
    rules = QuerySet(EVENTS, settings=Settings(budget=Budget(state_bytes=1 << 40)))
    params: dict[str, object] = {"k": 0, "step": 0, "s": "p", "f": False}
    outputs = []
    for begin in range(0, 40, 10):
        if begin == 10:
            rules.add(RISING, name="from 10", params=params)
            rules.add(RISING, name="gone", params=params)
        if begin == 20:
            rules.remove("gone")
            rules.add(RISING, name="gone", params={**params, "step": 1})
        outputs.append(rules.process(SOME.slice(begin, 10), watermark=begin + 10))
    outputs.append(rules.finish())

    def found(name: str) -> list[str]:
        return sorted(each for output in outputs for each in ids(output, name))

    query = kleene.query(RISING, params=params)
    assert found("from 10") == alone(SOME.slice(10), query) != []
    assert found("gone") == sorted(
        [
            *alone(SOME.slice(10, 10), query),
            *alone(SOME.slice(20), kleene.query(RISING, params={**params, "step": 1})),
        ]
    )


def test_an_engine_goes_on_when_memory_is_given_back() -> None:
    """Queries have new numbers then, and the engine's rows stay what they are."""
    rules = QuerySet(EVENTS)
    size = 6_000
    rules.add_many(RISING, pa.table({"name": [f"r{n}" for n in range(size)], **limits(size)}))
    first = rules.process(SOME.slice(0, 20), watermark=20)
    for n in range(1_000, size):
        rules.remove(f"r{n}")
    assert rules._shared.queries.size < size
    second = [rules.process(SOME.slice(20), watermark=40), rules.finish()]
    for n in (0, 12, 30, 999):
        row = {name: values[n] for name, values in limits(size).items()}
        expected = alone(SOME, kleene.query(RISING, params=row))
        assert sorted(each for output in (first, *second) for each in ids(output, f"r{n}")) == expected


def test_the_same_match_of_several_queries_of_an_engine_is_one_row_with_their_list() -> None:
    """Also where two queries of one template differ in a constant that both satisfy."""
    rules = QuerySet(EVENTS)
    size = 60
    rules.add_many(RISING, pa.table({"name": [f"r{n}" for n in range(size)], **limits(size)}))
    listed = [row for table in rules.match(SOME, results="queries").matches for row in table.to_pylist()]
    by_query = Counter(name for row in listed for name in row["queries"])
    counts = rules.match(SOME, results="counts").counts.to_pylist()
    assert by_query == {row["query"]: row["matches"] for row in counts}
    content = [json.dumps({name: row[name] for name in row if name != "queries"}, default=str) for row in listed]
    assert len(set(content)) == len(content) < by_query.total()
    assert max(len(row["queries"]) for row in listed) > 1


def test_memory_of_queries_of_an_engine_is_given_back() -> None:
    rules = QuerySet(EVENTS)
    size = 6_000
    rules.add_many(RISING, pa.table({"name": [f"r{n}" for n in range(size)], **limits(size)}))
    before = rules.nbytes
    for n in range(100, size):
        rules.remove(f"r{n}")
    # Half of them went at once, before there were too few to care.
    assert rules.nbytes < 0.6 * before
    rules.add(RISING, name="again", params={"k": 0, "step": 0, "s": "p", "f": False})
    expected = alone(SOME, kleene.query(RISING, params={"k": 0, "step": 0, "s": "p", "f": False}))
    assert ids(rules.match(SOME), "again") == expected != []


def test_a_type_that_lacks_an_attribute() -> None:
    """A comparison with what an event's type does not have is true (semantics §2 Missing), in a set too."""
    schema = kleene.Schema(types={"A": ["k", "x"], "B": ["k"], "C": ["k", "x"]})
    texts = [
        "PATTERN SEQ(A a, ANY(B, C) b) WHERE b.x > 2 AND [k] WITHIN 4",
        "PATTERN SEQ(A a, C b) WHERE b.x > 2 AND [k] WITHIN 4",
        "PATTERN SEQ(A a, !(ANY(B, C) n), C b) WHERE n.x > 2 AND [k] WITHIN 9",
    ]
    rules = QuerySet(EVENTS, schema=schema)
    for number, text in enumerate(texts):
        rules.add(text, name=f"q{number}")
    found = rules.match(SOME)
    for number, text in enumerate(texts):
        expected = kleene.match(SOME, kleene.query(text, name=f"q{number}"), schema=schema)
        assert ids(found, f"q{number}") == sorted(expected.column("match_id").to_pylist())
        assert expected.num_rows


@pytest.mark.parametrize("results", ["queries", "counts"])
def test_matches_of_patterns_as_lists_and_counts(results: str) -> None:
    rules = QuerySet(EVENTS)
    rules.add_many(
        "PATTERN SEQ(A a, B b) WHERE a.x > :low WITHIN 5", pa.table({"low": [0, 1, 2, 3], "name": list("wxyz")})
    )
    rules.add_many(
        "PATTERN SEQ(A a, !(C c), B b) WHERE a.x > :low WITHIN 5", pa.table({"low": [0, 1], "name": ["u", "v"]})
    )
    whole = rules.match(SOME)
    expected = {name: len(ids(whole, name)) for name in "uvwxyz" if ids(whole, name)}
    found = rules.match(SOME, results=results)
    if results == "counts":
        assert {row["query"]: row["matches"] for row in found.counts.to_pylist()} == expected
        return
    lists: Counter[str] = Counter()
    for table in found.matches:
        lists.update(name for names in table.column("queries").to_pylist() for name in names)
    assert lists == expected
    assert any(len(names) > 1 for table in found.matches for names in table.column("queries").to_pylist())


def test_what_cannot_share_says_why() -> None:
    rules = QuerySet(EVENTS)
    rules.add(
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match { a[i].x > 1 } WITHIN 5 OUTPUT COMPRESSED", name="graph"
    )
    rules.add("SELECT * FROM (A S1 ; B S2) WHERE (S1, S2) OCCURS WITHIN 5", name="eql")
    assert "runs by itself: its output is COMPRESSED" in rules.describe("graph")
    assert "runs by itself: it is in EQL" in rules.describe("eql")
    assert "by itself   eql: it is in EQL" in rules.explain()
