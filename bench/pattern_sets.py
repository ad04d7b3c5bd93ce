"""Patterns of the main spelling in a set: what a query costs there, and what it costs by itself, in the same run."""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa

import kleene
from bench.measure import CountsDiffer
from kleene.query_set import QuerySet

KEYS, VALUES, SAMPLED = 1_000, 100, 20
TEMPLATES = {
    "skip till next": "PATTERN SEQ(A a, B b) WHERE skip_till_next_match { [k] AND a.x = :p AND b.x > :q } WITHIN 2000",
    "skip till any": "PATTERN SEQ(A a, B b) WHERE [k] AND a.x = :p AND b.x > :q WITHIN 2000",
    "contiguity": "PATTERN SEQ(A a, B b) WHERE partition_contiguity { [k] AND a.x = :p AND b.x > :q } WITHIN 20000",
    "a closure": "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match"
    " { [k] AND b.k = :k AND a[i].x > a[i-1].x AND b.x > :q } WITHIN 20000",
    "a negation": "PATTERN SEQ(A a, !(C c), B b) WHERE [k] AND a.k = :k AND c.x > :q WITHIN 20000",
}


def events(size: int) -> pa.Table:
    rng = np.random.default_rng(7)
    return pa.table(
        {
            "type": rng.choice(["A", "B", "C"], size),
            "ts": np.arange(size),
            "k": rng.integers(0, KEYS, size),
            "x": rng.integers(0, VALUES, size),
        }
    )


def rules(size: int) -> pa.Table:
    rng = np.random.default_rng(8)
    return pa.table(
        {
            "name": [f"r{number}" for number in range(size)],
            "p": rng.integers(0, VALUES, size),
            "q": rng.integers(VALUES // 2, VALUES, size),
            "k": rng.integers(0, KEYS, size),
        }
    )


def patterns(size: int, stream: int) -> None:
    """So many queries of each template over so many events; counts of some are compared with theirs alone."""
    print(f"\npatterns: {size:,} queries of a template, {stream:,} events; {SAMPLED} of them alone, too")
    table, given = events(stream), rules(size)
    for name, template in TEMPLATES.items():
        queries = QuerySet(table.schema)
        queries.add_many(template, given)
        queries.match(table.slice(0, 1_000), results="counts")
        began = time.perf_counter()
        counts = queries.match(table, results="counts").counts
        seconds = time.perf_counter() - began
        found = dict(zip(counts.column("query").to_pylist(), counts.column("matches").to_pylist(), strict=True))
        spent = _alone(table, template, given, found)
        how = "one engine" if "one engine:" in queries.explain() else "nodes"
        print(
            f"  {name:15s} {how:10s} {stream / seconds / 1e3:6.0f} k events/s, {sum(found.values()):,} matches;"
            f" {seconds / size * 1e6:.0f} µs a query, {spent / SAMPLED * 1e6:,.0f} by itself",
            flush=True,
        )


def _alone(table: pa.Table, template: str, given: pa.Table, found: dict[str, int]) -> float:
    """The seconds that some queries take by themselves."""
    spent = 0.0
    for row in given.slice(0, SAMPLED).to_pylist():
        name = row.pop("name")
        query = kleene.query(template, params={each: value for each, value in row.items() if f":{each}" in template})
        began = time.perf_counter()
        alone = kleene.match(table, query).num_rows
        spent += time.perf_counter() - began
        if alone != found.get(name, 0):
            raise CountsDiffer(f"{name} of {template!r}: {found.get(name, 0)} in the set, {alone} by itself")
    return spent
