"""SASE+'s own algorithms: all runs of a partition at once over a shared match buffer (§5.2.1), and merged (§5.2.2).

A merged run holds the starts of all runs that it stands for, oldest first, so that each of them expires by itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bench.papers.baselines.compiling import compiled, step
from bench.papers.baselines.stock_closures import (
    AT_C,
    CLOSED_AT_C,
    COUNTERS,
    MATCHES,
    MERGED,
    NEXT,
    REFERENCES,
    RUNS,
    STEPS,
    STEPS_AT_C,
    Buffer,
    Closure,
    Ints,
    Ticks,
    buffer,
    ends_closure,
    ends_tail,
    first_value,
    most_starts,
    next_value,
    retrieve,
    starts,
    takes,
    write,
)
from kleene.kernels.jit import borrowed

# States of a run: at a[i], and at c.
TAKE, TAIL = range(2)
# Fields of a run: its state and the last entry of its events; what its formulas need (the V vector); and of the runs
# that it stands for the oldest and the youngest start, and how many they are.
STATE, HEAD, VALUE, FIRST, LAST, OLDEST, YOUNGEST, MEMBERS, FIELDS = range(9)


class Runs(NamedTuple):
    live: Ints  #     [run, field]
    number: Ints  #   [1]: how many there are
    younger: Ints  #  [event]: of a start, the next one in the same run
    branches: Ints  # [branch, 2]: when a match is retrieved, entries still to follow and the match's length there


def with_runs(data: Ticks, query: Closure, *, merges: bool) -> Ints:
    """Find the matches of a partition; gives the counters."""
    assert not (merges and query.tail), "merging is told for queries without a third component"
    counts = np.zeros(COUNTERS, np.int64)
    most = most_starts(data, 2 * query.window) + 1
    clones = query.window + 2 if query.tail else 2
    live = np.empty((most * clones, FIELDS), np.int64)
    younger = np.empty(data.price.size, np.int64)
    runs = Runs(live, np.zeros(1, np.int64), younger, np.empty((most + 2, 2), np.int64))
    _scan(data, query, merges, runs, buffer(3 * most * (query.window + 2), query.window + 2), counts)
    return counts


@compiled
def _scan(data: Ticks, query: Closure, merges: bool, runs: Runs, rows: Buffer, counts: Ints) -> None:
    data, query, runs, rows, counts = borrowed(data), borrowed(query), borrowed(runs), borrowed(rows), borrowed(counts)
    for event in range(data.price.size):
        matched = _step(event, data, query, merges, runs, rows, counts)
        if matched and query.non_overlap:
            # What overlaps with the match is pruned, and its last event starts nothing.
            runs.number[0] = 0
            counts[MATCHES] += 1
            continue
        if starts(event, data):
            _begin(event, data, query, runs, rows, counts)
        if merges:
            _merge(runs, rows, counts)


@step
def _begin(event: int, data: Ticks, query: Closure, runs: Runs, rows: Buffer, counts: Ints) -> None:
    run = runs.live[runs.number[0]]
    runs.number[0] += 1
    run[STATE], run[HEAD] = TAKE, write(event, -1, -1, rows, counts)
    run[VALUE], run[FIRST], run[LAST] = first_value(event, data, query), data.price[event], data.price[event]
    run[OLDEST], run[YOUNGEST], run[MEMBERS] = event, event, 1
    counts[RUNS] += 1


@step
def _step(event: int, data: Ticks, query: Closure, merges: bool, runs: Runs, rows: Buffer, counts: Ints) -> bool:
    """Every run takes its edges; those that stay move to the front, clones go behind all. Whether there was a match."""
    before, end, kept = runs.number[0], runs.number[0], 0
    matched = False
    for number in range(before):
        run = runs.live[number]
        while run[MEMBERS] > 0 and event - run[OLDEST] >= query.window:
            run[OLDEST] = runs.younger[run[OLDEST]]
            run[MEMBERS] -= 1
        if run[MEMBERS] == 0:
            counts[CLOSED_AT_C] += run[STATE] == TAIL
            continue
        counts[STEPS] += 1
        stays = query.strategy == NEXT
        if run[STATE] == TAIL:
            counts[STEPS_AT_C] += 1
            if ends_tail(event, run[FIRST], run[LAST], data):
                _match(event, run, query, merges, runs, rows, counts)
                matched, stays = True, False
        else:
            if ends_closure(event, data):
                if query.tail:
                    clone = runs.live[end]
                    clone[:] = run
                    clone[STATE], clone[HEAD] = TAIL, write(event, run[HEAD], -1, rows, counts)
                    end += 1
                    counts[RUNS] += 1
                    counts[AT_C] += 1
                else:
                    _match(event, run, query, merges, runs, rows, counts)
                    matched = True
            if takes(event, run[VALUE], data, query):
                run[HEAD] = write(event, run[HEAD], -1, rows, counts)
                run[VALUE], run[LAST] = next_value(event, run[VALUE], data, query), data.price[event]
                stays = True
        if stays:
            if kept != number:
                runs.live[kept] = run
            kept += 1
    for number in range(before, end):
        runs.live[kept] = runs.live[number]
        kept += 1
    runs.number[0] = kept
    return matched


@step
def _merge(runs: Runs, rows: Buffer, counts: Ints) -> None:
    """Runs with the same values to compare later events with become one."""
    kept = 0
    for number in range(runs.number[0]):
        run = runs.live[number]
        merged = False
        for other in range(kept):
            into = runs.live[other]
            if into[VALUE] == run[VALUE]:
                into[HEAD] = write(-1, into[HEAD], run[HEAD], rows, counts)
                _unite(into, run, runs.younger)
                counts[MERGED] += 1
                merged = True
                break
        if not merged:
            if kept != number:
                runs.live[kept] = run
            kept += 1
    runs.number[0] = kept


@step
def _unite(into: Ints, run: Ints, younger: Ints) -> None:
    """The starts of both in one list, in order."""
    left, right = into[OLDEST], run[OLDEST]
    lefts, rights = into[MEMBERS], run[MEMBERS]
    into[MEMBERS] = lefts + rights
    into[OLDEST] = min(left, right)
    last = -1
    while lefts > 0 or rights > 0:
        if rights == 0 or (lefts > 0 and left < right):
            chosen, lefts, left = left, lefts - 1, younger[left]
        else:
            chosen, rights, right = right, rights - 1, younger[right]
        if last >= 0:
            younger[last] = chosen
        last = chosen
    into[YOUNGEST] = last


@step
def _match(event: int, run: Ints, query: Closure, merges: bool, runs: Runs, rows: Buffer, counts: Ints) -> None:
    """The matches that an event completes, one for each start that has not expired."""
    if not query.non_overlap:
        counts[MATCHES] += run[MEMBERS]
    if query.constructs and merges:
        counts[REFERENCES] += _retrieve_all(event, run[HEAD], query, runs.branches, rows)
    elif query.constructs:
        rows.match[0] = event
        counts[REFERENCES] += retrieve(run[HEAD], 1, rows)


@step
def _retrieve_all(event: int, entry: int, query: Closure, branches: Ints, rows: Buffer) -> int:
    """Walk the buffer back along every path whose start is in the window; the events of all these matches."""
    mask = rows.event.size - 1
    references, waiting, length = 0, 0, 1
    rows.match[0] = event
    while True:
        slot = entry & mask
        selected = rows.event[slot]
        if selected < 0:
            branches[waiting, 0], branches[waiting, 1] = rows.other[slot], length
            waiting += 1
            entry = rows.before[slot]
            continue
        if event - selected < query.window:
            rows.match[length] = selected
            length += 1
            entry = rows.before[slot]
            if entry >= 0:
                continue
            references += length
        if waiting == 0:
            return references
        waiting -= 1
        entry, length = branches[waiting, 0], branches[waiting, 1]
