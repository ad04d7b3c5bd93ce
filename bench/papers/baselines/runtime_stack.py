"""SASE's Basic algorithm (§3.2): an NFA with a runtime stack of active states, one cell an event.

A state instance has at most two predecessors, both in the cell before: itself, by its self-loop, and the previous
state, if the cell's event made the transition. So a cell is two sets of states, as bits. Construction is a single
search of the cells from the newest back to the window's start, in time linear in the window (O(2LW) in the paper), then
the paths.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bench.papers.baselines.compiling import compiled, step
from bench.papers.baselines.sequences import (
    BEGUN,
    PUSHED,
    VISITED,
    Events,
    Ints,
    Outputs,
    Query,
    emit,
    hold_at,
    outputs,
)
from kleene.kernels.jit import borrowed


class Cells(NamedTuple):
    active: Ints  #   [event]: the states that are active after it
    forwards: Ints  # [event]: the state that it made a transition to, as a bit


class Transitions(NamedTuple):
    """The transitions that a search found, newest first: the DAG without its self-loops."""

    event: Ints  # [place, transition]
    older: Ints  # [place, transition]: the first transition to the previous place that came before it
    number: Ints  # [place]


def basic(events: Events, query: Query) -> Ints:
    """Find all sequences; gives the counters."""
    size = events.time.size
    out = outputs(query.length)
    cells = Cells(np.zeros(size + 1, np.int64), np.zeros(size + 1, np.int64))
    most = max(int(np.count_nonzero(events.place == place)) for place in range(query.length))
    event, older = (np.empty((query.length, most + 1), np.int64) for _ in range(2))
    _scan(events, query, cells, Transitions(event, older, np.zeros(query.length, np.int64)), out)
    return out.counts


@compiled
def _scan(events: Events, query: Query, cells: Cells, dag: Transitions, out: Outputs) -> None:
    events, query, cells, dag, out = borrowed(events), borrowed(query), borrowed(cells), borrowed(dag), borrowed(out)
    last = query.length - 1
    # [place]: the newest first event of a sequence up to there.
    newest = np.zeros(query.length, np.int64)
    active = 0
    for event in range(events.time.size):
        place, time = events.place[event], events.time[event]
        if place < 0:
            cells.active[event] = active
            continue
        if query.in_scan:
            for each in range(last):
                if time - newest[each] >= query.window:
                    active &= ~(1 << each)
        forwards = 0
        if place == 0 or (active >> (place - 1)) & 1:
            forwards = 1 << place
            newest[place] = time if place == 0 else newest[place - 1]
            out.counts[PUSHED] += 1
        cells.forwards[event] = forwards
        if place == last and forwards:
            _search(event, events, query, cells, dag, out)
            _enumerate(event, events, query, dag, out)
        else:
            active |= forwards
        cells.active[event] = active


@step
def _search(event: int, events: Events, query: Query, cells: Cells, dag: Transitions, out: Outputs) -> None:
    """Collect the transitions from which the accepting state is reached."""
    out.counts[BEGUN] += 1
    last = query.length - 1
    dag.number[:] = 0
    reached = 1 << (last - 1)
    cell = event - 1
    while cell >= 0 and cells.active[cell] & reached:
        if query.in_construction and events.time[event] - events.time[cell] >= query.window:
            break
        out.counts[VISITED] += 1
        if cells.forwards[cell] & reached:
            place = events.place[cell]
            dag.event[place, dag.number[place]] = cell
            if place > 0:
                dag.older[place, dag.number[place]] = dag.number[place - 1]
                reached |= 1 << (place - 1)
            dag.number[place] += 1
        cell -= 1


@step
def _enumerate(event: int, events: Events, query: Query, dag: Transitions, out: Outputs) -> None:
    """Every path through the transitions is a sequence."""
    last = query.length - 1
    bound, cursor = out.bound, out.cursor
    bound[last] = event
    if not hold_at(query.during, last, bound, events.columns):
        return
    place = last - 1
    cursor[place] = 0
    while place < last:
        number = cursor[place]
        if number == dag.number[place]:
            place += 1
            cursor[place] += 1
            continue
        bound[place] = dag.event[place, number]
        if not hold_at(query.during, place, bound, events.columns):
            cursor[place] += 1
        elif place == 0:
            emit(query, events, out)
            cursor[place] += 1
        else:
            cursor[place - 1] = dag.older[place, number]
            place -= 1
