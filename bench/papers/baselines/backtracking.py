"""SASE+'s backtrack algorithm (§5.2.3): one run a partition at a time, others wait on a stack until it ends.

A run that ends, in a match or not, is followed by the one postponed last, which reads the partition's events again from
where it was postponed. With NON_OVERLAP the shortest match that ends first is wanted (§6.2): after a match, runs that
wait are followed only as far as they could end earlier; then reading goes on behind the match.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bench.papers.baselines.compiling import compiled, step
from bench.papers.baselines.stock_closures import (
    AGAIN,
    AT_C,
    CLOSED_AT_C,
    COUNTERS,
    MATCHES,
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
    next_value,
    retrieve,
    starts,
    takes,
    write,
)
from kleene.kernels.jit import borrowed

# States of a run: before a[1]; at a[i]; at a[i] when the event at hand was already followed as b; at c.
BEGIN, TAKE, TAKE_ONLY, TAIL = range(4)
# Fields of a run: `POSITION` is that of the event to read next, `FIRST` the price of a[1] and `LAST` of a[a.LEN];
# `HELD` is how much of the buffer was in use when it was postponed: what came later belongs to runs that have ended.
STATE, POSITION, START, HEAD, VALUE, FIRST, LAST, HELD, FIELDS = range(9)
# How following a run came out, if not with a match.
FAILED, WAITS = -1, -2
NO_BOUND = np.iinfo(np.int64).max


class Runs(NamedTuple):
    waiting: Ints  #   [run, field]: the stack of postponed runs
    number: Ints  #    [1]: how many wait
    singleton: Ints  # [field]: the run that is followed


def backtracked(data: Ticks, query: Closure) -> Ints:
    """Find the matches of a partition; gives the counters."""
    counts = np.zeros(COUNTERS, np.int64)
    # A run postpones at most one other before it ends, so not more can wait than have started.
    most = int(np.count_nonzero(data.price % 500 == 0)) + 2
    runs = Runs(np.empty((most, FIELDS), np.int64), np.zeros(1, np.int64), np.zeros(FIELDS, np.int64))
    _read(data, query, runs, buffer(most * (query.window + 2), query.window + 2), counts)
    return counts


@compiled
def _read(data: Ticks, query: Closure, runs: Runs, rows: Buffer, counts: Ints) -> None:
    """Offer the events as they arrive: to the singleton run, and each time that it ends to the run postponed last.

    When no more events come, a run that waits for one has failed.
    """
    data, query, runs, rows, counts = borrowed(data), borrowed(query), borrowed(runs), borrowed(rows), borrowed(counts)
    running = False
    arrived = unread = 0
    size = data.price.size
    while arrived <= size:
        if arrived < size and starts(arrived, data):
            _postpone_start(arrived, runs, rows)
            counts[RUNS] += 1
        # With NON_OVERLAP, the end of the first match found so far.
        bound = NO_BOUND
        while running or runs.number[0] > 0:
            if not running:
                _resume(runs, rows)
            position = runs.singleton[POSITION]
            end = _follow(min(arrived, bound - 1, size - 1), data, query, runs, rows, counts)
            counts[AGAIN] += max(0, min(runs.singleton[POSITION], unread) - position)
            unread = max(unread, runs.singleton[POSITION])
            running = end == WAITS and bound == NO_BOUND and arrived < size
            if running:
                break
            if end >= 0 and query.non_overlap:
                bound = end
        if bound < NO_BOUND:
            counts[MATCHES] += 1
            runs.number[0] = 0
            rows.size[0] = 0
            arrived = bound
        arrived += 1


@step
def _postpone_start(position: int, runs: Runs, rows: Buffer) -> None:
    run = runs.waiting[runs.number[0]]
    runs.number[0] += 1
    run[STATE], run[POSITION], run[START], run[HEAD], run[HELD] = BEGIN, position, position, -1, rows.size[0]


@step
def _postpone_take(runs: Runs, rows: Buffer) -> None:
    run = runs.waiting[runs.number[0]]
    runs.number[0] += 1
    run[:] = runs.singleton
    run[STATE], run[HELD] = TAKE_ONLY, rows.size[0]


@step
def _resume(runs: Runs, rows: Buffer) -> None:
    """Backtrack."""
    runs.number[0] -= 1
    runs.singleton[:] = runs.waiting[runs.number[0]]
    rows.size[0] = runs.singleton[HELD]


@step
def _follow(until: int, data: Ticks, query: Closure, runs: Runs, rows: Buffer, counts: Ints) -> int:
    """Let the singleton run read up to an event; where its match ends, or FAILED, or WAITS for the next event."""
    run = runs.singleton
    while run[POSITION] <= until:
        event = run[POSITION]
        counts[STEPS] += 1
        if event - run[START] >= query.window:
            counts[CLOSED_AT_C] += run[STATE] == TAIL
            return FAILED
        run[POSITION] += 1
        if run[STATE] == BEGIN:
            run[STATE], run[HEAD] = TAKE, write(event, -1, -1, rows, counts)
            run[VALUE], run[FIRST], run[LAST] = first_value(event, data, query), data.price[event], data.price[event]
            continue
        if run[STATE] == TAIL:
            counts[STEPS_AT_C] += 1
            if ends_tail(event, run[FIRST], run[LAST], data):
                return _match(event, run, query, rows, counts)
            if query.strategy != NEXT:
                return FAILED
            continue
        taken = takes(event, run[VALUE], data, query)
        stays = taken or query.strategy == NEXT
        if run[STATE] == TAKE and ends_closure(event, data):
            if stays:
                run[POSITION] = event
                _postpone_take(runs, rows)
                run[POSITION] = event + 1
                counts[RUNS] += 1
            if not query.tail:
                return _match(event, run, query, rows, counts)
            run[STATE], run[HEAD] = TAIL, write(event, run[HEAD], -1, rows, counts)
            counts[AT_C] += 1
        elif stays:
            run[STATE] = TAKE
            if taken:
                run[HEAD] = write(event, run[HEAD], -1, rows, counts)
                run[VALUE], run[LAST] = next_value(event, run[VALUE], data, query), data.price[event]
        else:
            return FAILED
    return WAITS


@step
def _match(event: int, run: Ints, query: Closure, rows: Buffer, counts: Ints) -> int:
    if not query.non_overlap:
        counts[MATCHES] += 1
    if query.constructs:
        rows.match[0] = event
        counts[REFERENCES] += retrieve(run[HEAD], 1, rows)
    return event
