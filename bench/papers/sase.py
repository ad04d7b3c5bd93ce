"""SASE §5.2–5.3: Figures 8 to 10 and the experiments beside them, with the paper's own alternatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.papers.baselines.instance_stacks import multi_partitioned, partitioned
from bench.papers.baselines.runtime_stack import basic
from bench.papers.baselines.sequences import (
    CREATED,
    HOLDS,
    INDEXED,
    INTERSECTED,
    LESS,
    PROBED,
    SCANNED,
    Events,
    Ints,
    Predicates,
    Query,
    equal_throughout,
    negation,
    no_negation,
    predicates,
)
from bench.papers.baselines.sequences import VISITED as SEEN
from bench.papers.report import Finding, show
from bench.papers.sides import Comparison, Effort, Side, baseline, compare, kleene, sequence_events
from bench.running import without
from bench.workloads import sase, sequence
from kleene.plan.physical import Plan, SequencePlan

TYPES, LENGTH, WINDOW = 20, 3, 10_000
NOTHING = predicates()
FIRST, SECOND = (predicates(*equal_throughout(LENGTH, [column])) for column in (0, 1))
BOTH = predicates(*equal_throughout(LENGTH, [0, 1]))
MILLIONS = "million events/s of processor time"


def rule(
    during: Predicates = NOTHING, after: Predicates = NOTHING, window: int = WINDOW, *, scan: bool = True, back: bool = True
) -> Query:
    """With the window pushed to sequence scan and construction unless it is said otherwise."""
    return Query(LENGTH, window, scan, back, during, after, no_negation())


def simulated(events: int, values: int, seed: int = 1) -> pa.Table:
    """§5.2: no equivalence test, but more types, by V^((L−1)/L), so that there are as many results as with one."""
    types = round(TYPES * values ** ((LENGTH - 1) / LENGTH))
    rng = np.random.default_rng(seed)
    codes = pa.array(rng.integers(0, types, events), pa.int32())
    names = pa.array([f"E{number}" for number in range(1, types + 1)])
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
    _show("SASE Figure 8: V1, the equivalence test simulated by more types", by_values)
    gains = {values: each.factor("AIS", "Basic") for values, each in by_values.items()}
    listed = ", ".join(f"V={values:,} {gain:.1f} x" for values, gain in gains.items())
    falls = gains[100] > gains[1_000] > gains[10_000]
    findings = [
        Finding(
            "SASE Fig. 8",
            "AIS is 18 x Basic at V1 = 100; they are close at 10,000",
            f"AIS over Basic: {listed}; Kleene over Basic {by_values[100].factor('Kleene', 'Basic'):.1f} x at 100",
            falls and gains[100] > 2 and gains[10_000] < 0.3 * gains[100],
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
    _show("SASE Figure 9: the window grows, V1 = 10,000", by_window)
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
    make = {values: partial(sase, values=values) for values in (100, 1_000, 10_000)}
    by_values = {values: compare(each, sides, effort.events(window), effort) for values, each in make.items()}
    _show("SASE §5.3: [attr1] in selection (Basic, AIS) or in scan (PAIS, Kleene)", by_values)
    events = sequence_events(make[100](by_values[100].events), LENGTH)
    created = partitioned(events, rule(after=FIRST, window=window))[CREATED]
    gains = ", ".join(f"V={values:,} {each.factor('PAIS', 'AIS'):,.0f} x" for values, each in by_values.items())
    return [
        Finding(
            "SASE §5.3, PAIS",
            "the plan with the test in selection could not complete: hundreds of millions of intermediate results",
            f"it completes: {created:,} intermediate sequences for {by_values[100].events:,} events; PAIS is faster by "
            f"{gains}",
            all(each.factor("PAIS", "AIS") > 10 for each in by_values.values()),
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

    def in_scan(events: Events, whole: bool) -> Ints:
        return multi_partitioned(events, selected, (events.columns[0], events.columns[1]), whole=whole)

    sides = {
        "Selection": on_stacks(selected),
        "Multi-PAIS": baseline(partial(in_scan, whole=True), LENGTH),
        "to the first": baseline(partial(in_scan, whole=False), LENGTH),
        "Dynamic": on_stacks(filtered),
        "Kleene": kleene(sequence(window=window, keys=("attr1", "attr2")).text),
    }
    findings = []
    overhead: dict[int, float] = {}
    for second in (20, 5):
        by_values: dict[int, Comparison] = {}
        work: dict[str, Sequence[float]] = {}
        for values in (10, 50, 100, 500, 1_000, 10_000):
            make = partial(with_values, values=values, second=second)
            by_values[values] = compare(make, sides, effort.events(window), effort)
            events = sequence_events(make(effort.events(window)), LENGTH)
            counts = (
                partitioned(events, selected, events.columns[0]),
                in_scan(events, whole=True),
                partitioned(events, filtered, events.columns[0]),
            )
            per = effort.events(window) / 10_000
            work[f"{values:,}"] = [
                *(each[CREATED] / per for each in counts),
                *(each[SEEN] / per for each in counts),
                counts[1][INTERSECTED] / per,
            ]
        _show(f"SASE Figure 10(a): V1 grows, V2 = {second}", by_values)
        names = ("Selection", "Multi-PAIS", "Dynamic")
        columns = [*(f"{name} made" for name in names), *(f"{name} seen" for name in names), "intersected"]
        note = "sequences created (Figure 10(b)), instances looked at, steps of intersections"
        show(f"per 10,000 events, V2 = {second}", columns, work, note)
        overhead[second] = by_values[10].factor("Dynamic", "Multi-PAIS")
        if second == 20:
            findings += _dynamic_wins(by_values, work)
    findings.append(
        Finding(
            "SASE Fig. 10, V2 = 5",
            "with a less selective second test the overhead of Multi-PAIS is magnified",
            f"at V1 = 10 Dynamic is {overhead[5]:.1f} x Multi-PAIS with V2 = 5, {overhead[20]:.1f} x with V2 = 20",
            overhead[5] > overhead[20],
        )
    )
    return findings


def _dynamic_wins(by_values: dict[int, Comparison], work: dict[str, Sequence[float]]) -> list[Finding]:
    small = {values: each for values, each in by_values.items() if values <= 500}
    best = all(each.factor("Dynamic", other) > 0.95 for each in small.values() for other in ("Selection", "Multi-PAIS"))
    gains = ", ".join(
        f"V1={values:,} {each.factor('Dynamic', 'Selection'):.1f} x Selection, "
        f"{each.factor('Dynamic', 'Multi-PAIS'):.1f} x Multi-PAIS"
        for values, each in by_values.items()
    )
    worse = {values: each.factor("Selection", "Multi-PAIS") for values, each in by_values.items()}
    made = {values: work[f"{values:,}"][:3] for values in (10, 100)}
    ordered = all(selection >= multi >= dynamic for selection, multi, dynamic in made.values())
    listed = "; ".join(
        f"V1={values} Selection {one:,.0f}, Multi-PAIS {two:,.0f}, Dynamic {three:,.0f}"
        for values, (one, two, three) in made.items()
    )
    slower = [values for values, factor in worse.items() if factor > 1]
    saved = work["10"][3] - work["10"][4], work["10"][6]
    reason = "" if len(slower) == len(worse) else (
        f"at V1 = 10 the filter saves {saved[0]:,.0f} looks at instances and costs {saved[1]:,.0f} steps per 10,000 "
        "events; both are pointer walks of the same price here, where the paper intersects Java collections"
    )
    return [
        Finding(
            "SASE Fig. 10(a)",
            "Dynamic Filtering wins by a wide margin for V1 ≤ 500, then all three are alike",
            gains,
            best and by_values[10].factor("Dynamic", "Selection") > 2 and by_values[10_000].factor("Dynamic", "Selection") < 1.5,
        ),
        Finding(
            "SASE Fig. 10(a), Multi-PAIS",
            "Multi-PAIS is even slower than Selection for small V1",
            "Selection over Multi-PAIS: " + ", ".join(f"V1={values:,} {factor:.2f} x" for values, factor in worse.items()),
            all(worse[values] > 1 for values in (10, 50, 100)),
            reason,
        ),
        Finding(
            "SASE Fig. 10(b)",
            "Selection creates most sequences, Multi-PAIS somewhat fewer, Dynamic Filtering far fewer",
            f"sequences created per 10,000 events: {listed}",
            ordered,
        ),
    ]


# Experiment 4, windows, negation ---------------------------------------------------------------------------------


def more_predicates(effort: Effort) -> list[Finding]:
    """Experiment 4: a simple predicate in scan or in selection; then a comparison of two events in selection."""
    window = WINDOW // effort.divisor
    simple = predicates((0, 0, 1, HOLDS))
    other = predicates((0, 2, 1, LESS))
    pushed, selected = "v1.attr2 > 0", sequence(window=window).text

    def scanned(events: Events, after: Predicates) -> Ints:
        """Events that fail the simple predicate are no instances."""
        place = np.where((events.place == 0) & (events.columns[1] == 0), -1, events.place)
        return partitioned(events._replace(place=place), rule(after=after, window=window), events.columns[0])

    def flagged(events: int) -> pa.Table:
        """attr2 is not 0 for one in five."""
        table = sase(events, 100)
        values = table.column("attr2").to_numpy()
        return table.set_column(3, "attr2", pa.array(np.where(values < 4, values + 1, 0)))

    text = selected.replace("WHERE [attr1]", f"WHERE [attr1] AND {pushed}")
    sides = {
        "selection": on_stacks(rule(after=simple, window=window)),
        "scan": baseline(partial(scanned, after=NOTHING), LENGTH),
        "Kleene off": kleene(text, without("push_simple_predicates")),
        "Kleene": kleene(text),
    }
    simple_tests = compare(flagged, sides, effort.events(window), effort)
    _show("SASE Experiment 4: v1.attr2 > 0 (one in five), V1 = 100", {100: simple_tests})
    compared = text.replace(pushed, f"{pushed} AND v1.attr2 < v3.attr2")
    with_other = compare(
        flagged,
        {
            "selection": baseline(partial(scanned, after=other), LENGTH),
            "Kleene off": kleene(compared, without("push_to_construction")),
            "Kleene": kleene(compared),
        },
        effort.events(window),
        effort,
    )
    _show("the same with v1.attr2 < v3.attr2, in selection", {100: with_other})
    gain = simple_tests.factor("scan", "selection")
    cost = simple_tests.rate("scan") / with_other.rate("selection") - 1
    own = simple_tests.factor("Kleene", "Kleene off")
    return [
        Finding(
            "SASE Expt 4, simple",
            "pushing simple predicates down always helps",
            f"in scan {gain:.1f} x the throughput of selection; Kleene {own:.1f} x",
            gain > 1.05 and own > 1.0,
        ),
        Finding(
            "SASE Expt 4, other",
            "then other parameterised predicates in selection cost little",
            f"throughput with one more comparison in selection: {-cost / (1 + cost):+.0%}",
            cost < 0.2,
        ),
    ]


def windows(effort: Effort) -> list[Finding]:
    """§5.3, other experiments: the window tested in selection, in scan, in construction, in both (§4.3)."""
    window = WINDOW // effort.divisor
    text = sequence(window=window).text
    places = {"selection": (False, False), "scan": (True, False), "construction": (False, True), "both": (True, True)}
    sides: dict[str, Side] = {}
    for name, (scan, back) in places.items():
        sides[name] = on_stacks(rule(window=window, scan=scan, back=back))
        sides[f"Kleene, {name}"] = kleene(text, plan=_placing(scan, back))
    by_values: dict[int, Comparison] = {}
    work: dict[str, Sequence[float]] = {}
    for values in (100, 1_000, 10_000):
        by_values[values] = compare(partial(sase, values=values), sides, 10 * window, effort)
        events = sequence_events(sase(10 * window, values), LENGTH)
        counts = [partitioned(events, rule(window=window, scan=s, back=b), events.columns[0]) for s, b in places.values()]
        work[f"{values:,}"] = [float(each[column]) for column in (CREATED, 0) for each in counts]
    _show("SASE §5.3: where the window is tested", by_values)
    columns = [f"{what} {name}" for what in ("made", "pushed") for name in places]
    show(f"sequences created and events put on stacks, {10 * window:,} events", columns, work)
    heavy = by_values[100]
    made = work["100"][:4]
    return [
        Finding(
            "SASE §5.3, windows",
            "pushing windows to both scan and construction is effective in reducing intermediate results",
            f"V1 = 100: {made[0]:,.0f} sequences with the window in selection, {made[1]:,.0f} in scan, {made[2]:,.0f} in "
            f"construction, {made[3]:,.0f} in both; both {heavy.factor('both', 'selection'):.1f} x selection, "
            f"{heavy.factor('both', 'scan'):.1f} x scan, {heavy.factor('both', 'construction'):.2f} x construction; "
            f"V1 = 10,000: scan pushes {work['10,000'][5] / work['10,000'][4]:.0%} of the events, "
            f"{by_values[10_000].factor('scan', 'selection'):.2f} x; Kleene, both {heavy.factor('Kleene, both', 'Kleene, selection'):.1f} x",
            made[3] <= min(made[:3]) < made[0] and heavy.factor("both", "selection") > 1.2,
        )
    ]


def _placing(scan: bool, back: bool) -> Callable[[Plan], Plan]:
    def placed(plan: Plan) -> Plan:
        (line,) = plan.alternatives
        assert isinstance(line, SequencePlan)
        return replace(plan, alternatives=(replace(line, window_in_scan=scan, window_in_construction=back),))

    return placed


def negations(effort: Effort) -> list[Finding]:
    """§3.3 and §5.3: no E4 with the same attr1 between E1 and E2, found by the index or by a walk from the newest."""
    window = WINDOW // effort.divisor
    plain = rule(window=window)

    def negated(events: Events, how: int) -> Ints:
        query = plain._replace(negation=negation(events, how, 0, 0, max(1, window // 100)))
        return partitioned(events, query, events.columns[0])

    text = sequence(window=window).text
    sides = {
        "no index": baseline(partial(negated, how=SCANNED), LENGTH, "E4"),
        "index": baseline(partial(negated, how=INDEXED), LENGTH, "E4"),
        "Kleene": kleene(text.replace("E2 v2", "!(E4 n), E2 v2")),
    }
    unnegated = {"PAIS": on_stacks(plain), "Kleene": kleene(text)}
    by_values: dict[int, Comparison] = {}
    costs: dict[int, dict[str, float]] = {}
    for values in (100, 1_000, 10_000):
        make = partial(sase, values=values)
        by_values[values] = compare(make, sides, effort.events(window), effort)
        free = compare(make, unnegated, effort.events(window), effort)
        costs[values] = {
            "no index": free.rate("PAIS") / by_values[values].rate("no index"),
            "index": free.rate("PAIS") / by_values[values].rate("index"),
            "Kleene": free.rate("Kleene") / by_values[values].rate("Kleene"),
        }
    _show("SASE §5.3: SEQ(E1, !E4, E2, E3)", by_values)
    show("times as long as without the negation", list(sides), {f"{v:,}": list(c.values()) for v, c in costs.items()})
    events = sequence_events(sase(effort.events(window), 100), LENGTH, "E4")
    probed = [negated(events, how)[PROBED] for how in (SCANNED, INDEXED)]
    listed = "; ".join(
        f"V1={values:,} " + ", ".join(f"{name} {cost:.2f} x" for name, cost in each.items()) for values, each in costs.items()
    )
    return [
        Finding(
            "SASE §5.3, negation",
            "the cost of negation is modest while intermediate results are few, and more significant otherwise",
            f"time with the negation against without it: {listed}",
            all(costs[100][name] > costs[10_000][name] for name in ("no index", "index")) and costs[10_000]["index"] < 1.5,
        ),
        Finding(
            "SASE §3.3, index",
            "partitioned indexing is used for performance reasons",
            f"at V1 = 100 {by_values[100].factor('index', 'no index'):.1f} x without it: {probed[1]:,} negated events "
            f"looked at for {probed[0]:,}; Kleene, which looks them up by key, {by_values[100].factor('Kleene', 'no index'):.1f} x",
            by_values[100].factor("index", "no index") > 1.1,
        ),
    ]


def _show(title: str, comparisons: dict[int, Comparison]) -> None:
    first = next(iter(comparisons.values()))
    rows = {f"{value:,}": [*each.rates(), each.events, each.matches] for value, each in comparisons.items()}
    show(title, [*first.timings, "events", "matches"], rows, MILLIONS)
