"""ZStream's Figures 8–13 and 15–17: how fast each plan is as selectivities and rates vary, and the web log."""

from __future__ import annotations

import time
from functools import partial
from itertools import pairwise
from statistics import median

import pyarrow as pa

from bench.measure import REPEATS, Verdict, alternate, once
from bench.running import bound
from bench.tree_plans import (
    FOUR,
    NEGATIONS,
    THREE,
    agree,
    batches,
    delivered,
    lines,
    replayed,
    trees,
)
from bench.tree_points import CELL, NAME, Figure, Point, Size, agreement
from bench.tree_workloads import (
    QUERY_4,
    QUERY_5,
    QUERY_6,
    QUERY_7,
    QUERY_8,
    RATES,
    SETTINGS,
    Stocks,
    web_log,
)
from kleene.optimize import fingerprints
from kleene.optimize.order import best
from kleene.optimize.statistics import Statistics
from kleene.optimize.trees.options import options
from kleene.plan.physical import Scan

SELECTIVITIES = (1, 2, 4, 8, 16, 32)
NEGATION_RATES = (1, 2, 4, 8, 16, 32)
# In 2,048 records of the web log there are not even 50 that matter.
LOG_BATCH = 65_536
CLASSES, MOST_MILLISECONDS = 20, 10.0


def selectivities(size: Size) -> list[Point]:
    figure = Figure("Figures 8 and 9: the selectivity of the predicate", QUERY_4, partial(trees, orders=THREE))
    streams = {f"Q4, 1/{part}": Stocks((1, 1, 1), {"Sun": 1 / part}) for part in SELECTIVITIES}
    points = figure.over(streams, size, REPEATS)
    print("the same with the tables of all matches made, which takes most of the time where there are many:")
    for point in (points[0], points[-1]):
        table = streams[point.name].table(min(point.events, size.most))
        query = bound(table, QUERY_4)
        parts = list(batches(table))
        ways = {**trees(query, THREE), **lines(query)}
        works = {name: partial(delivered, way, parts) for name, way in ways.items()}
        timings = alternate(works, clock=time.process_time)
        rates = "".join(f"{1_000 * timing.rate(table.num_rows):{CELL}.1f}" for timing in timings.values())
        print(f"{point.name:{NAME}}{rates}", flush=True)
    return points


def rates(size: Size) -> list[Point]:
    figure = Figure("Figures 10 and 11: the rate of IBM", QUERY_5, partial(trees, orders=THREE))
    return figure.over({f"Q5, {Stocks(each)}": Stocks(each) for each in RATES}, size, REPEATS)


def shapes(size: Size) -> list[Point]:
    figure = Figure("Figures 12 and 13: four classes in every shape", QUERY_6, partial(trees, orders=FOUR))
    points = figure.over({f"Q6, {name}": stream for name, stream in SETTINGS.items()}, size, 2 * REPEATS - 1)
    for point in points:
        told = ", ".join(f"{fast} > {slow}{'' if same else ' (the model: not)'}" for fast, slow, same in point.pairs)
        print(f"{point.name}: over 10 % apart: {told or 'none'}")
    return points


def negated(size: Size) -> list[Point]:
    figure = Figure("Figure 15: NSEQ and NEG, the rate of Oracle", QUERY_7, partial(trees, orders=NEGATIONS))
    points = figure.over({f"Q7, {Stocks((1, 1, n))}": Stocks((1, 1, n)) for n in NEGATION_RATES}, size, REPEATS)
    figure = Figure("Figure 16: NSEQ and NEG, the rate of Sun", QUERY_7, partial(trees, orders=NEGATIONS))
    streams = {f"Q7, {Stocks((1, n, 1))}": Stocks((1, n, 1)) for n in NEGATION_RATES[1:]}
    return [*points, *figure.over(streams, size, REPEATS)]


def all_figures(size: Size) -> list[Point]:
    """Every setting whose plans can be compared."""
    print("\nthousand events/s of every plan (matches of the automaton stay a graph that its runs share);")
    print("after the bar 1,000,000 / estimated cost by true statistics; and what the optimiser takes by a sample")
    points = [*selectivities(size), *rates(size), *shapes(size), *negated(size)]
    print(f"\n{agreement(points)}")
    return points


def accesses(size: Size, crawlers: int = 0) -> dict[str, float]:
    """Thousand records a second of each plan."""
    table = web_log(size.records, crawlers=crawlers)
    query = bound(table, QUERY_8)
    ways = {**trees(query, THREE), **lines(query)}
    matches = agree(ways, table, LOG_BATCH)
    print(f"\nFigure 17: {table.num_rows:,} records of a web log, {matches:,} matches; thousand records/s\n{QUERY_8}")
    parts = list(batches(table, LOG_BATCH))
    works = {name: partial(replayed, way, parts) for name, way in ways.items()}
    timings = alternate(works, clock=time.process_time)
    rates = {name: 1_000 * timing.rate(table.num_rows) for name, timing in timings.items()}
    for name, rate in rates.items():
        print(f"  {name:12}{rate:9.0f}", flush=True)
    return rates


def search() -> Verdict:
    """G9: Algorithm 5 for a sequence of twenty classes with a predicate between every two neighbours."""
    names = [f"C{number}" for number in range(CLASSES)]
    where = " AND ".join(f"{left}.price > {right}.price" for left, right in pairwise(names))
    schema = pa.table({"type": names, "ts": range(CLASSES), "price": [0.0] * CLASSES})
    query = bound(schema, f"PATTERN {'; '.join(names)} WHERE {where} WITHIN 100 units")
    components = {component.variable: component for component in query.components}
    rates = {fingerprints.of_scan(Scan(c)): 1.0 + 7 * n % 13 for n, c in enumerate(query.components)}
    shares = {
        fingerprints.of_clause(clause, components): 1 / (1 + 5 * n % 11)
        for n, clause in enumerate(query.conditions.positive)
    }
    (logical,) = options(query)
    first, *later = (1_000 * once(best, query, logical, Statistics(rates, shares)) for _ in range(10))
    text = f"plan search for {CLASSES} classes: {median(later):.1f} ms (the first time {first:.1f}); goal 10 ms"
    return Verdict("G9", median(later) < MOST_MILLISECONDS, text)
