"""Many queries at once against the goal G8 (`make bench-queries`): Cayuga's technical benchmark (CESAR §5.1), W5.

Figures 16(a), (b), (c) and 17 of the paper, then loading, adding, memory, queries that an event does not concern, and
many hits an event, and patterns; counts are compared with those of single queries that run by themselves. Peers: the
naive extension of a pub/sub engine (the same kernels and the same index without merging and without rooms), and Esper.

The naive extension is measured twice. In CESAR's model (§3, Algorithm 1) only an event ends an instance: one that is
past its duration does not satisfy `DUR <= t and ATT = CONST` any more, so that it stays where it is for ever, and an
engine without rooms looks at it with every event. That is what the paper's "No MQO" line runs, and the verdict compares
with it. That time frees what can be served no longer is part of our rooms; the naive extension with deadlines, which
has far fewer instances to look at, is printed beside it. Without deadlines instances grow with the stream: over 20,000
events as many wait on average as the paper has active nodes (6,000 to 16,000); over the 100,000 events of all other
lines, more. Both are printed, each beside the shared line over the same events.

Rates over streams are by the time of the processor, all threads together: what one core does, also where others use the
machine. The rate by the clock stands beside it.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

import kleene
from bench.measure import CountsDiffer, Verdict, header
from bench.pattern_sets import patterns
from bench.query_workload import DURATION, EVENTS, TEMPLATES, Workload, events, queries, text
from kleene.engine.query_sets.shared_queries import SharedQueries
from kleene.engine.query_sets.shared_stream import SharedStream
from kleene.engine.state.memory import give_back
from kleene.frames.arrow import schema_on
from kleene.kernels import shared_machine as kernel
from kleene.query_set import QuerySet

SIZES = (10_000, 100_000, 200_000, 400_000)
REPEATS = 3
PAPER_NODES = (48, 71, 96)
# After so many events of W5 as much waits in the naive extension as in the paper.
NAIVE_EVENTS = 20_000


@dataclass(frozen=True)
class Run:
    """One set over one stream."""

    rate: float
    clock_rate: float
    matches: int
    levels: tuple[int, ...]
    counters: np.ndarray
    events: int
    waiting: int

    def line(self) -> str:
        looked, fired, opened, touched, _, made = self.counters[: kernel.MADE + 1] / self.events
        levels = " / ".join(f"{number:,}" for number in self.levels)
        return (
            f"{self.rate / 1e3:8.0f} k events/s ({self.clock_rate / 1e3:.0f} by the clock), {self.matches:,} matches;"
            f" nodes {levels}; an event: {looked:.1f} tests, {fired:.2f} edges, {opened:.1f} rooms, {touched:.2f}"
            f" instances touched, {made:.2f} made; {self.waiting:,} wait at the end"
        )


def loaded(template: str, size: int, workload: Workload, **switches: bool) -> QuerySet:
    """A set of so many queries of a template; switches of `SharedQueries` turn off what makes it fast."""
    columns = events(1, workload).schema
    rules = QuerySet(columns)
    rules._queries.shared = SharedQueries(columns, schema_on(columns, kleene.Schema()), **switches)
    for query, table in queries(template, size, workload):
        refused = rules.add_many(query, table).refused
        assert not refused.num_rows, refused
    return rules


def measured(rules: QuerySet, stream: pa.Table, repeats: int = REPEATS) -> Run:
    """The median rate over a stream, after a warm-up."""
    seconds, by_clock = [], []
    for number in range(repeats + 1):
        began, began_by_clock = time.process_time(), time.perf_counter()
        shared = SharedStream(rules._shared, lives=False)
        found, _, _ = shared.finish(stream)
        if number or repeats == 0:
            seconds.append(time.process_time() - began)
            by_clock.append(time.perf_counter() - began_by_clock)
    matches, size = sum(len(each.pairs.queries) for each in found), stream.num_rows
    rate, clock_rate = (size / statistics.median(times) for times in (seconds, by_clock))
    nodes, run = tuple(rules._shared.nodes.levels), shared.run
    return Run(rate, clock_rate, matches, nodes, run.counters.copy(), size, run.size)


# Figures -------------------------------------------------------------------------------------------------------------


def figure_16a(sizes: tuple[int, ...]) -> list[Verdict]:
    print("\nFig. 16(a): queries")
    runs: dict[tuple[str, int], Run] = {}
    for template in TEMPLATES:
        for size in sizes:
            rules = loaded(template, size, Workload())
            runs[template, size] = measured(rules, events())
            memory = rules.nbytes / size
            print(f"  {template:20s} {size:>7,} {runs[template, size].line()}; {memory:.0f} bytes a query", flush=True)
            if template == "LinearStat" and size == 100_000:
                shown = " / ".join(f"{number / 1e3:.0f}" for number in runs[template, size].levels)
                print(
                    f"  nodes of 100,000 queries, thousands: {shown}; the paper's {' / '.join(map(str, PAPER_NODES))}"
                )
    verdicts = []
    for size, goal in ((200_000, 300), (400_000, 150)):
        if size in sizes:
            rates = {name: runs[name, size].rate / 1e3 for name in ("Filter", "NonDeterministic")}
            said = ", ".join(f"{name} {rate:.0f}" for name, rate in rates.items())
            met = min(rates.values()) >= goal
            verdicts.append(Verdict("G8", met, f"{said} k events/s with {size:,} queries (goal {goal})"))
    largest = max(sizes)
    stat, dyn = runs["LinearStat", largest].rate, runs["LinearDyn", largest].rate
    apart = abs(stat - dyn) / max(stat, dyn)
    verdicts.append(Verdict("G8", apart <= 0.2, f"LinearStat and LinearDyn are {apart:.0%} apart (goal 20 %)"))
    return verdicts


def figure_16bc(size: int) -> None:
    print(
        f"\nFig. 16(b): zipf1, Filter, {size:,} queries (the paper: level 1 has 101 thousand nodes at 0.8, 36 at 1.4)"
    )
    for law in (0.8, 1.0, 1.2, 1.4):
        run = measured(loaded("Filter", size, Workload(zipf=(law, 1.0, 0.8))), events())
        print(f"  {law:.1f} {run.line()}", flush=True)
    print(f"\nFig. 16(c): selectivity of ranges, Filter, {size:,} queries")
    for share in (0.5, 0.6, 0.7, 0.8, 0.9):
        run = measured(loaded("Filter", size, Workload(selectivity=share)), events())
        print(f"  {share:.1f} {run.line()}", flush=True)


def figure_17(sizes: tuple[int, ...]) -> list[Verdict]:
    """With t of 20 events, as in the paper; and of a thousand, where more waits although time frees instances."""
    largest = max(sizes)
    beside = {(size, unit): _with_deadlines(size, Workload(unit=unit)) for unit in (50, 1) for size in sizes}
    for size in sizes:
        few = _without_deadlines(size, events(NAIVE_EVENTS))
    whole = _without_deadlines(largest, events())
    said = f"shared {whole:.0f} x the naive extension with {largest:,} queries over {EVENTS:,} events (goal 100)"
    others = f"{few:.0f} x over {NAIVE_EVENTS:,}, {beside[largest, 1]:.1f} x where time frees the naive one's instances"
    return [Verdict("G8", whole >= 100, f"{said}; {others}")]


def _with_deadlines(size: int, workload: Workload) -> float:
    """How many times faster the shared queries are than the naive extension where time frees instances."""
    ticks = DURATION * workload.unit
    print(f"\nFig. 17: Filter with t = {ticks} ticks; naive looks at every instance, and time frees them")
    lines = {
        "all": measured(loaded("Filter", size, workload), events()),
        "no merging": measured(loaded("Filter", size, workload, merges=False), events()),
        "naive": measured(loaded("Filter", size, workload, merges=False, rooms=False), events(), repeats=1),
    }
    return _compared(size, lines)


def _without_deadlines(size: int, stream: pa.Table) -> float:
    """The same where nothing but an event ends an instance of the naive extension."""
    print(f"\nFig. 17: the naive extension as in Algorithm 1, over {stream.num_rows:,} events")
    naive = loaded("Filter", size, Workload(), merges=False, rooms=False, deadlines=False)
    lines = {
        "all": measured(loaded("Filter", size, Workload()), stream),
        "naive": measured(naive, stream, repeats=0),
    }
    return _compared(size, lines)


def _compared(size: int, lines: dict[str, Run]) -> float:
    """How many times faster the first line is than the last; all have the same matches."""
    if len({run.matches for run in lines.values()}) > 1:
        raise CountsDiffer.between({name: run.matches for name, run in lines.items()})
    for name, run in lines.items():
        print(f"  {size:>7,} {name:10s} {run.line()}", flush=True)
    return lines["all"].rate / lines["naive"].rate


# Counts --------------------------------------------------------------------------------------------------------------


def dense(size: int, sampled: int) -> None:
    """Eight values: many matches, whose counts are those of queries that run by themselves."""
    workload = Workload(values=8)
    stream = events(EVENTS, workload)
    rules = loaded("Filter", size, workload)
    counted = rules.match(stream, results="counts").counts
    total = sum(counted.column("matches").to_pylist())
    by_name = dict(zip(counted.column("query").to_pylist(), counted.column("matches").to_pylist(), strict=True))
    rng = np.random.default_rng(11)
    for query, table in queries("Filter", size, workload):
        for row in table.take(pa.array(rng.integers(0, table.num_rows, sampled // 4))).to_pylist():
            name = row.pop("name")
            alone = kleene.match(stream, kleene.query(query, name=name, params=row)).num_rows
            if alone != by_name.get(name, 0):
                raise CountsDiffer.between({f"{name} in the set": by_name.get(name, 0), "by itself": alone})
    print(f"\ndense (8 values): {size:,} queries have {total:,} matches; {sampled} of them run alone have as many each")


# Loading -------------------------------------------------------------------------------------------------------------


def resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def loading(size: int) -> list[Verdict]:
    """Runs in a process of its own, whose growth is that of the set."""
    columns = events(1).schema
    rules = QuerySet(columns)
    tables = queries("Filter", size)
    rules.add_many(tables[0][0], tables[0][1].slice(0, 2), names=["warm", "up"])
    gc.collect()
    give_back()
    before, began = resident(), time.perf_counter()
    for query, table in tables:
        rules.add_many(query, table)
    seconds = time.perf_counter() - began
    gc.collect()
    grown = (resident() - before) / size
    print(
        f"  {size:,} rows of tables in {seconds:.1f} s; {grown:.0f} bytes a query (growth of the process),"
        f" {rules.nbytes / size:.0f} in its arrays"
    )
    verdicts = [
        Verdict("G8", seconds <= 15, f"{size:,} rows of a table load in {seconds:.1f} s (goal 15)"),
        Verdict("G8", grown <= 400, f"{grown:.0f} bytes a query (goal 400)"),
    ]
    few = QuerySet(columns)
    few.add_many(tables[0][0], tables[0][1].slice(0, 1_000))
    medians = {}
    for name, known in (("1 k", few), (f"{size // 1000} k", rules)):
        medians[name] = latencies(known, tables[0][0], tables[0][1])
        print(f"  add of a known shape to {name}: median {medians[name][0]:.0f} µs, 99.9 % {medians[name][1]:.0f} µs")
    (small, _), (large, late) = medians.values()
    ok = large <= 200 and late <= 20_000 and large <= 2 * small
    verdicts.append(
        Verdict("G8", ok, f"add: median {large:.0f} µs, 99.9 % {late / 1e3:.1f} ms, {large / small:.1f} x that at 1 k")
    )
    began = time.perf_counter()
    for number in range(20):
        order = "<>"[number % 2]
        rules.add(f"σ{{c1 > 0.5 and c2 < {number}.5 + c3 and d1 = d{number % 4 + 1} and c4 {order} 0.1}}(S x{number})")
    new = (time.perf_counter() - began) / 20
    verdicts.append(Verdict("G8", new <= 0.02, f"add of a new shape: {new * 1e3:.1f} ms (goal 20)"))
    names = rules.names
    loaded_bytes = resident()
    while names:
        rules.remove(names.pop())
    del names
    gc.collect()
    give_back()
    left, first = resident() / 2**20, before / 2**20
    print(f"  {loaded_bytes / 2**20:.0f} MB with all queries, {left:.0f} MB after removing all, {first:.0f} before")
    return verdicts


def latencies(rules: QuerySet, query: str, table: pa.Table) -> tuple[float, float]:
    """µs of adding one query of a known shape, with what is put off: the median, and what 99.9 % take at most."""
    rows = table.slice(0, 5_000).to_pylist()
    seconds = []
    for number, row in enumerate(rows):
        del row["name"]
        began = time.perf_counter()
        rules.add(query, name=f"added {number}", params=row)
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds) * 1e6, float(np.quantile(seconds, 0.999)) * 1e6


def texts(size: int) -> list[Verdict]:
    """Texts of five shapes, each parsed once."""
    columns = events(1).schema
    written = []
    for template in TEMPLATES:
        shape = text(template, 0)
        for row in queries(template, size // 5)[0][1].to_pylist():
            whole = shape
            for name, value in row.items():
                if name != "name":
                    whole = whole.replace(f":{name}", repr(value))
            written.append(whole)
    rules = QuerySet(columns)
    began = time.perf_counter()
    added = rules.add_many(written, names=[f"t{number}" for number in range(len(written))])
    seconds = (time.perf_counter() - began) * size / len(written)
    print(f"  {added.number:,} texts of five shapes; {seconds:.1f} s for {size:,}")
    return [Verdict("G8", seconds <= 60, f"{size:,} texts of five shapes load in {seconds:.1f} s (goal 60)")]


# Hits ----------------------------------------------------------------------------------------------------------------


def unconcerned(size: int) -> list[Verdict]:
    """Queries that an event does not concern: ten of them, and very many."""
    stream = events()
    rates = {}
    for number in (10, size):
        rules = QuerySet(stream.schema)
        table = pa.table({"d": np.arange(number) + 1_000, "c": np.random.default_rng(3).random(number)})
        rules.add_many("σ{d1 = :d and c1 > :c}(S a)", table)
        rates[number] = measured(rules, stream).rate
    ratio = rates[10] / rates[size]
    print(f"\nqueries that no event concerns: 10 {rates[10] / 1e3:.0f}, {size:,} {rates[size] / 1e3:.0f} k events/s")
    return [Verdict("G8", ratio < 2, f"10 → {size:,} queries that no event concerns cost {ratio:.2f} x (goal 2)")]


def hits(size: int) -> list[Verdict]:
    """Queries of one event, a hundred of which every event hits; results as pairs of a query and the rows behind it."""
    stream = events(50_000)
    rules = QuerySet(stream.schema)
    values = size // 100
    rng = np.random.default_rng(4)
    keys = pa.table({"d": np.arange(size) % values})
    # As many values as there are groups of a hundred: d1 and d2 together.
    table = pa.table(
        {
            "d": keys.column("d").to_numpy() % 100,
            "e": keys.column("d").to_numpy() // 100 % 100,
            "c": rng.random(size) * 0,
        }
    )
    rules.add_many("σ{d1 = :d and d2 = :e and c1 >= :c}(S a)", table)
    wanted = stream.filter(pa.compute.less(stream.column("d2"), min(values // 100, 100)))
    seconds, pairs = [], 0
    for _ in range(REPEATS + 1):
        began = time.perf_counter()
        found, _, _ = SharedStream(rules._shared, lives=False).finish(wanted)
        seconds.append(time.perf_counter() - began)
        pairs = sum(len(each.pairs.queries) for each in found)
    rate = pairs / statistics.median(seconds[1:]) / 1e6
    print(f"\n{size:,} queries of one event, {pairs / wanted.num_rows:.0f} hits an event: {rate:.1f} M result rows/s")
    return [
        Verdict(
            "G8", rate >= 5, f"{rate:.1f} M result rows/s with {pairs / wanted.num_rows:.0f} hits an event (goal 5)"
        )
    ]


# Peers ---------------------------------------------------------------------------------------------------------------


def peers() -> None:
    from bench import esper_peer

    stream = events()
    print("\nEsper, in a Java machine of its own, and Kleene on the same queries and events")
    for kind, template, size in (("single", "LinearStat", 10_000), ("filter", "Filter", 1_000)):
        drawn = queries(template, size)
        esper = esper_peer.run(kind, size, stream, drawn)
        rules = QuerySet(stream.schema)
        began = time.perf_counter()
        for query, table in drawn:
            rules.add_many(_first_step(query) if kind == "single" else query, table)
        seconds = time.perf_counter() - began
        ours = measured(rules, stream)
        print(
            f"  {kind}, {size:,} queries: Esper loads in {esper.load_seconds:.1f} s,"
            f" {esper.events_per_second / 1e3:.1f} k events/s, {esper.matches:,} matches, {esper.megabytes:.0f} MB;"
            f" Kleene loads in {seconds:.2f} s, {ours.clock_rate / 1e3:.0f} k events/s, {ours.matches:,} matches,"
            f" {rules.nbytes / 2**20:.1f} MB",
            flush=True,
        )


def _first_step(query: str) -> str:
    """The condition on the first event of a template, as a query of one event."""
    inner = query[query.rindex("σ{") :]
    return inner[: inner.index("(S S1)") + len("(S S1)")]


# -------------------------------------------------------------------------------------------------------------------


def in_a_process_of_its_own(part: str, quick: bool) -> list[Verdict]:
    """A part whose memory is measured."""
    command = [sys.executable, "-m", "bench.query_sets", "--parts", part, *(["--quick"] if quick else [])]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    verdicts = [line for line in lines if line.startswith("G8 ")]
    print("\nloading" if part == "loading" else f"\n{part}")
    print(*(line for line in lines if line.startswith("  ")), sep="\n", flush=True)
    return [Verdict("G8", " met: " in line, line.split(": ", 1)[1]) for line in verdicts]


def main() -> int:
    given = argparse.ArgumentParser(prog="python -m bench.query_sets", description=__doc__)
    usual = ["16a", "16bc", "17", "dense", "all-loading", "unconcerned", "hits", "patterns", "esper"]
    given.add_argument("--parts", nargs="*", default=usual)
    given.add_argument("--quick", action="store_true", help="a tenth of the queries: to see that it runs")
    arguments = given.parse_args()
    part = 10 if arguments.quick else 1
    works: dict[str, Callable[[], list[Verdict] | None]] = {
        "16a": lambda: figure_16a(tuple(size // part for size in SIZES)),
        "16bc": lambda: figure_16bc(200_000 // part),
        "17": lambda: figure_17(tuple(size // part for size in (10_000, 20_000, 40_000))),
        "dense": lambda: dense(100_000 // part, 500 // part),
        "all-loading": lambda: [
            *in_a_process_of_its_own("loading", arguments.quick),
            *in_a_process_of_its_own("texts", arguments.quick),
        ],
        "loading": lambda: loading(400_000 // part),
        "texts": lambda: texts(400_000 // part),
        "unconcerned": lambda: unconcerned(400_000 // part),
        "hits": lambda: hits(400_000 // part),
        "patterns": lambda: patterns(10_000 // part, EVENTS // part),
        "esper": peers,
    }
    print(header("numba", "pyarrow") + f"; one thread, {EVENTS:,} events")
    verdicts: list[Verdict] = []
    for name in arguments.parts:
        verdicts += works[name]() or []
    print()
    for verdict in verdicts:
        print(verdict.line())
    return 0


if __name__ == "__main__":
    sys.exit(main())
