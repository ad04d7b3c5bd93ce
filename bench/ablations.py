"""Each optimisation of the papers against the same engine without it, beside what the paper reports."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import pyarrow as pa

from bench.measure import Timing, Verdict, affordable, alternate
from bench.running import ALL_RULES, NotCompiled, bound, found_with, number_of_matches, without
from bench.workloads import sase, sequence, stock, stock_query
from kleene.plan.settings import Settings

SECONDS = 1.0


def count(table: pa.Table, text: str, settings: Settings) -> int:
    return number_of_matches(found_with(table, text, settings))


def count_of(make: Callable[[int], pa.Table], text: str, settings: Settings, events: int) -> int:
    return count(make(events), text, settings)


def counting(*rules: str) -> Settings:
    """All rules but these, and no graphs: the matching alone, as SASE+ measures it."""
    return replace(without(*rules), graphs=False)


def side_by_side(
    make: Callable[[int], pa.Table], text: str, variants: Mapping[str, Settings], events: int
) -> tuple[int, dict[str, Timing]]:
    """All variants over the longest stream that the slowest can have."""
    size = events
    for settings in variants.values():
        size = affordable(partial(count_of, make, text, settings), size, SECONDS)
    table = make(size)
    return size, alternate({name: partial(count, table, text, settings) for name, settings in variants.items()})


def show(name: str, size: int, timings: Mapping[str, Timing]) -> None:
    """Rates, and how many times the first is each of the others."""
    first, *others = timings.values()
    rates = "".join(f"{timing.rate(size):14.3f}" for timing in timings.values())
    gains = "".join(f"{other.median / first.median:9.2f}x" for other in others)
    print(f"  {name:12}{size:10,}{first.count:10,}{rates}   {gains}", flush=True)


def head(first: str, variants: Mapping[str, Settings]) -> None:
    names = "".join(f"{name:>14}" for name in variants)
    print(f"  {first:12}{'events':>10}{'matches':>10}{names}   gain over the others (million events/s)")


def partitioned_stacks(events: int) -> None:
    """SASE Figure 8 and §5.3: stacks by key against one stack a place, and against the basic plan."""
    print("\nSASE Figure 8: partitioned stacks as V shrinks")
    print("  the paper: 18 x the basic algorithm at V=100, equal at 10,000; its basic plan did not end")
    variants = {"all rules": without(), "no key": without("push_equivalence")}
    head("V", variants)
    for values in (100, 1_000, 10_000):
        show(f"{values:,}", *side_by_side(partial(sase, values=values), sequence().text, variants, events))
    basic = {"all rules": without(), "no rules": Settings(without=ALL_RULES)}
    head("V", basic)
    show("100", *side_by_side(partial(sase, values=100), sequence().text, basic, 10_000))


def second_equivalence(events: int) -> None:
    """SASE Figure 10: where the test of attr2 happens."""
    print("\nSASE Figure 10: a second equivalence test, in the key, in construction, in selection (V2=20)")
    print("  the paper: construction (dynamic filtering) wins by far for V1 ≤ 500, then all are alike; its Multi-PAIS")
    print("  keys each attribute apart and was the slowest; ours is one key of both")
    variants = {
        "in the key": without(),
        "construction": without("push_other_equivalences"),
        "selection": without("push_other_equivalences", "push_to_construction"),
    }
    head("V1", variants)
    text = sequence(keys=("attr1", "attr2")).text
    for values in (10, 100, 500, 10_000):
        show(f"{values:,}", *side_by_side(partial(sase, values=values), text, variants, events))


def merging(events: int) -> None:
    """SASE+ Figures 8(f) and 8(g): equivalent runs as one, without construction of the matches."""
    print("\nSASE+ Figures 8(f), 8(g): merging of runs, skip till next match, matches counted")
    print("  the paper: 1.4 to 2.1 times the throughput")
    variants = {"merged": counting(), "apart": counting("merge_runs")}
    head("P, window", variants)
    for predicate in ("p1", "p2", "p3"):
        for window in (500, 1_000, 2_000):
            text = stock_query(predicate, "s3", window, compressed=True)
            show(f"{predicate} {window:,}", *side_by_side(stock, text, variants, events))


def many_runs(events: int) -> None:
    """W3 without its start filter: every event starts a run, in steps of runs a second."""
    try:
        from kleene.engine.engine import Engine
    except ImportError as missing:
        print(f"  skipped: no engine that tells its runs ({missing})")
        return
    print("\nW3 without the start filter, p1 s3, window 500 EVENTS: live runs, and steps of runs a second")
    text = stock_query("p1", "s3", filtered=False, compressed=True)
    for name, settings in {"merged": counting(), "apart": counting("merge_runs")}.items():
        size = affordable(partial(count_of, stock, text, settings), events, SECONDS)
        table = stock(size)
        timing = alternate({name: partial(count, table, text, settings)})[name]
        engine = Engine(bound(table, text), settings)
        engine.process(table, size)
        runs = engine.statistics.runs
        steps = f"{runs * timing.rate(size):10.1f} M run-steps/s" if runs else ""
        print(f"  {name:8}{size:10,} events{timing.rate(size):10.3f} M events/s{runs:8,} live runs{steps}", flush=True)


def ablations(events: int) -> list[Verdict]:
    """All of them; they explain figures and have no goals of their own."""
    for ablation in (partitioned_stacks, second_equivalence, merging, many_runs):
        try:
            ablation(events)
        except NotCompiled as query:
            print(f"  skipped, on the reference evaluator so far: {query}")
    return []


if __name__ == "__main__":
    ablations(200_000)
    sys.exit(0)
