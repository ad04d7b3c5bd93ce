"""Compile the kernels once, so that no first match waits for it: what `kleene warm` and the background do.

Kernels are compiled for kinds of arrays, not for queries; together these queries need every kernel, for every kind.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kleene.algebra.eql_query import BoundEqlQuery
from kleene.algebra.query import BoundStreamQuery
from kleene.engine.any_engine import engine_for
from kleene.engine.engine import Engine
from kleene.engine.intake.strings import StringPool
from kleene.engine.intake.timeline import order_by_number
from kleene.engine.query_sets.shared_queries import SharedQueries
from kleene.engine.query_sets.shared_stream import SharedStream
from kleene.engine.warming import stamp
from kleene.frames.arrow import schema_on
from kleene.optimize.trees.all_trees import all_trees
from kleene.optimize.trees.options import options
from kleene.pattern import Schema
from kleene.pattern.query import BoundQuery
from kleene.plan.physical import Plan
from kleene.plan.settings import Budget, Policy, Settings
from kleene.queries.any_query import read_query
from kleene.queries.templates import TemplateReader

_SEQUENCE = "PATTERN SEQ(A a, !(B b), C c) WHERE [id] AND a.x > 0 AND c.x > a.x"
_RISING = "PATTERN SEQ(A+ a[], C c) WHERE skip_till_next_match { [id] AND a[i].x > a[i-1].x }"
_CROWD = "PATTERN SEQ(A+ a[], C c)"
_TREE = "PATTERN (A a & A e) ; !(B d) ; A f ; !(B b) ; C c WHERE [id] AND a.x < e.x AND a.s = c.s"


class Warming(NamedTuple):
    """A query that needs kernels which those before it do not."""

    what: str
    query: str
    schema: Schema = Schema()
    settings: Settings = Settings()
    # Whether it runs as a tree of every shape: which one is chosen depends on the events.
    shapes: bool = False
    # Whether it runs as one of a set of queries.
    shared: bool = False
    spelling: str | None = None


WARMINGS = (
    Warming("sequences, what is between", f"{_SEQUENCE} WITHIN 9"),
    Warming("sequences without conditions", "PATTERN SEQ(A a, A b, C c) WITHIN 9"),
    Warming("what is not before or after", "PATTERN !(B b) ; A a ; C c ; !(B d) WHERE [id] AND d.x > a.x WITHIN 9"),
    Warming("events that last", f"{_SEQUENCE} WITHIN 9", Schema(start="began")),
    Warming("ties, windows of positions", f"{_SEQUENCE} WITHIN 9 EVENTS", Schema(tie_breaker="small")),
    Warming(
        "events that last, windows of positions",
        f"{_SEQUENCE} WITHIN 9 EVENTS",
        Schema(start="began", tie_breaker="small"),
        Settings(budget=Budget(state_bytes=1 << 30)),
    ),
    Warming(
        "events that last, windows of positions, no ties",
        f"{_SEQUENCE} WITHIN 9 EVENTS",
        Schema(start="began"),
        Settings(budget=Budget(state_bytes=1 << 30)),
    ),
    Warming("closure", f"{_RISING} WITHIN 9"),
    Warming("closure with negation", "PATTERN SEQ(A+ a[], !(B b), C c, !(B d)) WHERE b.x > a[1].x AND [id] WITHIN 9"),
    Warming(
        "closure with aggregates",
        "PATTERN SEQ(A+ a[], C c) WHERE skip_till_next_match { [id] AND a[i].y >= avg(a[..i-1].y) AND c.s >= max(a.s) }"
        " WITHIN 9 RETURN sum(a.y) AS total, max(a.s) AS latest, count(a) AS number, c.y * 2 AS twice, c.flag, a[1].at",
    ),
    Warming("contiguity", "PATTERN SEQ(A+ a[], C c) WHERE partition_contiguity { [id] } WITHIN 9"),
    Warming("matches that do not overlap", f"{_RISING} WITHIN 9 OUTPUT NON_OVERLAP"),
    Warming("graphs", f"{_CROWD} WITHIN 9 OUTPUT COMPRESSED"),
    Warming("graphs with several first matches", "PATTERN SEQ(A a, A+ b[], C c) WITHIN 9 OUTPUT COMPRESSED"),
    Warming(
        "graphs that windows cut",
        "PATTERN SEQ(A+ a[], C c) WHERE skip_till_next_match { } WITHIN 3 OUTPUT COMPRESSED",
    ),
    Warming(
        "counts",
        "PATTERN SEQ(A+ a[], C c) WHERE skip_till_next_match { } WITHIN 3 OUTPUT COMPRESSED",
        settings=Settings(graphs=False),
    ),
    Warming("timeouts", f"{_RISING} WITHIN 2 TIMEOUTS INTO Late"),
    Warming(
        "budgets",
        f"{_RISING} WITHIN 9",
        settings=Settings(budget=Budget(matches_per_event=2, runs_per_partition=2, policy=Policy.DROP_OLDEST)),
    ),
    Warming("trees, what is between in every place", f"{_SEQUENCE} WITHIN 9", shapes=True),
    Warming("trees of conjunctions", f"{_TREE} AND b.x > c.x AND d.x > a.x WITHIN 9"),
    Warming("trees of events that last", f"{_TREE} WITHIN 9", Schema(start="began")),
    Warming("trees, windows of positions", f"{_TREE} WITHIN 9 EVENTS", Schema(tie_breaker="small")),
    Warming("trees with groups that forbid, and pairs", "PATTERN A a & !(C c) & !(B b ; A d) WHERE d.y > b.y WITHIN 9"),
    Warming("trees without a key, open ends", "PATTERN !(B b) ; (A a & C c) ; B+ d WHERE d.y > a.y WITHIN 9"),
    Warming(
        "trees with groups and lists",
        "PATTERN (A a | B b) ; A* ; (A+ k[] & C c) WHERE A.x > a.x AND k[i].y > avg(k[..i-1].y) AND c.x > sum(A.x)"
        " AND max(k.s) > c.s WITHIN 9",
    ),
    Warming(
        "streams",
        "σ{b.y > 1}(μ{σ{b.x >= b.x.last} ∘ α{b.y ↦ b.y + 1}, a.id = b.id AND b.x > a.x AND DUR <= 9}(A a, A b)) ; A c",
    ),
    Warming(
        "detections",
        r"SELECT * FROM A a ; (A b \ B e) ; A t+ ; ((C c | B d) @ 1 \ A f)"
        " WHERE FILTER(a.id = b.id), FILTER(a.code = b.code), FILTER(b.x > a.x), e.id = a.id, ALL(t.x) < 20,"
        " FILTER(PREV(t.y) <= 20), f.x > c.x, (a, c) OCCURS WITHIN 9",
        settings=Settings(budget=Budget(state_bytes=1 << 30)),
        spelling="next",
    ),
    Warming(
        "sets of queries",
        "σ{b.x > 2 and b.y < a.y + 1.5}"
        "(μ{ID, a.id = b.id and b.s != 'q' and DUR <= 9}(σ{a.x IN (0, 1, 3, 4)}(A a), A b))",
        shared=True,
    ),
)


def events() -> pa.Table:
    """Values of every kind and width, some of them NULL; two events are simultaneous."""
    steps = list(range(12))
    numbers = pa.array([None if step == 5 else step for step in steps], pa.int64())
    narrow = {str(kind): numbers.cast(kind) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.bool_(), pa.float32())}
    return pa.table(
        {
            "type": pa.array(["A", "A", "B", "A", "A", "C"] * 2).dictionary_encode(),
            "ts": [0, 0, *steps[2:]],
            "began": pa.array([0, 0, *steps[1:-1]], pa.int64()),
            "id": [7] * 12,
            "small": pa.array(steps, pa.int8()),
            "x": numbers,
            "y": numbers.cast(pa.float64()),
            "s": pa.array(list("abcdefghijkl")),
            "code": pa.array(list("aabbccaabbcc")).dictionary_encode(),
            "flag": pa.array([True, False] * 6),
            "at": pa.array(steps, pa.int64()).cast(pa.timestamp("us")),
            **narrow,
        }
    )


def warm(begins: Callable[[int, str], None] = lambda number, what: None) -> float:
    """Compile every kernel by running small queries, and leave a stamp that says so; returns the seconds it took.

    begins   called before each of `WARMINGS` with its place among them and what is compiled
    """
    began = time.perf_counter()
    for number, each in enumerate(WARMINGS):
        begins(number, each.what)
        _run(each, events())
    # More strings than a pool has room for at first.
    StringPool().codes([str(number) for number in range(100)])
    # More rows in no order than are compared with each other.
    order_by_number(np.arange(1_000)[::-1].copy())
    stamp()
    return time.perf_counter() - began


def help_from_the_end() -> None:
    """Compile in reverse order, beside a process that compiles from the front: each uses what the other has kept."""
    for each in reversed(WARMINGS):
        _run(each, events())


def beside() -> None:
    """Compile with low priority, beside the user's work."""
    with suppress(OSError, AttributeError):
        os.nice(10)
    warm()


