"""SASE+ §6.1–6.2: the queries of Figure 8, with runs apart, merged, and by backtracking; Figures 8(b), 8(c), 8(e).

Streams are as long as the paper's: 200 partition windows for each of two symbols. The predicates are those of Table 1
with `min` in p3, the strategies s2 (partition contiguity) and s3 (skip till next match).
"""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from bench.ablations import counting
from bench.measure import Line, Timing, Work, alternate
from bench.papers.baselines.backtracking import backtracked
from bench.papers.baselines.closure_runs import with_runs
from bench.papers.baselines.stock_closures import (
    AT_C,
    CLOSED_AT_C,
    MATCHES,
    REFERENCES,
    STEPS,
    STEPS_AT_C,
    Closure,
    Ints,
    Ticks,
    ticks,
    without_starts,
)
from bench.papers.report import Finding, show
from bench.papers.sides import Effort, delivered
from bench.workloads import PREDICATES, STRATEGIES, stock, stock_query

QUERIES = tuple((predicate, strategy) for predicate in PREDICATES for strategy in STRATEGIES)
WINDOWS = (500, 1_000, 1_500, 2_000)
MILLIONS = "million events/s of processor time"
TAIL = " AND c.price > a[1].price AND c.price < a[a.LEN].price"


@dataclass(frozen=True)
class StockQuery:
    """A query of Table 1 over a stream that is as long as the paper's."""

    predicate: str
    strategy: str
    window: int = 500
    tail: bool = False
    non_overlap: bool = False
    constructs: bool = True
    rising: float = 0.7
    prices: int = 1_000
    # No event starts a run: what is left is what every event costs.
    idle: bool = False

    @property
    def name(self) -> str:
        return f"{self.predicate}{'*' * self.tail}{self.strategy}"

    @property
    def closure(self) -> Closure:
        number, strategy = int(self.predicate[1]), int(self.strategy[1])
        return Closure(number, strategy, self.window, self.tail, self.non_overlap, self.constructs)

    @property
    def text(self) -> str:
        text = stock_query(self.predicate, self.strategy, self.window)
        if self.tail:
            text = text.replace("STOCK b)", "STOCK b, STOCK c)").replace("volume < 150", f"volume < 150{TAIL}")
        return text + " OUTPUT NON_OVERLAP" * self.non_overlap

    def table(self) -> pa.Table:
        return stock(2 * 200 * self.window, rising=self.rising, prices=self.prices)


@dataclass(frozen=True)
class Measured:
    """What each algorithm took for a query's stream, and counted in it."""

    events: int
    timings: Mapping[str, Timing]
    counts: Mapping[str, Ints]

    def rate(self, side: str) -> float:
        return self.timings[side].rate(self.events)

    def factor(self, fast: str, slow: str) -> float:
        return self.timings[slow].median / self.timings[fast].median

    def nanoseconds(self, side: str) -> float:
        """An event."""
        return 1e9 * self.timings[side].median / self.events


def counted(query: StockQuery, algorithm: str, parts: list[Ticks]) -> Ints:
    """The counters of an algorithm over all partitions."""
    if algorithm == "backtrack":
        return sum((backtracked(part, query.closure) for part in parts[1:]), backtracked(parts[0], query.closure))
    runs = partial(with_runs, query=query.closure, merges=algorithm == "merging")
    return sum((runs(part) for part in parts[1:]), runs(parts[0]))


