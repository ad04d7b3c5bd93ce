"""The ways to run a query of W6: trees of each shape, stacks, the automaton; and what the cost model says of trees."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.measure import REPEATS, CountsDiffer, Timing, alternate, once
from kleene.engine.engine import Engine
from kleene.frames.numbers import to_numpy
from kleene.optimize import fingerprints
from kleene.optimize.cost import cost_of
from kleene.optimize.statistics import Statistics
from kleene.optimize.trees.all_trees import all_trees
from kleene.optimize.trees.options import options
from kleene.pattern.expressions import Attribute, Clause, Comparison
from kleene.pattern.query import BoundQuery
from kleene.plan.check import check
from kleene.plan.explain_trees import print_tree
from kleene.plan.physical import AutomatonPlan, Plan, Scan, SequencePlan
from kleene.plan.settings import Adapting, ExecutorKind, Settings
from kleene.plan.trees import TreePlan

BATCH = 2_048
# How long the slowest plan of a comparison may run, and the sizes between which its stream is chosen.
SECONDS = 0.25
LEAST, MOST = 2_000, 100_000
# All ways must give the same matches: of so many events at least, and of more while there are not so many matches.
COMPARED, ENOUGH = 500, 1_000

# Trees as they are printed, over the classes of a query by number.
THREE = {"left-deep": "SEQ(SEQ({0}, {1}), {2})", "right-deep": "SEQ({0}, SEQ({1}, {2}))"}
# The paper's four shapes (§6.2), and the fifth that four neighbours can have.
FOUR = {
    "left-deep": "SEQ(SEQ(SEQ({0}, {1}), {2}), {3})",
    "right-deep": "SEQ({0}, SEQ({1}, SEQ({2}, {3})))",
    "bushy": "SEQ(SEQ({0}, {1}), SEQ({2}, {3}))",
    "inner": "SEQ({0}, SEQ(SEQ({1}, {2}), {3}))",
    "inner left": "SEQ(SEQ({0}, SEQ({1}, {2})), {3})",
}
# Query 7's two plans (§6.4), and NSEQ beside the left neighbour, which the paper does not measure.
NEGATIONS = {
    "NSEQ": "SEQ({0}, NSEQ(!{1}, {2}))",
    "NSEQ left": "SEQ(NSEQ({0}, !{1}), {2})",
    "NEG on top": "NEG(SEQ({0}, {2}), !{1})",
}
PAPERS_FOUR = ("left-deep", "right-deep", "bushy", "inner")


@dataclass(frozen=True)
class Way:
    """A way to run a query; without a plan the planner makes one for the settings."""

    query: BoundQuery
    settings: Settings
    plan: Plan | None = None

    def engine(self) -> Engine:
        return Engine(self.query, self.settings, self.plan)

    @property
    def tree(self) -> TreePlan:
        assert self.plan is not None
        (tree,) = self.plan.alternatives
        assert isinstance(tree, TreePlan)
        return tree


def trees(query: BoundQuery, orders: Mapping[str, str]) -> dict[str, Way]:
    """Trees that stay as they are."""
    (logical,) = options(query)
    found = {print_tree(tree.root): tree for tree in all_trees(query, logical)}
    classes = [component.variable for component in query.components]
    settings = Settings(executor=ExecutorKind.TREES, adapting=Adapting(on=False))
    return {
        name: Way(query, settings, check(Plan(query, (found[order.format(*classes)],))))
        for name, order in orders.items()
    }


def lines(query: BoundQuery) -> dict[str, Way]:
    """The paper's NFA is that of SASE 2006, which constructs from stacks; the automaton is that of SASE+."""
    made = {}
    for executor, kind in ((ExecutorKind.STACKS, SequencePlan), (ExecutorKind.AUTOMATON, AutomatonPlan)):
        way = Way(query, Settings(executor=executor))
        assert isinstance(way.engine().plan.alternatives[0], kind), f"not on {executor.value}"
        made[executor.value] = way
    return made


def adaptive(query: BoundQuery) -> Way:
    return Way(query, Settings(executor=ExecutorKind.TREES))


# Running -----------------------------------------------------------------------------------------------------------


def batches(table: pa.Table, rows: int = BATCH) -> Iterator[tuple[pa.Table, int]]:
    """A table in parts, each with the time of its last event as the watermark; with the last, all time has passed."""
    times = table.column("ts")
    if not pa.types.is_integer(times.type):
        times = times.cast(pa.int64())
    ends = to_numpy(times)
    for begin in range(0, table.num_rows, rows):
        part = table.slice(begin, rows)
        last = begin + part.num_rows == table.num_rows
        yield part, int(ends[begin + part.num_rows - 1]) + int(last)


