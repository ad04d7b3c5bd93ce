"""The sides of a comparison over one stream: all give the same number of matches, on one thread, by processor time.

Other work on the machine takes time of the clock, but hardly of the processor, and what is left falls on all sides.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from bench.measure import REPEATS, Timing, Work, alternate
from bench.papers.baselines.sequences import IRRELEVANT, NEGATED, RESULTS, Events, Ints
from bench.running import bound, found_with, number_of_matches
from kleene.engine.engine import Engine
from kleene.pattern.query import BoundQuery
from kleene.plan.check import check
from kleene.plan.physical import Plan
from kleene.plan.settings import Settings

# What is run over a table, made ready beforehand.
Side = Callable[[pa.Table], Work]


@dataclass(frozen=True)
class Effort:
    """How long the slowest side of a comparison may run, in seconds, and by how much windows are shortened."""

    seconds: float
    divisor: int = 1
    repeats: int = REPEATS

    def events(self, window: int) -> int:
        """The least for a figure: throughput is steady after some windows."""
        return 3 * window


FULL = Effort(0.15)
QUICK = Effort(0.0, divisor=20, repeats=1)


@dataclass(frozen=True)
class Comparison:
    """How long each side took for a stream of so many events."""

    events: int
    timings: Mapping[str, Timing]

    def rate(self, side: str) -> float:
        """Million events a second."""
        return self.timings[side].rate(self.events)

    def rates(self) -> list[float]:
        return [self.rate(side) for side in self.timings]

    def factor(self, fast: str, slow: str) -> float:
        """How many times the throughput of one side is that of another."""
        return self.timings[slow].median / self.timings[fast].median

    @property
    def matches(self) -> int:
        return next(iter(self.timings.values())).count


def compare(
    make: Callable[[int], pa.Table], sides: Mapping[str, Side], least: int, effort: Effort, most: int = 400_000
) -> Comparison:
    """All sides over the longest stream that the slowest can have, and at least over so many events."""
    table = make(least)
    seconds = max(_spent(side(table)) for side in sides.values())
    # What the compiler and compiled loops hold is not to be looked through between the runs.
    gc.freeze()
    if seconds < effort.seconds:
        table = make(min(most, max(least, int(least * effort.seconds / max(seconds, 1e-4)))))
    works = {name: side(table) for name, side in sides.items()}
    return Comparison(table.num_rows, alternate(works, effort.repeats, clock=time.process_time))


def _spent(work: Work) -> float:
    """After a run that compiles."""
    work()
    began = time.process_time()
    work()
    return time.process_time() - began


# Sides -----------------------------------------------------------------------------------------------------------


def baseline(run: Callable[[Events], Ints], length: int, negated: str | None = None) -> Side:
    """An algorithm for sequences of E1, E2, …, with the columns attr1 and attr2 as 0 and 1."""

    def side(table: pa.Table) -> Work:
        events = sequence_events(table, length, negated)
        return lambda: int(run(events)[RESULTS])

    return side


def sequence_events(table: pa.Table, length: int, negated: str | None = None) -> Events:
    kinds = table.column("type").combine_chunks()
    names = kinds.dictionary.to_pylist()
    places = np.full(len(names), IRRELEVANT, np.int64)
    for place in range(length):
        places[names.index(f"E{place + 1}")] = place
    if negated is not None:
        places[names.index(negated)] = NEGATED
    columns = [table.column(name).to_numpy() for name in ("attr1", "attr2") if name in table.column_names]
    values = np.array(columns, np.int64).reshape(len(columns), table.num_rows)
    return Events(places[kinds.indices.to_numpy()], table.column("ts").to_numpy(), values)


def kleene(text: str, settings: Settings | None = None, plan: Callable[[Plan], Plan] | None = None) -> Side:
    """The product: events are taken in and all matches found, but no table is made of them."""
    chosen = settings or Settings()

    def side(table: pa.Table) -> Work:
        query = bound(table, text)
        planned = None if plan is None else check(plan(Engine(query, chosen).plan))
        return partial(_replayed, query, chosen, planned, table, _count(query, chosen, planned, table))

    return side


def _count(query: BoundQuery, settings: Settings, plan: Plan | None, table: pa.Table) -> int:
    engine = Engine(query, settings, plan)
    engine.process(table)
    return number_of_matches(engine.finish().matches)


def _replayed(query: BoundQuery, settings: Settings, plan: Plan | None, table: pa.Table, count: int) -> int:
    Engine(query, settings, plan).replay(table, table.num_rows + 1)
    return count


def delivered(text: str, settings: Settings | None = None) -> Side:
    """The product with the tables of all matches."""

    def side(table: pa.Table) -> Work:
        return lambda: number_of_matches(found_with(table, text, settings or Settings()))

    return side
