"""SASE+ §6.3: Figure 8(g) and Table 3, merging without construction; and a price that rises more slowly."""

from __future__ import annotations

from dataclasses import replace

from bench.papers.baselines.stock_closures import ENTRIES, MERGED, REFERENCES, RUNS, STEPS
from bench.papers.report import Finding, show
from bench.papers.sase_plus import MILLIONS, QUERIES, WINDOWS, StockQuery, measured
from bench.papers.sides import Effort
from bench.workloads import PREDICATES


def merging(effort: Effort) -> list[Finding]:
    """Figure 8(g) and Table 3."""
    effort = replace(effort, repeats=min(effort.repeats, 2))
    gains: dict[str, list[float]] = {}
    own: dict[str, list[float]] = {}
    table: dict[str, list[float]] = {}
    merged: dict[str, list[float]] = {}
    steps: dict[str, list[tuple[float, float]]] = {}
    for predicate in PREDICATES:
        query = [StockQuery(predicate, "s3", window=window, constructs=False) for window in WINDOWS]
        measures = [measured(each, effort, ("basic", "merging"), ("Kleene", "Kleene apart")) for each in query]
        name = f"{predicate}s3"
        gains[name] = [one.factor("merging", "basic") for one in measures]
        own[name] = [one.factor("Kleene", "Kleene apart") for one in measures]
        steps[name] = [
            (one.counts["basic"][STEPS] / one.events, one.counts["merging"][STEPS] / one.events) for one in measures
        ]
        merged[name] = [100 * one.counts["merging"][MERGED] / one.counts["merging"][RUNS] for one in measures]
        table[name] = [*merged[name], *(one.counts["merging"][ENTRIES] / one.events for one in measures)]
    columns = [f"W={window:,}" for window in WINDOWS]
    show("SASE+ Figure 8(g): throughput gain of merging without construction", columns, gains)
    show("the same in Kleene (rule merge_runs)", columns, own)
    show("SASE+ Table 3: runs merged in %, then entries written to the buffer an event", columns * 2, table)
    return [
        Finding(
            "SASE+ Fig. 8(g)",
            "matching alone gains 1.4 to 2.1 times by merging; p2 gains most for large W, p3 least",
            "; ".join(f"{name} " + ", ".join(f"{gain:.2f}" for gain in each) for name, each in gains.items())
            + " x for W = 500, 1,000, 1,500, 2,000; Kleene "
            + "; ".join(f"{name} " + ", ".join(f"{gain:.2f}" for gain in each) for name, each in own.items()),
            all(gain > 1 for each in gains.values() for gain in each[1:]),
            "steps of runs an event, apart and merged: "
            + "; ".join(
                f"{name} " + ", ".join(f"{one:.2f} and {two:.2f}" for one, two in each) for name, each in steps.items()
            )
            + ". Merging saves at most these steps",
        ),
        Finding(
            "SASE+ Table 3",
            "48 to 75 % of the runs are merged, more with larger W; buffer updates cost p2 a third of p1 and p3",
            "merged: "
            + "; ".join(f"{name} " + ", ".join(f"{share:.0f}" for share in each) for name, each in merged.items())
            + f" %; entries an event at W = 2,000: p1 {table['p1s3'][-1]:.2f}, p2 {table['p2s3'][-1]:.2f}, "
            f"p3 {table['p3s3'][-1]:.2f}",
            merged["p1s3"][-1] >= merged["p1s3"][0] and table["p1s3"][-1] > table["p2s3"][-1],
        ),
    ]


def slower_rise(effort: Effort) -> list[Finding]:
    """Other experiments: p = 0.55."""
    sides = ("basic", "backtrack", "merging")
    both = {
        rising: {each: measured(StockQuery(*each, rising=rising), effort, sides) for each in QUERIES}
        for rising in (0.7, 0.55)
    }
    rows = {
        f"{''.join(each)} p={rising}": [one.rate(side) for side in sides]
        for rising, measures in both.items()
        for each, one in measures.items()
    }
    show("SASE+ other experiments: p = 0.55 beside 0.7", list(sides), rows, MILLIONS)
    faster = {"".join(each): both[0.55][each].rate("basic") / both[0.7][each].rate("basic") for each in QUERIES}
    starts = [int(both[rising]["p1", "s3"].counts["basic"][RUNS]) for rising in (0.7, 0.55)]
    each_run = {
        "".join(each): [
            one.counts["basic"][REFERENCES] / one.counts["basic"][RUNS] for one in (both[0.7][each], both[0.55][each])
        ]
        for each in QUERIES
    }
    margins = {rising: measures["p1", "s3"].factor("basic", "backtrack") for rising, measures in both.items()}
    gains = {rising: measures["p2", "s3"].factor("merging", "basic") for rising, measures in both.items()}
    return [
        Finding(
            "SASE+ p = 0.55",
            "p1 has the same throughput, p2 and p3 a higher one, since there are fewer matches; merging gains more",
            "throughput with 0.55 over 0.7: "
            + ", ".join(f"{name} {factor:.2f} x" for name, factor in faster.items())
            + f"; merging p2s3 {gains[0.55]:.2f} for {gains[0.7]:.2f} x; basic over backtrack p1s3 {margins[0.55]:.2f} "
            f"for {margins[0.7]:.2f} x",
            faster["p2s3"] > 1 and faster["p3s3"] > 1,
            f"runs that start: {starts[0]:,} with 0.7 and {starts[1]:,} with 0.55; references a run: "
            + ", ".join(f"{name} {one:,.0f} and {two:,.0f}" for name, (one, two) in each_run.items()),
        )
    ]
