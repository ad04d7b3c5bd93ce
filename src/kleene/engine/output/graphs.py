"""Completed runs as graphs: how many matches they stand for, without writing these out, and the graphs of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kleene.engine.executors.automaton import AutomatonExecutor
from kleene.engine.output.ordering import Spans
from kleene.engine.state.memory import empty
from kleene.frames.compressed import Graphs, Sharing
from kleene.kernels import runs as kernel
from kleene.kernels.counting import count_paths
from kleene.kernels.expression import Ints
from kleene.kernels.graph_blocks import (
    BEGINNINGS,
    COUNTS,
    LARGEST,
    LINKS,
    NODES,
    Blocks,
    CompletedRows,
    EventTimes,
    Reached,
    count_early,
    forget,
    reach,
    write_blocks,
)
from kleene.kernels.paths import NodePool, write_graphs
from kleene.kernels.tallies import count_since
from kleene.kernels.timeline import Timeline

# As `Completed.most`.
ALL = np.iinfo(np.int64).max
_SATURATED = np.uint64(2**64 - 1)
# Nodes and links of one block: the row that holds them for the others has some megabytes at most.
_MOST = 1 << 18


@dataclass(frozen=True, eq=False)
class Completed:
    """Completed runs of one executor: all of them are matches, or those of them that begin late enough."""

    executor: AutomatonExecutor
    nodes: Ints
    # [node]: the earliest start that the first event of a match may have.
    lowest: Ints
    # [node]: how many matches are written at most.
    most: Ints

    def take(self, places: Ints) -> Completed:
        return Completed(self.executor, self.nodes[places], self.lowest[places], self.most[places])

    @property
    def pool(self) -> NodePool:
        runs = self.executor.pool
        return NodePool(runs.nodes, runs.links, self.executor.variables)


# Counts ---------------------------------------------------------------------------------------------------------------


def counts_of(completed: Completed, time: Timeline) -> list[int]:
    """How many matches each completed run stands for."""
    counts, exact = counts_and_huge(completed, time)
    listed: list[int] = counts.tolist()
    for place, count in exact.items():
        listed[place] = count
    return listed


def counts_and_huge(completed: Completed, time: Timeline) -> tuple[npt.NDArray[np.uint64], dict[int, int]]:
    """[run]: how many matches; and by place the counts beyond 64 bits. Only inexact counts are counted on graphs."""
    executor, nodes, lowest = completed.executor, completed.nodes, completed.lowest
    totals = executor.total(nodes)
    early = time.starts[executor.oldest(nodes)] < lowest
    none = time.starts[executor.first(nodes)] < lowest
    totals[none], early[none] = 0, False
    if executor.counts_by_first and early.any():
        count_since(nodes, lowest, time.starts, executor.pool, totals)
        early[:] = False
    late = np.flatnonzero(early | (totals == _SATURATED))
    if not len(late):
        return totals, {}
    rows = CompletedRows(np.arange(len(late) + 1), nodes[late], lowest[late])
    graphs = own_graphs(rows, completed.pool, time)
    exact = count_paths(graphs.node_offsets, graphs.link_offsets, graphs.links, graphs.end_offsets, graphs.ends)
    huge = {place: count for place, count in zip(late.tolist(), exact, strict=True) if count >= _SATURATED}
    totals[late] = [min(count, int(_SATURATED)) for count in exact]
    return totals, huge


# Graphs ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class RowsOfRuns:
    """What events completed, one row an event, in the nodes of all executors."""

    rows: CompletedRows
    pool: NodePool

    @staticmethod
    def of(completed: Sequence[Completed], rows: Sequence[Ints], number: int) -> RowsOfRuns:
        """So many rows; `rows` says for each executor which row its completed runs belong to."""
        pool, nodes = _one_pool(completed)
        row = np.concatenate([np.zeros(0, np.int64), *rows])
        lowest = np.zeros(number, np.int64)
        # Runs that one event completes have the same window.
        lowest[row] = np.concatenate([np.zeros(0, np.int64), *(each.lowest for each in completed)])
        order = np.argsort(row, kind="stable")
        offsets = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=number))])
        ends = np.concatenate([np.zeros(0, np.int64), *nodes])[order]
        return RowsOfRuns(CompletedRows(offsets, ends, lowest), pool)

    def take(self, places: Ints) -> CompletedRows:
        """Some of the rows."""
        offsets, nodes, lowest = self.rows
        sizes = np.diff(offsets)[places]
        taken = np.concatenate([[0], np.cumsum(sizes)])
        at = np.repeat(offsets[places] - taken[:-1], sizes) + np.arange(taken[-1])
        return CompletedRows(taken, nodes[at], lowest[places])


def _one_pool(completed: Sequence[Completed]) -> tuple[NodePool, list[Ints]]:
    """The nodes of all executors in one pool, and there the nodes of each that are completed."""
    if len(completed) == 1:
        return completed[0].pool, [completed[0].nodes]
    nodes, links = [np.zeros((0, kernel.FIELDS), np.int32)], [np.zeros((0, 2), np.int32)]
    variables, shifts = [np.zeros(0, np.uint8)], []
    states = number = linked = 0
    for each in completed:
        pool, sizes = each.pool, each.executor.pool.sizes
        nodes.append(pool.nodes[: sizes[kernel.NODES]].copy())
        links.append(pool.links[: sizes[kernel.LINKS]].copy())
        variables.append(pool.variables)
        shifts.append(number)
        nodes[-1][:, kernel.STATE] += states
        links[-1][:, kernel.ORIGIN] += number
        for column in (nodes[-1][:, kernel.LINK], links[-1][:, kernel.FOLLOWING]):
            column[column >= 0] += linked
        states, number, linked = states + len(variables[-1]), number + len(nodes[-1]), linked + len(links[-1])
    joined, followed = np.concatenate(nodes), np.concatenate(links)
    # As in the pool of one executor, nodes stand in the order of their events.
    order = np.argsort(joined[:, kernel.EVENT], kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    followed[:, kernel.ORIGIN] = place[followed[:, kernel.ORIGIN]]
    numbers = [place[first + each.nodes] for first, each in zip(shifts, completed, strict=True)]
    return NodePool(joined[order], followed, np.concatenate(variables)), numbers


def own_graphs(rows: CompletedRows, pool: NodePool, time: Timeline) -> Graphs:
    """The graph of each row for itself, however much rows have in common."""
    room = np.full(len(pool.nodes), -1, np.int32)
    node_offsets, events, variables, link_offsets, links, ends = write_graphs(*rows, time.starts, pool, room)
    return Graphs(node_offsets, variables, events, link_offsets, links, rows.offsets, ends)


def shared_graphs(runs: RowsOfRuns, spans: Spans, time: Timeline) -> tuple[Graphs, Blocks]:
    """The graphs of all rows, each node once for the rows that share it."""
    rows, times, number = runs.rows, EventTimes(time.starts, spans.start), len(runs.rows.lowest)
    parts, hosts = list[Blocks](), empty(number, np.int64)
    reached, place = _room_to_reach(runs.pool, hosts), empty(len(runs.pool.nodes), np.int32)
    first, some = 0, number
    while first < number:
        last = min(first + some, number)
        reach(rows, first, last, times, runs.pool, reached)
        largest = reached.counts[LARGEST]
        # A block that is too large is cut between rows: those behind write again what they share with those before.
        if largest <= _MOST or last == first + 1:
            parts.append(_room_for_blocks(rows, first, last, reached))
            write_blocks(rows, first, last, times, runs.pool, reached, place, parts[-1])
            first, some = last, 2 * some if 4 * largest <= _MOST else some
        else:
            some = (last - first + 1) // 2
        forget(reached)
    blocks = parts[0] if len(parts) == 1 else _one_after_the_other(parts)
    sharing = _sharing(rows, hosts, blocks, time.starts)
    links = blocks.link_offsets, blocks.links
    return Graphs(blocks.offsets, blocks.variables, blocks.events, *links, rows.offsets, blocks.ends, sharing), blocks


def _room_to_reach(pool: NodePool, hosts: Ints) -> Reached:
    nodes = len(pool.nodes)
    found = empty(nodes, np.int32)
    found.fill(-1)
    return Reached(found, empty(nodes, np.int32), hosts, empty((len(hosts), 3), np.int64), np.zeros(COUNTS, np.int64))


def _room_for_blocks(rows: CompletedRows, first: int, last: int, reached: Reached) -> Blocks:
    size, (nodes, links, beginnings) = last - first, reached.counts[[NODES, LINKS, BEGINNINGS]].tolist()
    return Blocks(
        offsets=empty(size + 1, np.int64),
        events=empty(nodes, np.int64),
        variables=empty(nodes, np.uint8),
        before=empty(nodes, np.int64),
        link_offsets=empty(nodes + 1, np.int64),
        links=empty(links, np.int64),
        begin_offsets=empty(size + 1, np.int64),
        begins=empty(beginnings, np.int64),
        ends=empty(int(rows.offsets[last] - rows.offsets[first]), np.int64),
        first_ends=empty(size, np.int64),
    )


def _one_after_the_other(parts: Sequence[Blocks]) -> Blocks:
    members = np.cumsum([0, *(len(part.events) for part in parts)]).tolist()
    linked = np.cumsum([0, *(len(part.links) for part in parts)]).tolist()
    begun = np.cumsum([0, *(len(part.begins) for part in parts)]).tolist()

    def together(name: str, firsts: Sequence[int] | None = None) -> Any:
        arrays = [getattr(part, name) for part in parts]
        if firsts is not None:
            arrays = [np.where(array < 0, array, array + first) for array, first in zip(arrays, firsts, strict=False)]
        # Where each row's begin there is one more, which the next part begins with.
        arrays[:-1] = [array[:-1] if name.endswith("offsets") else array for array in arrays[:-1]]
        return np.concatenate(arrays)

    firsts = {
        "offsets": members,
        "events": None,
        "variables": None,
        "before": members,
        "link_offsets": linked,
        "links": members,
        "begin_offsets": begun,
        "begins": members,
        "ends": members,
        "first_ends": members,
    }
    return Blocks(**{name: together(name, first) for name, first in firsts.items()})


def _sharing(rows: CompletedRows, hosts: Ints, blocks: Blocks, starts: Ints) -> Sharing:
    """Who holds the nodes of whom, and which beginnings are too early for whom."""
    offsets, begins = blocks.begin_offsets, blocks.begins
    measured = starts[blocks.events[begins]]
    host_of = np.repeat(np.arange(len(hosts)), np.diff(offsets))
    # Events that last need not start in the order that they stand in.
    order = np.lexsort((measured, host_of))
    begins = begins[order]
    skipped = count_early(offsets, measured[order], hosts, rows.lowest)
    # Only where a row skips some is it needed which there are.
    needed = np.zeros(len(hosts), np.bool_)
    needed[hosts[skipped > 0]] = True
    sizes = np.where(needed, np.diff(offsets), 0)
    return Sharing(hosts, np.concatenate([[0], np.cumsum(sizes)]), begins[needed[host_of]], skipped)