def measured(query: StockQuery, effort: Effort, algorithms: tuple[str, ...], product: tuple[str, ...] = ()) -> Measured:
    """Baselines, and the product beside them; all must count the same matches."""
    scaled = replace(query, window=max(20, query.window // effort.divisor))
    table = scaled.table()
    parts = [without_starts(part) for part in ticks(table)] if query.idle else ticks(table)
    works: dict[str, Work] = {name: partial(_matches, scaled, name, parts) for name in algorithms}
    for name in product:
        works[name] = _product(scaled, name, table)
    counts = {name: counted(scaled, name, parts) for name in algorithms}
    # What the compiler holds is not to be looked through between the runs.
    gc.freeze()
    return Measured(table.num_rows, alternate(works, effort.repeats, clock=time.process_time), counts)


def _matches(query: StockQuery, algorithm: str, parts: list[Ticks]) -> int:
    return int(counted(query, algorithm, parts)[MATCHES])


def _product(query: StockQuery, name: str, table: pa.Table) -> Work:
    """`Kleene` counts the matches of its graph of runs, `Kleene apart` does so without merging runs.

    `Kleene verbose`, and what must not overlap, makes the table of all matches.
    """
    if name == "Kleene verbose" or query.non_overlap:
        return delivered(query.text)(table)
    settings = counting("merge_runs") if name == "Kleene apart" else counting()
    return delivered(f"{query.text} OUTPUT COMPRESSED", settings)(table)


# Expt 2: windows ---------------------------------------------------------------------------------------------------


def windows(effort: Effort) -> list[Finding]:
    """Figures 8(b) and 8(c)."""
    queries = [each for each in QUERIES if each != ("p1", "s2")]
    effort = replace(effort, repeats=min(effort.repeats, 2))
    rates: dict[str, list[float]] = {}
    lines: dict[str, Line] = {}
    outputs: dict[str, list[float]] = {}
    for each in queries:
        measures = [measured(StockQuery(*each, window=window), effort, ("basic",)) for window in WINDOWS]
        name = "".join(each)
        rates[name] = [one.rate("basic") for one in measures]
        outputs[name] = [one.counts["basic"][REFERENCES] / one.events for one in measures]
        seconds = [one.timings["basic"].median / one.events for one in measures]
        lines[name] = Line.through(outputs[name], seconds)
    columns = [f"W={window:,}" for window in WINDOWS]
    show("SASE+ Figure 8(b): the partition window grows", columns, rates, f"{MILLIONS}, basic")
    show("SASE+ Figure 8(c): output complexity, references an event", columns, outputs)
    falls = {name: each[0] / each[-1] for name, each in rates.items()}
    grows = {name: each[-1] / max(each[0], 1e-9) for name, each in outputs.items()}
    straight = {name: line.r_squared for name, line in lines.items() if name != "p2s2"}
    return [
        Finding(
            "SASE+ Fig. 8(b)",
            "from W = 500 to 2,000 p2s2 hardly changes; p1s3 and p3s3 fall quadratically",
            "slower by " + ", ".join(f"{name} {fall:.1f} x" for name, fall in falls.items()),
            falls["p2s2"] < 1.3 and min(falls["p1s3"], falls["p3s3"]) > 4,
            "references an event grow by " + ", ".join(f"{name} {grow:.1f} x" for name, grow in grows.items()),
        ),
        Finding(
            "SASE+ Fig. 8(c)",
            "the cost is linear in the output complexity",
            "R² of a line through the four windows: " + ", ".join(f"{name} {r:.3f}" for name, r in straight.items()),
            all(r > 0.95 for r in straight.values()),
        ),
    ]


# Expt 4: results that do not overlap --------------------------------------------------------------------------------


def non_overlapping(effort: Effort) -> list[Finding]:
    """Figure 8(e)."""
    measures: dict[str, Measured] = {}
    for tail in (False, True):
        for strategy in STRATEGIES:
            query = StockQuery("p3", strategy, tail=tail, non_overlap=True)
            measures[query.name] = measured(query, effort, ("basic", "backtrack"), ("Kleene",))
    rows = {
        name: [*(one.rate(side) for side in one.timings), *(each[STEPS] / one.events for each in one.counts.values())]
        for name, one in measures.items()
    }
    columns = ["basic", "backtrack", "Kleene", "basic steps", "backtrack steps"]
    show("SASE+ Figure 8(e): NON_OVERLAP", columns, rows, f"{MILLIONS}; steps of runs an event")
    gains = {name: one.factor("basic", "backtrack") for name, one in measures.items()}
    steps = {
        name: tuple(int(one.counts[side][STEPS]) for side in ("backtrack", "basic")) for name, one in measures.items()
    }
    last = measures["p3*s3"]
    came, closed, waited = (
        [int(last.counts[side][counter]) for side in ("backtrack", "basic")]
        for counter in (AT_C, CLOSED_AT_C, STEPS_AT_C)
    )
    waiting = [number / all_steps for number, all_steps in zip(waited, steps["p3*s3"], strict=True)]
    each = [1e9 * last.timings[side].median / last.counts[side][STEPS] for side in ("backtrack", "basic")]
    return [
        Finding(
            "SASE+ Fig. 8(e)",
            "NON_OVERLAP: p3 alike for both; with a selective third component (p3*s3) basic is ten times backtrack",
            "basic over backtrack: " + ", ".join(f"{name} {gain:.2f} x" for name, gain in gains.items()),
            gains["p3*s3"] > 2,
            "steps of runs, backtrack and basic: "
            + ", ".join(f"{name} {back:,} and {basic:,}" for name, (back, basic) in steps.items())
            + f". p3*s3, of backtrack and basic: {came[0]:,} and {came[1]:,} runs come to c, the window of "
            f"{closed[0]:,} and {closed[1]:,} closes there, and waiting for c is {waiting[0]:.0%} and {waiting[1]:.0%} "
            "of the steps: basic follows the same runs to the same end, one beside "
            f"the other. A step takes {each[0]:.1f} and {each[1]:.1f} ns",
        )
    ]
