"""ZStream §6: Figures 8 to 17 and Tables 3 to 5, as `make bench-trees` measures them, beside what the paper says.

The paper's NFA is that of SASE, which constructs from stacks: `stacks` here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from unittest.mock import patch

import numpy as np

from bench.measure import Verdict, alternate
from bench.papers.report import Finding
from bench.papers.sides import Effort
from bench.running import bound
from bench.tree_figures import accesses, negated, rates, selectivities, shapes
from bench.tree_memory import TABLE_3, WEB_LOG, Peak, memory
from bench.tree_phases import phases
from bench.tree_plans import PAPERS_FOUR, THREE, batches, lines, replayed, trees
from bench.tree_points import FULL, QUICK, Point, Size
from bench.tree_workloads import ACCESSES, QUERY_4, QUERY_5, RATES, RECORDS, Stocks, web_log

LEFT, RIGHT, NFA = "left-deep", "right-deep", "stacks"
NSEQ, NEG = "NSEQ", "NEG on top"
# So few read all projects and courses, so that these make many pairs and few matches.
CRAWLERS = 2


def _size(effort: Effort) -> Size:
    return QUICK if effort.divisor > 1 else FULL


def _over(point: Point, fast: str, slow: str) -> float:
    return point.rates[fast] / point.rates[slow]


def _alike(points: Sequence[Point]) -> tuple[int, int]:
    """Of the pairs of plans that the clock tells apart, how many the cost model ranks alike."""
    pairs = [same for point in points for _, _, same in point.pairs]
    return sum(pairs), len(pairs)


def _model(figure: str, points: Sequence[Point]) -> Finding:
    same, all_pairs = _alike(points)
    return Finding(
        figure,
        "1 / estimated cost ranks the plans as their throughput does",
        f"the model ranks {same} of {all_pairs} pairs of plans that are over 10 % apart as the clock does",
        same >= 0.9 * all_pairs,
    )


def _listed(points: Sequence[Point], fast: str, slow: str) -> str:
    return ", ".join(f"{point.name.partition(', ')[2]} {_over(point, fast, slow):.2f} x" for point in points)


def _work(text: str, stream: Stocks, events: int = 2_000) -> dict[str, tuple[float, float]]:
    """By plan: combinations tried and records written per event."""
    table = stream.table(events)
    work = {}
    for name, way in trees(bound(table, text), THREE).items():
        engine = way.engine()
        for part, watermark in batches(table):
            engine.replay(part, watermark)
        (counts,) = engine.measured
        assert counts is not None
        tried, written = (sum(each[column] for each in counts.nodes) for column in (0, 1))
        work[name] = (tried / events, written / events)
    return work


def _with_programs(stream: Stocks, events: int = 2_000) -> tuple[float, float]:
    """Query 4, stacks over the right-deep plan: as they are, and with joins whose comparisons are programs as theirs.

    A join compares two attributes by itself; stacks run each condition as a program of the expression machine.
    """
    table = stream.table(events)
    query = bound(table, QUERY_4)
    parts = list(batches(table))
    ways = {RIGHT: trees(query, THREE)[RIGHT], NFA: lines(query)[NFA]}
    works = {name: partial(replayed, way, parts) for name, way in ways.items()}
    own = alternate(works, clock=time.process_time)
    with patch("kleene.engine.executors.trees.pair_tests._quick", lambda *_: None):
        alike = alternate(works, clock=time.process_time)
    return own[RIGHT].median / own[NFA].median, alike[RIGHT].median / alike[NFA].median


def query_4(effort: Effort) -> list[Finding]:
    points = selectivities(_size(effort))
    gains = [_over(point, LEFT, RIGHT) for point in points]
    nfa = [_over(point, NFA, RIGHT) for point in points]
    ends = [Stocks((1, 1, 1), {"Sun": share}) for share in (1.0, 1 / 32)]
    first, last = (_work(QUERY_4, stream) for stream in ends)
    alike = [_with_programs(stream) for stream in ends]
    return [
        Finding(
            "ZStream Fig. 8",
            "the left-deep plan gains on the right-deep one as the predicate gets more selective, up to 5 x at 1/32",
            f"left-deep over right-deep: {_listed(points, LEFT, RIGHT)}",
            gains[-1] > 1.5 and gains[-1] > gains[0],
        ),
        Finding(
            "ZStream Fig. 8, NFA",
            "the NFA performs like the right-deep plan",
            f"stacks over right-deep: {_listed(points, NFA, RIGHT)}",
            all(0.5 < each < 2 for each in nfa),
            f"combinations tried per event, 1/1 and 1/32: right-deep {first[RIGHT][0]:,.0f} and {last[RIGHT][0]:,.0f}, "
            f"left-deep {first[LEFT][0]:,.0f} and {last[LEFT][0]:,.0f}; stacks try what the right-deep plan tries. "
            "A join compares two attributes by itself, stacks run a program for it: with joins that run it as well, "
            f"stacks over right-deep are {alike[0][1]:.2f} and {alike[1][1]:.2f} x, otherwise {alike[0][0]:.2f} and "
            f"{alike[1][0]:.2f} x on the same events",
        ),
        _model("ZStream Fig. 9", points),
    ]


def _told_by_work(
    work: Sequence[Mapping[str, tuple[float, float]]], points: Sequence[Point]
) -> tuple[tuple[float, float], tuple[float, float]]:
    """What a combination and a record cost, in ns, by least squares; and the gaps between the plans that follow."""
    names = (LEFT, RIGHT)
    counts = np.array([each[name] for each in work for name in names])
    spent = np.array([1e6 / point.rates[name] for point in points for name in names])
    # Relative errors, so that the slower setting does not decide alone.
    solved, *_ = np.linalg.lstsq(counts / spent[:, None], np.ones(len(spent)), rcond=None)
    left, right, left_frequent, right_frequent = counts @ solved
    return (float(solved[0]), float(solved[1])), (float(right / left), float(left_frequent / right_frequent))


def query_5(effort: Effort) -> list[Finding]:
    points = rates(_size(effort))
    frequent, rare = points[0], points[-1]
    gaps = _over(rare, LEFT, RIGHT), _over(frequent, RIGHT, LEFT)
    work = [
        _work(QUERY_5, Stocks(each), min(point.events, 20_000))
        for each, point in ((RATES[-1], rare), (RATES[0], frequent))
    ]
    costs, told = _told_by_work(work, (rare, frequent))
    tried = [
        "; ".join(f"{name} {tries:.0f} and {writes:.0f}" for name, (tries, writes) in each.items()) for each in work
    ]
    return [
        Finding(
            "ZStream Fig. 10",
            "frequent IBM: right-deep best; rare: left-deep best; at 1:1:1 all alike",
            f"left-deep over right-deep: {_listed(points, LEFT, RIGHT)}",
            min(gaps) > 1.05,
        ),
        Finding(
            "ZStream Fig. 10, gap",
            "the gap between the plans is greater where IBM is rare",
            f"rare: left-deep {gaps[0]:.2f} x right-deep; frequent: right-deep {gaps[1]:.2f} x left-deep",
            gaps[0] > gaps[1],
            f"combinations tried and records written per event, rare IBM: {tried[0]}; frequent: {tried[1]}. Here a "
            "left-deep plan tries two combinations for each record, a right-deep one tries one: left-deep gains less. "
            f"With {costs[0]:.1f} ns for a combination and {costs[1]:.1f} for a record, which fit these four best, the "
            f"gaps are {told[0]:.2f} and {told[1]:.2f} x; if records alone cost anything they would be "
            f"{work[0][RIGHT][1] / work[0][LEFT][1]:.2f} and {work[1][LEFT][1] / work[1][RIGHT][1]:.2f} x",
        ),
        _model("ZStream Fig. 11", points),
    ]


def query_6(effort: Effort) -> list[Finding]:
    points = shapes(_size(effort))
    rare, _, second = points
    order = [
        ", ".join(sorted(PAPERS_FOUR, key=lambda name: -point.rates[name])) + f"; NFA {point.rates[NFA]:.0f}"
        for point in points
    ]
    best = [max(PAPERS_FOUR, key=lambda name: point.rates[name]) for point in points]
    worst = [min(PAPERS_FOUR, key=lambda name: point.rates[name]) for point in points]
    shown = ["; ".join(f"{name} {point.rates[name]:.0f}" for name in (*PAPERS_FOUR, NFA)) for point in points]
    return [
        Finding(
            "ZStream Fig. 12, rate 1:100:100:100",
            "left-deep best, bushy well too; right-deep, inner and NFA poor",
            f"thousand events/s: {shown[0]}",
            best[0] in (LEFT, "bushy") and rare.rates[LEFT] > max(rare.rates[RIGHT], rare.rates["inner"]),
            f"fastest first: {order[0]}",
        ),
        Finding(
            "ZStream Fig. 12, sel1 = 1/50",
            "inner best, almost twice the others; bushy extremely poor",
            f"thousand events/s: {shown[1]}",
            best[1] == "inner" and worst[1] == "bushy",
            f"fastest first: {order[1]}",
        ),
        Finding(
            "ZStream Fig. 12, sel2 = 1/50",
            "good for right-deep and NFA; left-deep poor",
            f"thousand events/s: {shown[2]}",
            second.rates[RIGHT] > 1.2 * second.rates[LEFT] and second.rates[NFA] > second.rates[LEFT],
            f"fastest first: {order[2]}",
        ),
        _model("ZStream Fig. 13", points),
    ]


def adaptation(effort: Effort) -> list[Finding]:
    verdicts: list[Verdict] = phases(_size(effort))
    return [
        Finding(
            "ZStream Fig. 14",
            "the adaptive plan is nearly as good as the best fixed plan in each of the three phases",
            "; ".join(verdict.text.partition("; goal")[0] for verdict in verdicts),
            all(verdict.met for verdict in verdicts),
            "at most 10 % behind counts as nearly as good; beside the best fixed plan, "
            + "; ".join(verdict.profile for verdict in verdicts),
        )
    ]


def query_7(effort: Effort) -> list[Finding]:
    points = negated(_size(effort))
    oracle = [point for point in points if point.name.endswith(":1:1") is False and ", 1:1:" in point.name]
    oracle = [points[0], *(point for point in oracle if point is not points[0])]
    sun = [points[0], *(point for point in points if point not in oracle)]
    findings = []
    for figure, who, listed in (("ZStream Fig. 15", "Oracle", oracle), ("ZStream Fig. 16", "Sun", sun)):
        grows = [listed[-1].rates[name] / listed[0].rates[name] for name in (NSEQ, NEG)]
        findings.append(
            Finding(
                figure,
                f"NSEQ always outperforms NEG on top; as {who} becomes frequent, NEG gains faster",
                f"NSEQ over NEG: {_listed(listed, NSEQ, NEG)}; from {listed[0].name[4:]} to {listed[-1].name[4:]} NSEQ "
                f"{grows[0]:.2f} x, NEG {grows[1]:.2f} x",
                all(_over(point, NSEQ, NEG) > 0.95 for point in listed) and grows[1] > grows[0],
            )
        )
    return findings


def web(effort: Effort) -> list[Finding]:
    size = _size(effort)
    spread = accesses(size)
    few = accesses(size, crawlers=CRAWLERS)
    kinds = web_log(size.records).column("type").combine_chunks().dictionary_decode().value_counts()
    counts = {each["values"].as_py(): each["counts"].as_py() for each in kinds}
    share = size.records / RECORDS
    return [
        Finding(
            "ZStream Fig. 17",
            "left-deep is much faster than right-deep, NFA a little slower than right-deep",
            f"left-deep over right-deep {few[LEFT] / few[RIGHT]:.2f} x where {CRAWLERS} crawlers read projects and "
            f"courses, {spread[LEFT] / spread[RIGHT]:.2f} x where visitors do; NFA over right-deep "
            f"{few[NFA] / few[RIGHT]:.2f} and {spread[NFA] / spread[RIGHT]:.2f} x",
            few[LEFT] > 1.1 * few[RIGHT],
            f"{sum(counts[name] for name in ACCESSES):,} of {size.records:,} records matter, and joins look up "
            "the address: where visitors have few accesses each, reading the log takes all the time",
        ),
        Finding(
            "ZStream Table 4",
            "6,775 publications, 11,610 projects, 16,083 courses of 1.5 million records",
            ", ".join(f"{name} {counts[name]:,}" for name in ACCESSES) + f" of {size.records:,}, generated so",
            all(counts[name] == round(number * share) for name, number in ACCESSES.items()),
        ),
    ]


def peak_memory(effort: Effort) -> list[Finding]:
    """Of memory that is in use: what an allocator keeps of it is its own, and is printed beside."""
    peaks = memory(_size(effort))
    three, five = "10.1 to 10.7 MB for three plans", "6.5 to 7.6 MB for five plans"
    return [_memory("ZStream Table 3", five, TABLE_3, peaks), _memory("ZStream Table 5", three, (WEB_LOG,), peaks)]


def _memory(figure: str, paper: str, streams: Sequence[str], peaks: Mapping[str, Mapping[str, Peak]]) -> Finding:
    def listed(value: Callable[[Peak], float]) -> str:
        return "; ".join(
            f"{stream}: " + ", ".join(f"{name} {value(peak):.1f}" for name, peak in peaks[stream].items())
            for stream in streams
        )

    # The paper has no automaton beside its NFA, which is our stacks.
    compared = [[peak for name, peak in peaks[stream].items() if name != "automaton"] for stream in streams]
    held = max(_spread([peak.held for peak in each]) for each in compared)
    events = ", ".join(f"{max(peak.events for peak in each):.1f}" for each in compared)
    return Finding(
        figure,
        f"peak memory is nearly the same for all plans ({paper})",
        f"MB in use at the peak, {listed(lambda peak: peak.used)}",
        all(_spread([peak.used for peak in each]) < 1.5 for each in compared),
        f"MB held between two batches, {listed(lambda peak: peak.held)}: at most {held:.1f} x apart, {events} MB of it "
        "events, which all plans hold; the rest of a peak is what one batch makes and drops, "
        f"{listed(lambda peak: peak.in_a_round)}. The process with all that its allocator keeps for later, "
        f"{listed(lambda peak: peak.process)}",
    )


def _spread(values: Sequence[float]) -> float:
    return max(values) / max(min(values), 1e-3)