Parts = list[tuple[pa.Table, int]]


def replayed(way: Way, parts: Parts) -> int:
    """Find the matches of a stream, and deliver none (§6); gives the number of events."""
    engine = way.engine()
    for part, watermark in parts:
        engine.replay(part, watermark)
    return sum(part.num_rows for part, _ in parts)


def delivered(way: Way, parts: Iterable[tuple[pa.Table, int]]) -> int:
    """Find the matches of a stream, and make the tables of them; gives their number."""
    engine = way.engine()
    found = sum(engine.process(part, watermark).statistics.matches for part, watermark in parts)
    return found + engine.finish().statistics.matches


def agree(ways: Mapping[str, Way], table: pa.Table, rows: int = 256) -> int:
    """How many matches all ways find in a table."""
    counts = {name: delivered(way, batches(table, rows)) for name, way in ways.items()}
    if len(set(counts.values())) > 1:
        raise CountsDiffer.between(counts)
    return next(iter(counts.values()))


def agree_on_enough(ways: Mapping[str, Way], table: pa.Table) -> None:
    """Compare on a beginning that has matches to compare."""
    events = COMPARED
    while events < table.num_rows and delivered(next(iter(ways.values())), batches(table.slice(0, events))) < ENOUGH:
        events *= 4
    agree(ways, table.slice(0, events))


def throughputs(
    ways: Mapping[str, Way],
    stream: Callable[[int], pa.Table],
    seconds: float = SECONDS,
    most: int = MOST,
    repeats: int = REPEATS,
) -> tuple[dict[str, float], int]:
    """Thousand events a second of each way, on a stream that the slowest runs through in about this time; its size."""
    probe = stream(min(LEAST, most))
    parts = list(batches(probe))
    slowest = max(min(once(replayed, way, parts) for _ in range(2)) for way in ways.values())
    events = min(max(int(probe.num_rows * seconds / slowest), LEAST), most)
    table = stream(events)
    agree_on_enough(ways, table)
    parts = list(batches(table))
    # What compiled kernels hold is not to be looked through between the runs.
    gc.freeze()
    works = {name: partial(replayed, way, parts) for name, way in ways.items()}
    timings: dict[str, Timing] = alternate(works, repeats, clock=time.process_time)
    return {name: 1_000 * timing.rate(events) for name, timing in timings.items()}, events


# What is estimated ---------------------------------------------------------------------------------------------------


def true_statistics(query: BoundQuery, table: pa.Table) -> Statistics:
    """What the whole stream shows: events of each class in a window, and how often two prices compare as asked."""
    assert query.window is not None
    rng = np.random.default_rng(0)
    kinds = table.column("type").combine_chunks().dictionary_decode()
    drawn, rates = {}, {}
    for component in query.components:
        own = table.filter(pc.is_in(kinds, value_set=pa.array(component.types)))
        rates[fingerprints.of_scan(Scan(component))] = own.num_rows * query.window.size / table.num_rows
        drawn[component.variable] = own.take(pa.array(rng.integers(0, own.num_rows, 20_000)))
    components = {component.variable: component for component in query.components}
    selectivities = {
        fingerprints.of_clause(clause, components): _share(clause, drawn) for clause in query.conditions.positive
    }
    return Statistics(rates, selectivities, sampled=table.num_rows)


def _share(clause: Clause, drawn: Mapping[str, pa.Table]) -> float:
    (literal,) = clause.literals
    assert isinstance(literal, Comparison)
    assert isinstance(literal.left, Attribute)
    assert isinstance(literal.right, Attribute)
    left, right = (to_numpy(drawn[side.variable].column(side.attribute)) for side in (literal.left, literal.right))
    assert literal.operator in ("<", ">")
    return float(np.mean(left > right if literal.operator == ">" else left < right))


def estimates(ways: Mapping[str, Way], statistics: Statistics) -> dict[str, float]:
    """1 / estimated cost of the events of one window, in millionths."""
    return {name: 1e6 / cost_of(way.query, way.tree, statistics).total for name, way in ways.items()}


def chosen(ways: Mapping[str, Way], table: pa.Table) -> str:
    """Which of these the optimiser takes when it sees the first batch."""
    query = next(iter(ways.values())).query
    engine = Engine(query, Settings(executor=ExecutorKind.TREES, adapting=Adapting(on=False)))
    engine.replay(table.slice(0, BATCH), BATCH)
    (taken,) = engine.plan.alternatives
    return next(name for name, way in ways.items() if way.tree == taken)
