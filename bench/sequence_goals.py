"""W1, W2 and W4: sequences of single events beside hand-written joins (G1), and as the window grows (G2).

Ours returns whole tables, with ids and in the order of results. Polars counts, and gives the same rows; each by the
spelling that is fastest for the stream. Sides have the same number of cores, and alternate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import polars as pl
import pyarrow as pa

from bench.cores import all_cores, on_cores
from bench.digests import AnswersDiffer, agreed
from bench.measure import Timing, Verdict, Work, alternate, profile
from bench.peers import counting, duckdb_counting, giving_rows, polars_rows
from bench.running import found, rows_found
from bench.sequence_inputs import SequenceInput, inputs
from bench.workloads import Sequence, sase, sequence

REPEATS = 5
# Of streams that take some milliseconds: a moment in which the machine is busy is longer than five of these runs.
SHORT, REPEATS_OF_SHORT = 1_000_000, 15
OURS, ONE_CORE, ROWS = "ours", "ours on one core", ", rows"
# G1: how many times as fast as Polars counting ours must be; as Polars giving rows, it must be faster.
COUNTING_GOALS = {"W1 V=100": 0.7, "no key": 0.7}
ROWS_GOAL = 1.0
CORES_GOAL = 1.4
# More rows than these are not compared with those of Polars one by one.
MOST_ROWS = 5_000_000
DUCKDB_EVENTS = 1_000_000
WINDOWS = (10_000, 20_000, 50_000, 100_000)
MOST_SLOWER = 0.20
HEAD = (
    f"{'':14}{'matches':>11}{'ours':>8}{'Polars':>8}{'rows':>8}{'DuckDB':>8}"
    f"{'ours / Polars counting':>26}{'ours / Polars rows':>24}{'all / one':>12}   Polars by"
)


@dataclass(frozen=True)
class Ratio:
    """How many times as fast as another side ours is: by medians, by minima, and by the least time of processors."""

    median: float
    least: float
    processor: float

    @classmethod
    def of(cls, ours: Timing, other: Timing) -> Ratio:
        return cls(other.median / ours.median, other.least / ours.least, other.processor / ours.processor)

    def cell(self) -> str:
        return f"{self.median:8.2f}{self.least:7.2f}{self.processor:7.2f}"

    def text(self) -> str:
        return f"{self.median:.2f} x (minima {self.least:.2f}, processor time {self.processor:.2f})"


@dataclass(frozen=True)
class Comparison:
    """One stream on so many cores: ours beside each spelling of each peer."""

    name: str
    events: int
    cores: int
    timings: dict[str, Timing]
    # Where ours took its time, if it missed a goal.
    profile: str = ""

    @property
    def ours(self) -> Timing:
        return self.timings[OURS]

    def fastest(self, peer: str, *, rows: bool = False) -> str | None:
        names = [name for name in self.timings if name.startswith(peer) and name.endswith(ROWS) == rows]
        return min(names, key=lambda name: self.timings[name].median, default=None)

    def beside(self, name: str | None) -> Ratio:
        return Ratio.of(self.ours, self.timings[name]) if name else Ratio(math.nan, math.nan, math.nan)

    @property
    def counting(self) -> Ratio:
        return self.beside(self.fastest("Polars"))

    @property
    def rows(self) -> Ratio:
        return self.beside(self.fastest("Polars", rows=True))

    @property
    def one_core(self) -> Ratio:
        """All cores by one."""
        return self.beside(ONE_CORE if ONE_CORE in self.timings else None)

    @property
    def counting_goal(self) -> float:
        return COUNTING_GOALS.get(self.name, 1.0)

    @property
    def met(self) -> bool:
        return self.counting.median >= self.counting_goal and self.rows.median >= ROWS_GOAL

    def line(self) -> str:
        names = (OURS, self.fastest("Polars"), self.fastest("Polars", rows=True), self.fastest("DuckDB"))
        rates = "".join(f"{self.timings[name].rate(self.events):8.1f}" if name else f"{'–':>8}" for name in names)
        cores = f"{self.one_core.median:9.2f} x" if ONE_CORE in self.timings else f"{'–':>11}"
        ratios = f"    {self.counting.cell()}  {self.rows.cell()} {cores}"
        return f"{self.name:14}{self.ours.count:11,}{rates}{ratios}   {(names[1] or '').removeprefix('Polars ')}"

    def verdict(self) -> Verdict:
        cores = "one core" if self.cores == 1 else f"{self.cores} cores"
        text = (
            f"{self.name}, {self.events:,} events, {cores}: {self.ours.rate(self.events):.1f} M events/s; "
            f"{self.counting.text()} Polars counting, goal {self.counting_goal:g}; "
            f"{self.rows.text()} Polars giving rows, goal {ROWS_GOAL:g}"
        )
        return Verdict("G1", self.met, text, self.profile)


def joins(events: int, seed: int) -> list[Verdict]:
    """G1: W1 by domain size, W4, and without a key, each on one core and on all."""
    verdicts: list[Verdict] = []
    every = all_cores()
    for cores in sorted({1, every}):
        print(
            f"\nG1: {events:,} events, seed {seed}, {cores} of {every} cores a side; million events/s by medians; "
            f"ratios by medians, minima, processor time",
            flush=True,
        )
        print(HEAD, flush=True)
        comparisons = on_cores(cores, compared, events, seed, cores)
        verdicts += [comparison.verdict() for comparison in comparisons]
        if cores > 1:
            verdicts.append(_scaling(comparisons))
    return verdicts


def compared(events: int, seed: int, cores: int) -> list[Comparison]:
    """Every stream, in this process, whose peers have so many cores."""
    return [_compared(each, cores) for each in inputs(events, seed)]


def _compared(asked: SequenceInput, cores: int) -> Comparison:
    table, text = asked.table, asked.sequence.text
    if cores == 1:
        digest = agreed(asked.name, table, text)
        print(f"  {asked.name}: digest {digest}, the same by all plans and cores", flush=True)
    works = works_of(asked, cores)
    repeats = REPEATS_OF_SHORT if table.num_rows <= SHORT else REPEATS
    comparison = Comparison(asked.name, table.num_rows, cores, alternate(works, repeats))
    print(comparison.line(), flush=True)
    if comparison.met:
        return comparison
    return Comparison(asked.name, table.num_rows, cores, comparison.timings, profile(works[OURS]))


def works_of(asked: SequenceInput, cores: int) -> dict[str, Work]:
    """All sides of a stream; that Polars gives our rows is checked on one core."""
    table, wanted = asked.table, asked.sequence
    works: dict[str, Work] = {OURS: partial(rows_found, table, wanted.text, cores)}
    if cores > 1:
        works[ONE_CORE] = partial(rows_found, table, wanted.text, 1)
    counters = counting(table, wanted)
    givers = giving_rows(table, wanted, counters)
    if cores == 1:
        check_rows(asked, polars_rows(table, wanted)[next(iter(givers)).removesuffix(ROWS)])
    works |= counters | givers
    if cores == 1 and table.num_rows <= DUCKDB_EVENTS:
        works |= duckdb_counting(table, wanted)
    return works


def check_rows(asked: SequenceInput, give: Callable[[], pl.DataFrame]) -> None:
    """An error if the events of a peer's rows, in any order, are not those of ours."""
    ours = found(asked.table, asked.sequence.text)
    if ours.num_rows > MOST_ROWS:
        return
    places = range(1, len(asked.sequence.types) + 1)
    times = [ours[f"v{place}"].combine_chunks().field("ts").to_numpy() for place in places]
    frame = give()
    theirs = [frame[f"v{place}"].struct.field("ts").to_numpy() for place in places]
    if not np.array_equal(_sorted(times), _sorted(theirs)):
        raise AnswersDiffer.between(
            asked.name, {"ours": f"{len(times[0]):,} rows", "Polars": f"{len(theirs[0]):,} rows"}
        )


