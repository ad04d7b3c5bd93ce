"""W1, W2 and W4: sequences of single events beside hand-written joins (G1), and as the window grows (G2)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from bench.measure import Timing, Verdict, Work, alternate, profile
from bench.peers import peers
from bench.running import found
from bench.workloads import Sequence, bystanders, sase, sequence

# G1: how many times the fastest Polars joins ours must be, by the number of values of attr1.
FACTORS = {100: 20.0, 1_000: 2.0, 10_000: 1.0}
KEYLESS_RATE = 2.0
WINDOWS = (10_000, 20_000, 50_000, 100_000)
MOST_SLOWER = 0.20
HEAD = f"{'':26}{'matches':>10}{'ours':>9}{'Polars':>9}{'(plain)':>9}{'DuckDB':>9}   ours / Polars, spelled as"


def count(table: pa.Table, text: str) -> int:
    return int(found(table, text).num_rows)


@dataclass(frozen=True)
class Row:
    """One workload: ours beside the fastest spelling of each peer."""

    name: str
    events: int
    timings: dict[str, Timing]

    @property
    def ours(self) -> float:
        return self.timings["ours"].rate(self.events)

    def fastest(self, peer: str) -> str:
        return min((name for name in self.timings if name.startswith(peer)), key=lambda name: self.timings[name].median)

    def peer(self, name: str) -> float:
        return self.timings[name].rate(self.events)

    @property
    def ratio(self) -> float:
        return self.ours / self.peer(self.fastest("Polars"))

    def line(self) -> str:
        best = self.fastest("Polars")
        plain = f"{self.peer('Polars hash joins'):9.2f}" if "Polars hash joins" in self.timings else f"{'–':>9}"
        duck = self.peer(self.fastest("DuckDB"))
        matches = self.timings["ours"].count
        rates = f"{self.ours:9.2f}{self.peer(best):9.2f}{plain}{duck:9.2f}"
        return f"{self.name:26}{matches:10,}{rates}{self.ratio:9.2f}x  {best.removeprefix('Polars ')}"

    def figures(self) -> str:
        best = self.fastest("Polars")
        text = f"{self.name}: {self.ours:.1f} M events/s, {self.ratio:.2f} x {best} ({self.peer(best):.1f})"
        if "Polars hash joins" in self.timings and best != "Polars hash joins":
            plain = self.peer("Polars hash joins")
            text += f"; {self.ours / plain:.2f} x plain hash joins ({plain:.2f})"
        return text


def compared(name: str, table: pa.Table, wanted: Sequence) -> Row:
    works: dict[str, Work] = {"ours": partial(count, table, wanted.text), **peers(table, wanted)}
    row = Row(name, table.num_rows, alternate(works))
    print(row.line(), flush=True)
    return row


def joins(events: int) -> list[Verdict]:
    """G1: W1 by domain size, W4, and without a key; W1 by length and with a second test for the record."""
    print(f"\nW1, W4: {events:,} events; million events/s; ours returns the matches, peers count them")
    print(HEAD)
    verdicts = []
    for values, factor in FACTORS.items():
        table = sase(events, values)
        row = compared(f"W1 V={values:,}", table, sequence())
        verdicts.append(_judged(row, row.ratio >= factor, f"goal {factor:g} x", table, sequence()))
    table, few = bystanders(events)
    row = compared("W4", table, few)
    verdicts.append(_judged(row, row.ratio >= 1.0, "goal 1 x", table, few))
    keyless = sequence(window=200, keys=())
    table = sase(events // 5, 10_000)
    row = compared(f"no key, {events // 5:,} events", table, keyless)
    verdicts.append(_judged(row, row.ours >= KEYLESS_RATE, f"goal {KEYLESS_RATE:g} M events/s", table, keyless))
    verdicts.append(Verdict("G1", None, "≥ 50 x Flink CEP (it needs a Java project of its own)"))
    table = sase(events, 1_000)
    for length in (2, 4, 5, 6):
        compared(f"W1 V=1,000 L={length}", table, sequence(length))
    compared("W1 V=100 [attr2]", sase(events, 100), sequence(keys=("attr1", "attr2")))
    return verdicts


def _judged(row: Row, met: bool, goal: str, table: pa.Table, wanted: Sequence) -> Verdict:
    reason = "" if met else profile(lambda: count(table, wanted.text))
    return Verdict("G1", met, f"{row.figures()}; {goal}", reason)


def windows(events: int) -> list[Verdict]:
    """G2 (and SASE Figure 9): the window grows, the stream stays."""
    print(f"\nW2: {events:,} events, V=10,000 (SASE Figure 9: Basic falls fast, active instance stacks slowly)")
    table = sase(events, 10_000)
    works = {f"{window:,}": partial(count, table, sequence(window=window).text) for window in WINDOWS}
    timings = alternate(works, repeats=5, same=False)
    for name, timing in timings.items():
        print(f"  window {name:>8}{timing.count:10,} matches{timing.rate(events):9.2f} M events/s")
    first, *_, last = timings.values()
    slower = 1 - first.median / last.median
    figures = f"{slower:.0%} slower from window 10,000 ({first.rate(events):.1f} M events/s) to 100,000"
    reason = "" if slower <= MOST_SLOWER else profile(list(works.values())[-1])
    return [Verdict("G2", slower <= MOST_SLOWER, f"{figures} ({last.rate(events):.1f}); goal 20 %", reason)]