def _run_shared(text: str, table: pa.Table) -> None:
    """Run a query twice in a set, from which one of them is removed."""
    shared = SharedQueries(table.schema, schema_on(table.schema, Schema()))
    template, constants = TemplateReader().read(text)
    known = shared.template(template)
    numbers, _ = shared.queries.reserve(pa.array(["first", "second"]))
    values = [shared.values.strings.code(each) if isinstance(each, str) else each for each in constants]
    given = {name: np.array([value] * 2) for (name, _), value in zip(template.parameters, values, strict=True)}
    shared.add(known, given, numbers)
    stream = SharedStream(shared)
    found, _, _ = stream.process(table.slice(0, 6), 4)
    shared.remove(0)
    shared.compact(stream.run)
    found += stream.finish(table.slice(6))[0]
    for each in found:
        shared.table_of(each, lists=False)
    shared.queries.find("second")
    shared.queries.grow_names(1 << 10)


def _run(warming: Warming, table: pa.Table) -> None:
    """Run a query in two batches, with the state saved and restored between them."""
    if warming.shared:
        _run_shared(warming.query, table)
        return
    written = read_query(warming.query, spelling=warming.spelling)
    query = written.bind(schema_on(table.schema, warming.schema))
    if isinstance(query, BoundStreamQuery | BoundEqlQuery):
        _run_algebra(query, table, warming.settings)
        return
    for plan in _trees(query) if warming.shapes else (None,):
        engine = Engine(query, warming.settings, plan)
        engine.process(table.slice(0, 6), watermark=4)
        engine = Engine.restore(query, engine.snapshot(), warming.settings, plan)
        engine.process(table.slice(6))
        engine.finish()


def _run_algebra(query: BoundStreamQuery | BoundEqlQuery, table: pa.Table, settings: Settings) -> None:
    engine = engine_for(query, settings)
    engine.process(table.slice(0, 6), watermark=4)
    engine = engine_for(query, settings, engine.snapshot())
    engine.process(table.slice(6))
    engine.finish()


def _trees(query: BoundQuery) -> Iterator[Plan]:
    (option,) = options(query)
    for tree in all_trees(query, option):
        yield Plan(query, (tree,))
