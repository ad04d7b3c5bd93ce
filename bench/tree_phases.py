"""ZStream's Figure 14: three phases joined to one stream, plans that stay and one that adapts (G9)."""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping
from statistics import median

import pyarrow as pa

from bench.measure import REPEATS, Verdict
from bench.running import bound
from bench.tree_plans import BATCH, COMPARED, FOUR, PAPERS_FOUR, Parts, Way, adaptive, agree, batches, lines, trees
from bench.tree_points import CELL, MOST_SLOWER, NAME, Size
from bench.tree_workloads import QUERY_6, SETTINGS
from kleene.plan.settings import ExecutorKind

ADAPTIVE = "adaptive"
# How long a phase is: many rounds of the trees, so that noticing a change costs little of it.
PHASE = 100_000


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
    rates = _rates(ways, {name: list(batches(table)) for name, table in tables.items()}, events)
    print(f"{'':{NAME}}" + "".join(f"{name:>{CELL}}" for name in ways))
    for phase in tables:
        print(f"{phase:{NAME}}" + "".join(f"{rates[name][phase]:{CELL}.1f}" for name in ways))
    return [_judged(phase, rates) for phase in tables]


def _rates(ways: Mapping[str, Way], parts: Mapping[str, Parts], events: int) -> dict[str, dict[str, float]]:
    """By way and phase; one warm-up each, then rounds in which each runs once."""
    seconds: dict[str, list[dict[str, float]]] = {name: [] for name in ways}
    for _ in range(REPEATS + 1):
        for name, way in ways.items():
            seconds[name].append(_run(way, parts))
    return {
        name: {phase: events / median(run[phase] for run in runs[1:]) / 1_000 for phase in parts}
        for name, runs in seconds.items()
    }


def _run(way: Way, parts: Mapping[str, Parts]) -> dict[str, float]:
    """The seconds of each phase."""
    gc.collect()
    engine = way.engine()
    spent = {}
    for phase, listed in parts.items():
        began = time.perf_counter()
        for part, watermark in listed:
            engine.replay(part, watermark)
        spent[phase] = time.perf_counter() - began
    return spent


def _judged(phase: str, rates: Mapping[str, Mapping[str, float]]) -> Verdict:
    best = max(PAPERS_FOUR, key=lambda name: rates[name][phase])
    slower = 1 - rates[ADAPTIVE][phase] / rates[best][phase]
    apart = f"{abs(slower):.0%} {'slower' if slower > 0 else 'faster'} than {best} ({rates[best][phase]:.0f})"
    text = f"{phase}: adaptive {rates[ADAPTIVE][phase]:.0f} thousand events/s, {apart}; goal at most 10 % slower"
    return Verdict("G9", slower <= MOST_SLOWER, text)