def _sorted(columns: list[np.ndarray]) -> np.ndarray:
    rows = np.stack(columns)
    return rows[:, np.lexsort(rows)]


def _scaling(comparisons: list[Comparison]) -> Verdict:
    """All cores beside one, of the same run; that their bytes are equal was checked before."""
    first = comparisons[0]
    figures = "; ".join(f"{each.name} {each.one_core.text()}" for each in comparisons)
    met = all(each.one_core.median >= CORES_GOAL for each in comparisons)
    text = f"{first.cores} cores beside one, equal bytes, {first.events:,} events: {figures}; goal {CORES_GOAL:g} x"
    return Verdict("G1", met, text)


def lengths(events: int, seed: int) -> list[Verdict]:
    """W1 by length, and with a second test for the record, on one core; no goals."""
    print(f"\nW1 by length and with a second key: {events:,} events, seed {seed}, one core")
    print(HEAD, flush=True)
    on_cores(1, _lengths, events, seed)
    return []


def _lengths(events: int, seed: int) -> None:
    table = sase(events, 1_000, seed)
    for length in (2, 4, 5, 6):
        _shown(f"V=1,000 L={length}", table, sequence(length))
    _shown("V=100 [attr2]", sase(events, 100, seed), sequence(keys=("attr1", "attr2")))


def _shown(name: str, table: pa.Table, wanted: Sequence) -> None:
    works = works_of(SequenceInput(name, table, wanted), 1)
    print(Comparison(name, table.num_rows, 1, alternate(works)).line(), flush=True)


def windows(events: int, seed: int) -> list[Verdict]:
    """G2 (and SASE Figure 9): the window grows, the stream stays."""
    print(f"\nW2: {events:,} events, V=10,000 (SASE Figure 9: Basic falls fast, active instance stacks slowly)")
    table = sase(events, 10_000, seed)
    works = {f"{window:,}": partial(rows_found, table, sequence(window=window).text) for window in WINDOWS}
    timings = alternate(works, REPEATS, same=False)
    for name, timing in timings.items():
        print(f"  window {name:>8}{timing.count:10,} matches{timing.rate(events):9.2f} M events/s")
    first, *_, last = timings.values()
    slower = 1 - first.median / last.median
    figures = f"{slower:.0%} slower from window 10,000 ({first.rate(events):.1f} M events/s) to 100,000"
    reason = "" if slower <= MOST_SLOWER else profile(list(works.values())[-1])
    return [Verdict("G2", slower <= MOST_SLOWER, f"{figures} ({last.rate(events):.1f}); goal 20 %", reason)]
