"""SASE §5.2–5.3: Figures 8 to 10 and the experiments beside them, with the paper's own alternatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa

from bench.papers.baselines.instance_stacks import multi_partitioned, partitioned
from bench.papers.baselines.runtime_stack import basic
from bench.papers.baselines.sequences import (
    CREATED,
    INTERSECTED,
    Events,
    Ints,
    Predicates,
    Query,
    equal_throughout,
    no_negation,
    predicates,
)
from bench.papers.baselines.sequences import VISITED as SEEN
from bench.papers.report import Finding, show
from bench.papers.sides import Comparison, Effort, Side, baseline, compare, kleene, sequence_events
from bench.workloads import sase, sequence

TYPES, LENGTH, WINDOW = 20, 3, 10_000
NOTHING = predicates()
FIRST, SECOND = (predicates(*equal_throughout(LENGTH, [column])) for column in (0, 1))
BOTH = predicates(*equal_throughout(LENGTH, [0, 1]))
MILLIONS = "million events/s of processor time"


def rule(
    during: Predicates = NOTHING,
    after: Predicates = NOTHING,
    window: int = WINDOW,
    *,
    scan: bool = True,
    back: bool = True,
) -> Query:
    """With the window pushed to sequence scan and construction unless it is said otherwise."""
    return Query(LENGTH, window, scan, back, during, after, no_negation())


def simulated(events: int, values: int, seed: int = 1) -> pa.Table:
    """§5.2: no equivalence test, but more types, by V^((L−1)/L), so that there are as many results as with one.

    The types that no query names are one here.
    """
    types = round(TYPES * values ** ((LENGTH - 1) / LENGTH))
    rng = np.random.default_rng(seed)
    codes = pa.array(np.minimum(rng.integers(0, types, events), LENGTH), pa.int32())
    names = pa.array([*(f"E{number}" for number in range(1, LENGTH + 1)), "other"])
    return pa.table({"type": pa.DictionaryArray.from_arrays(codes, names), "ts": np.arange(events)})


def on_stacks(query: Query, key: int | None = 0) -> Side:
    """AIS without a key, PAIS with one."""

    def run(events: Events) -> Ints:
        return partitioned(events, query, None if key is None else events.columns[key])

    return baseline(run, LENGTH)


def on_runtime_stack(query: Query) -> Side:
    return baseline(lambda events: basic(events, query), LENGTH)


# Figures 8 and 9: sequence construction ------------------------------------------------------------------------------


def construction(effort: Effort) -> list[Finding]:
    window = WINDOW // effort.divisor
    text = sequence(window=window, keys=()).text
    sides = {
        "Basic": on_runtime_stack(rule(window=window)),
        "AIS": on_stacks(rule(window=window), None),
        "Kleene": kleene(text),
    }
    by_values = {
        values: compare(partial(simulated, values=values), sides, effort.events(window), effort)
        for values in (100, 300, 1_000, 3_000, 10_000)
    }
    show_rates("SASE Figure 8: V1, the equivalence test simulated by more types", by_values)
    gains = {values: each.factor("AIS", "Basic") for values, each in by_values.items()}
    listed = ", ".join(f"V={values:,} {gain:.1f} x" for values, gain in gains.items())
    counts = {}
    for values in (100, 10_000):
        events = sequence_events(simulated(effort.events(window), values), LENGTH)
        counts[values] = basic(events, rule(window=window))[SEEN] / events.time.size
    findings = [
        Finding(
            "SASE Fig. 8",
            "AIS is 18 x Basic at V1 = 100; they are close at 10,000",
            f"AIS over Basic: {listed}; Kleene over Basic {by_values[100].factor('Kleene', 'Basic'):.1f} x at 100",
            gains[100] > 2 and gains[10_000] < gains[100],
            f"Basic looks at {counts[100]:.1f} cells an event at 100 and {counts[10_000]:.2f} at 10,000; what is left "
            "there is the cell that it writes for every event, of whatever type",
        )
    ]
    return [*findings, _windows_grow(effort), *_no_pushed_test(effort)]


def _windows_grow(effort: Effort) -> Finding:
    by_window: dict[int, Comparison] = {}
    for window in (number // effort.divisor for number in (10_000, 20_000, 50_000, 100_000)):
        sides = {
            "Basic": on_runtime_stack(rule(window=window)),
            "AIS": on_stacks(rule(window=window), None),
            "Kleene": kleene(sequence(window=window, keys=()).text),
        }
        by_window[window] = compare(partial(simulated, values=10_000), sides, effort.events(window), effort)
    show_rates("SASE Figure 9: the window grows, V1 = 10,000", by_window)
    first, *_, last = by_window.values()
    slower = {side: first.rate(side) / last.rate(side) for side in first.timings}
    seen = ", ".join(f"{side} {factor:.1f} x slower" for side, factor in slower.items())
    return Finding(
        "SASE Fig. 9",
        "from W = 10,000 to 100,000 Basic loses throughput much faster than AIS",
        f"from W = 10,000 to 100,000: {seen}",
        slower["Basic"] > 1.5 * slower["AIS"],
    )


def _no_pushed_test(effort: Effort) -> list[Finding]:
    """§5.3: the equivalence test in selection, so that construction creates every sequence of the window."""
    window = WINDOW // effort.divisor
    sides = {
        "Basic": on_runtime_stack(rule(after=FIRST, window=window)),
        "AIS": on_stacks(rule(after=FIRST, window=window), None),
        "PAIS": on_stacks(rule(window=window)),
        "Kleene": kleene(sequence(window=window).text),
    }
    make = {values: partial(sase, values=values) for values in (100,)}
    effort = replace(effort, repeats=1)
    by_values = {values: compare(each, sides, effort.events(window), effort) for values, each in make.items()}
    show_rates("SASE §5.3: [attr1] in selection (Basic, AIS) or in scan (PAIS, Kleene)", by_values)
    events = sequence_events(make[100](by_values[100].events), LENGTH)
    created = partitioned(events, rule(after=FIRST, window=window))[CREATED]
    return [
        Finding(
            "SASE §5.3, PAIS",
            "the plan with the test in selection could not complete: hundreds of millions of intermediate results",
            f"it completes: {created:,} intermediate sequences for {by_values[100].events:,} events; at V1 = "
            f"100 PAIS is {by_values[100].factor('PAIS', 'AIS'):,.0f} x AIS with selection",
            by_values[100].factor("PAIS", "AIS") > 10,
        )
    ]


# Figure 10: a second equivalence test --------------------------------------------------------------------------------


def with_values(events: int, values: int, second: int) -> pa.Table:
    table = sase(events, values)
    return table.set_column(3, "attr2", pa.array(table.column("attr2").to_numpy() % second))


def second_test(effort: Effort) -> list[Finding]:
    """Experiment 3: [attr2] in selection, in scan by Multi-PAIS, or in construction by dynamic filtering."""
    window = WINDOW // effort.divisor
    selected, filtered = rule(after=SECOND, window=window), rule(during=SECOND, window=window)

    def in_scan(events: Events, nested: bool = False) -> Ints:
        return multi_partitioned(events, selected, (events.columns[0], events.columns[1]), nested=nested)

    sides = {
        "Selection": on_stacks(selected),
        "Multi-PAIS": baseline(in_scan, LENGTH),
        "by lists": baseline(partial(in_scan, nested=True), LENGTH),
        "Dynamic": on_stacks(filtered),
        "Kleene": kleene(sequence(window=window, keys=("attr1", "attr2")).text),
    }
    findings: list[Finding] = []
    overhead: dict[int, dict[int, float]] = {}
    for second in (20, 5):
        by_values: dict[int, Comparison] = {}
        work: dict[str, Sequence[float]] = {}
        for values in (10, 50, 100, 500, 1_000, 10_000):
            make = partial(with_values, values=values, second=second)
            by_values[values] = compare(make, sides, effort.events(window), effort)
            events = sequence_events(make(effort.events(window)), LENGTH)
            counts = (
                partitioned(events, selected, events.columns[0]),
                in_scan(events),
                partitioned(events, filtered, events.columns[0]),
            )
            per = effort.events(window) / 10_000
            work[f"{values:,}"] = [
                *(each[CREATED] / per for each in counts),
                *(each[SEEN] / per for each in counts),
                counts[1][INTERSECTED] / per,
            ]
        show_rates(f"SASE Figure 10(a): V1 grows, V2 = {second}", by_values)
        names = ("Selection", "Multi-PAIS", "Dynamic")
        columns = [*(f"{name} created" for name in names), *(f"{name} seen" for name in names), "intersected"]
        note = "sequences created (Figure 10(b)), instances looked at, steps of intersections"
        show(f"per 10,000 events, V2 = {second}", columns, work, note)
        overhead[second] = {values: by_values[values].factor("Selection", "Multi-PAIS") for values in (10, 50, 100)}
        if second == 20:
            findings += _dynamic_wins(by_values, work)
    findings.append(
        Finding(
            "SASE Fig. 10, V2 = 5",
            "with a less selective second test the overhead of Multi-PAIS is magnified",
            "Selection over Multi-PAIS, V2 = 5 and 20: "
            + ", ".join(
                f"V1={values} {overhead[5][values]:.2f} and {overhead[20][values]:.2f} x" for values in overhead[5]
            ),
            all(overhead[5][values] > overhead[20][values] for values in overhead[5]),
        )
    )
    return findings


def _dynamic_wins(by_values: dict[int, Comparison], work: dict[str, Sequence[float]]) -> list[Finding]:
    gains = {values: each.factor("Dynamic", "Selection") for values, each in by_values.items()}
    lists = {values: each.factor("Selection", "by lists") for values, each in by_values.items()}
    walks = {values: each.factor("Selection", "Multi-PAIS") for values, each in by_values.items()}
    listed = ", ".join(
        f"V1={values:,} {gain:.1f} x Selection and {by_values[values].factor('Dynamic', 'Multi-PAIS'):.1f} x Multi-PAIS"
        for values, gain in gains.items()
    )
    created = {values: work[f"{values:,}"][:3] for values in (10, 100)}
    shown = "; ".join(
        f"V1={values} Selection {one:,.0f}, Multi-PAIS {two:,.0f}, Dynamic {three:,.0f}"
        for values, (one, two, three) in created.items()
    )
    saved, spent = work["10"][3] - work["10"][4], work["10"][6]
    return [
        Finding(
            "SASE Fig. 10(a)",
            "Dynamic Filtering wins by a wide margin for V1 ≤ 500, then all three are alike",
            f"Dynamic Filtering: {listed}",
            gains[10] > 2 and gains[10] > gains[100] > 0.95 * gains[500] and gains[10_000] < 1.5,
        ),
        Finding(
            "SASE Fig. 10(a), Multi-PAIS",
            "Multi-PAIS is even slower than Selection for small V1",
            "Selection over Multi-PAIS: " + ", ".join(f"V1={values:,} {each:.2f} x" for values, each in walks.items()),
            all(walks[values] > 1 for values in (10, 50, 100)),
            f"it depends on the intersection: a walk of both stacks takes {spent:,.0f} steps per 10,000 events at "
            f"V1 = 10 and saves {saved:,.0f} in construction. With lists, each instance of one looked up in the other, "
            "Selection over it: " + ", ".join(f"V1={values:,} {each:.1f} x" for values, each in lists.items()),
        ),
        Finding(
            "SASE Fig. 10(b)",
            "Selection creates most sequences, Multi-PAIS somewhat fewer, Dynamic Filtering far fewer",
            f"sequences created per 10,000 events: {shown}",
            all(selection >= multi >= dynamic for selection, multi, dynamic in created.values()),
        ),
    ]


def show_rates(title: str, comparisons: dict[int, Comparison]) -> None:
    first = next(iter(comparisons.values()))
    rows = {f"{value:,}": [*each.rates(), each.events, each.matches] for value, each in comparisons.items()}
    show(title, [*first.timings, "events", "matches"], rows, MILLIONS)
