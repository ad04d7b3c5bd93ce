"""Queries that share have the matches that each has by itself; as they come and go, those of their lives."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from tests.query_sets.drawing import UNBOUNDED, DrawnSet, content, draw_set
from tests.soaking import least, rounds

from kleene.query_set import QuerySet, SetOutputs

# Queries of all sets, and how many come or go while events pass, in make soak.
QUERIES, CHANGES = 1_600, 16 * 750


def by_query(outputs: list[SetOutputs]) -> dict[str, list[tuple[Any, ...]]]:
    found: defaultdict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for tables in outputs:
        for table in tables.matches:
            for name in set(table.column("query").to_pylist()):
                found[name] += content(table.filter(pa.compute.equal(table.column("query"), name)))
    return {name: sorted(rows) for name, rows in found.items()}


def set_of(drawn: DrawnSet) -> QuerySet:
    rules = QuerySet(drawn.table, schema=drawn.schema, settings=UNBOUNDED)
    for name, query in drawn.queries.items():
        rules.add(query, name=name)
    return rules


def watermarks(drawn: DrawnSet, pieces: int) -> list[tuple[pa.Table, int]]:
    """The stream in pieces by time, each with the watermark behind it."""
    ends = sorted(set(drawn.table.column("ts").to_pylist()))
    cuts = [ends[len(ends) * number // pieces] for number in range(1, pieces)] + [ends[-1] + 1]
    listed, before = [], min(ends)
    for cut in cuts:
        kept = [before <= end < cut for end in drawn.table.column("ts").to_pylist()]
        listed.append((drawn.table.filter(pa.array(kept)), cut))
        before = cut
    return listed


@pytest.mark.parametrize("seed", range(rounds(QUERIES) // 50))
def test_queries_that_share_have_the_matches_of_each_by_itself(
    seed: int, record_property: Callable[[str, object], None]
) -> None:
    drawn = draw_set(seed, 50, patterns=25)
    expected = {name: rows for name in drawn.queries if (rows := drawn.alone(name))}
    rules = set_of(drawn)
    whole = rules.match(drawn.table)
    assert by_query([whole]) == expected
    counted = dict(zip(*(whole.counts.column(name).to_pylist() for name in ("query", "matches")), strict=True))
    assert counted == {name: len(rows) for name, rows in expected.items()}
    lists: Counter[str] = Counter()
    for table in rules.match(drawn.table, results="queries").matches:
        lists.update(name for names in table.column("queries").to_pylist() for name in names)
    assert lists == counted
    for pieces in (2, 3, 7):
        parts = [rules.process(table, watermark) for table, watermark in watermarks(drawn, pieces)]
        parts.append(rules.finish())
        assert by_query(parts) == expected, pieces
    total = sum(map(len, expected.values()))
    record_property("counted", f"a set of 50 queries: {len(expected)} with {total} matches, alike shared and alone")


@pytest.mark.parametrize("seed", range(rounds(CHANGES) // 250))
def test_queries_that_come_and_go_have_the_matches_of_their_lives(
    seed: int, record_property: Callable[[str, object], None]
) -> None:
    """Also where they share a prefix with an older query, at whose nodes instances wait."""
    rng = Random(1_000 + seed)
    drawn = draw_set(1_000 + seed, 24, patterns=12, length=10)
    rules = QuerySet(drawn.table, schema=drawn.schema, settings=UNBOUNDED)
    lives: list[tuple[str, str, int, int | None]] = []
    there: dict[str, tuple[str, int]] = {}
    outputs, now, changes = [], -100, 0
    for table, watermark in watermarks(drawn, 25):
        for _ in range(10):
            changes += 1
            if there and rng.random() < 0.4:
                name = rng.choice(sorted(there))
                lives.append((name, *there.pop(name), now))
                rules.remove(name)
            else:
                query = rng.choice(sorted(drawn.queries))
                name = f"n{changes}"
                rules.add(drawn.queries[query], name=name)
                there[name] = query, now
        assert len(rules) == len(there)
        outputs.append(rules.process(table, watermark))
        now = watermark
    outputs.append(rules.finish())
    lives += [(name, query, since, None) for name, (query, since) in there.items()]
    found = by_query(outputs)
    expected_ids = 0
    for name, query, since, until in lives:
        expected = drawn.alone(query, since=since, until=until)
        expected_ids += len(expected)
        assert found.get(name, []) == expected, (name, query, since, until)
    record_property("counted", f"{changes} queries that came or went: {len(lives)} lives with {expected_ids} matches")


def test_enough_queries_have_matches() -> None:
    """What the tests above compare is mostly not nothing."""
    some = sum(bool(drawn.alone(name)) for drawn in [draw_set(3, 30)] for name in drawn.queries)
    assert some >= min(8, least(8 * 16))
