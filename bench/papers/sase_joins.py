"""SASE §5.4: Figures 11 and 12, beside joins over windows as TelegraphCQ makes them, as shares of the lightest load."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from bench.papers.baselines.instance_stacks import partitioned
from bench.papers.baselines.sequences import VISITED, Events, Ints, Query, equal_throughout, no_negation, predicates
from bench.papers.baselines.windowed_join import joined
from bench.papers.report import Finding, show
from bench.papers.sides import Comparison, Effort, Side, baseline, compare, kleene, sequence_events
from bench.workloads import sase, sequence

WINDOW = 10_000
NOTHING = predicates()


Algorithm = Callable[[Events], Ints]


def algorithms(length: int, window: int, tests: int) -> tuple[Algorithm, Algorithm]:
    """PAIS with dynamic filtering for a second test, and joins that filter by it."""
    others = list(range(1, tests))
    query = Query(length, window, True, True, NOTHING, NOTHING, no_negation())
    filtered = query._replace(during=predicates(*equal_throughout(length, others)))

    def on_stacks(events: Events) -> Ints:
        return partitioned(events, filtered, events.columns[0])

    def by_joins(events: Events) -> Ints:
        return joined(events, query, events.columns[0], np.array(others, np.int64))

    return on_stacks, by_joins


def sides(length: int, window: int, tests: int = 1) -> dict[str, Side]:
    on_stacks, by_joins = algorithms(length, window, tests)
    text = sequence(length, window, ("attr1", "attr2")[:tests]).text
    return {"SASE": baseline(on_stacks, length), "joins": baseline(by_joins, length), "Kleene": kleene(text)}


def lengths(effort: Effort) -> list[Finding]:
    """Experiment 5."""
    window = WINDOW // effort.divisor
    by_length = {
        length: compare(partial(sase, values=100), sides(length, window), effort.events(window), effort)
        for length in range(2, 7)
    }
    normal = _normalised(by_length, 2)
    _show("SASE Figure 11: the sequence grows, V1 = 100", by_length, normal)
    return [
        Finding(
            "SASE Fig. 11",
            "from L = 2 to 6 SASE falls to 0.5 of its throughput, TelegraphCQ below 0.01 from L = 5 on",
            "; ".join(
                f"L={length} " + ", ".join(f"{name} {share:.2g}" for name, share in shares.items())
                for length, shares in normal.items()
                if length > 2
            ),
            all(
                shares["joins"] < min(shares["SASE"], shares["Kleene"])
                for length, shares in normal.items()
                if length > 2
            ),
        )
    ]


def domains(effort: Effort) -> list[Finding]:
    """Experiment 6."""
    window = WINDOW // effort.divisor
    normal: dict[int, dict[int, dict[str, float]]] = {}
    rates: dict[int, dict[int, Comparison]] = {}
    for tests in (1, 2):
        rates[tests] = {
            values: compare(partial(sase, values=values), sides(3, window, tests), effort.events(window), effort)
            for values in (10_000, 1_000, 100, 10)
        }
        normal[tests] = _normalised(rates[tests], 10_000)
        _show(f"SASE Figure 12: V1 shrinks, {tests} equivalence test{'s' * (tests > 1)}", rates[tests], normal[tests])
    faster = {name: rates[2][10].rate(name) / rates[1][10].rate(name) for name in ("SASE", "joins", "Kleene")}
    seen = [_seen(tests, window, effort.events(window)) for tests in (1, 2)]
    return [
        Finding(
            "SASE Fig. 12, 1 test",
            "as V1 falls from 10,000 to 10, TelegraphCQ drops much faster than SASE",
            _listed(normal[1]),
            all(normal[1][values]["joins"] < normal[1][values]["SASE"] for values in (100, 10)),
        ),
        Finding(
            "SASE Fig. 12, 2 tests",
            "a second test helps both, SASE significantly when V1 is small, TelegraphCQ little",
            f"{_listed(normal[2])}; a second test at V1 = 10: "
            + ", ".join(f"{name} {factor:.1f} x" for name, factor in faster.items()),
            faster["SASE"] > 2 * faster["joins"] and normal[2][10]["joins"] < normal[2][10]["SASE"],
            "at V1 = 10 events looked at per event of the stream, with one test and two: SASE "
            f"{seen[0][0]:.0f} and {seen[1][0]:.1f}, joins {seen[0][1]:.0f} and {seen[1][1]:.1f}: a filter right after "
            "each join stops it as early as dynamic filtering stops construction; TelegraphCQ pushed one of the two",
        ),
    ]


def _seen(tests: int, window: int, events: int) -> tuple[float, float]:
    """Events that construction on stacks, and joins, look at per event of a stream with V1 = 10."""
    table = sequence_events(sase(events, 10), 3)
    on_stacks, by_joins = algorithms(3, window, tests)
    return on_stacks(table)[VISITED] / events, by_joins(table)[VISITED] / events


def _normalised(comparisons: Mapping[int, Comparison], lightest: int) -> dict[int, dict[str, float]]:
    """Throughput as a share of that of the lightest load, side by side."""
    light = comparisons[lightest]
    return {
        value: {side: each.rate(side) / light.rate(side) for side in each.timings}
        for value, each in comparisons.items()
    }


def _listed(normal: Mapping[int, Mapping[str, float]]) -> str:
    return "; ".join(
        f"V1={values:,} " + ", ".join(f"{name} {share:.2g}" for name, share in shares.items())
        for values, shares in normal.items()
        if values < 10_000
    )


def _show(title: str, comparisons: Mapping[int, Comparison], normal: Mapping[int, Mapping[str, float]]) -> None:
    names = list(next(iter(comparisons.values())).timings)
    rows = {
        f"{value:,}": [*each.rates(), *normal[value].values(), each.events, each.matches]
        for value, each in comparisons.items()
    }
    columns = [*names, *(f"{name}, share" for name in names), "events", "matches"]
    show(title, columns, rows, "million events/s, and shares of the lightest load's")
