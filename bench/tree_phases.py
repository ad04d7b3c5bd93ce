"""ZStream's Figure 14: three phases joined to one stream, plans that stay and one that adapts (G9)."""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping
from statistics import median
from typing import NamedTuple

import pyarrow as pa

from bench.measure import Verdict
from bench.running import bound
from bench.tree_plans import BATCH, COMPARED, FOUR, PAPERS_FOUR, Parts, Way, adaptive, agree, batches, lines, trees
from bench.tree_points import CELL, MOST_SLOWER, NAME, Size
from bench.tree_workloads import QUERY_6, SETTINGS
from kleene.plan.settings import ExecutorKind

ADAPTIVE = "adaptive"
ROUNDS = 5
# How long a phase is: many rounds of the trees, so that noticing a change costs little of it.
PHASE = 100_000


class Spent(NamedTuple):
    """Seconds of a phase: its first batch, and all others."""

    at_first: float
    later: float


def phases(size: Size) -> list[Verdict]:
    events = min(PHASE, size.most)
    tables = {
        name: stream.table(events, seed=number, first=number * events)
        for number, (name, stream) in enumerate(SETTINGS.items())
    }
    query = bound(next(iter(tables.values())), QUERY_6)
    ways = {
        **trees(query, {name: FOUR[name] for name in PAPERS_FOUR}),
        ADAPTIVE: adaptive(query),
        **lines(query),
    }
    print(f"\nFigure 14: three phases of {events:,} events each, one after the other; thousand events/s\n{QUERY_6}")
    for table in tables.values():
        agree(ways, table.slice(0, COMPARED))
    # Only a whole stream shows whether a change of plans loses or repeats a match.
    whole = pa.concat_tables(list(tables.values()))
    matches = agree({name: ways[name] for name in (ADAPTIVE, ExecutorKind.STACKS.value)}, whole, BATCH)
    print(f"{matches:,} matches")
    seconds = _seconds(ways, {name: list(batches(table)) for name, table in tables.items()})
    rates = {
        name: {phase: events / median(map(sum, each)) / 1_000 for phase, each in runs.items()}
        for name, runs in seconds.items()
    }
    print(f"{'':{NAME}}" + "".join(f"{name:>{CELL}}" for name in ways))
    for phase in tables:
        print(f"{phase:{NAME}}" + "".join(f"{rates[name][phase]:{CELL}.1f}" for name in ways))
    return [_judged(phase, rates, seconds) for phase in tables]


def _seconds(ways: Mapping[str, Way], parts: Mapping[str, Parts]) -> dict[str, dict[str, list[Spent]]]:
    """By way and phase, of rounds in which each runs once, after a warm-up."""
    seconds: dict[str, dict[str, list[Spent]]] = {name: {phase: [] for phase in parts} for name in ways}
    for number in range(ROUNDS + 1):
        for name, way in ways.items():
            for phase, spent in _run(way, parts).items():
                seconds[name][phase] += [spent] * (number > 0)
    return seconds


def _run(way: Way, parts: Mapping[str, Parts]) -> dict[str, Spent]:
    """The processor's seconds of each phase: those of the clock are also those of whatever else the machine does."""
    gc.collect()
    engine = way.engine()
    spent = {}
    for phase, listed in parts.items():
        moments = [time.process_time()]
        for part, watermark in listed:
            engine.replay(part, watermark)
            moments.append(time.process_time())
        spent[phase] = Spent(moments[1] - moments[0], moments[-1] - moments[1])
    return spent


def _judged(
    phase: str, rates: Mapping[str, Mapping[str, float]], seconds: Mapping[str, Mapping[str, list[Spent]]]
) -> Verdict:
    """Against the best of the plans that stay; by the median of the rounds, whose runs are neighbours."""
    best = max(PAPERS_FOUR, key=lambda name: rates[name][phase])
    pairs = list(zip(seconds[best][phase], seconds[ADAPTIVE][phase], strict=True))
    slower = 1 - median(sum(fixed) / sum(own) for fixed, own in pairs)
    apart = f"{abs(slower):.0%} {'slower' if slower > 0 else 'faster'} than {best} ({rates[best][phase]:.0f})"
    text = f"{phase}: adaptive {rates[ADAPTIVE][phase]:.0f} thousand events/s, {apart}; goal at most 10 % slower"
    at_first, later = (median(1_000 * (own[part] - fixed[part]) for fixed, own in pairs) for part in (0, 1))
    reason = (
        f"{phase}: of the adaptive plan's time {at_first:+.1f} ms are in the first {BATCH:,} events, which the plan of "
        f"the phase before runs until it is replaced, and {later:+.1f} ms in all others, where it is measured"
    )
    return Verdict("G9", slower <= MOST_SLOWER, text, reason)
