"""A sequence as a stream processor runs it (SASE §5.4, TelegraphCQ): a symmetric n-way join over sliding windows.

An event is joined by its key with the events of all other types in the window; whether they are in the order of the
sequence is tested only on whole joined rows, since joins know equality alone. A second equality is a filter right after
the join of two streams.
"""

from __future__ import annotations

from bench.papers.baselines.compiling import compiled, step
from bench.papers.baselines.instance_stacks import Stacks, stacks
from bench.papers.baselines.sequences import BEGUN, PUSHED, VISITED, Events, Ints, Outputs, Query, emit, outputs
from kleene.kernels.jit import borrowed


def joined(events: Events, query: Query, key: Ints, filters: Ints) -> Ints:
    """Find all sequences; `filters` are the columns of further equalities. Gives the counters."""
    out = outputs(query.length)
    own = stacks(events.time.size, int(key.max()) + 1, query.length)
    _join(events, key, filters, query, own, out)
    return out.counts


@compiled
def _join(events: Events, key: Ints, filters: Ints, query: Query, own: Stacks, out: Outputs) -> None:
    events, query, own, out = borrowed(events), borrowed(query), borrowed(own), borrowed(out)
    size = 0
    for event in range(events.time.size):
        place = events.place[event]
        if place < 0:
            continue
        own.event[size] = event
        own.below[size] = own.top[key[event], place]
        own.top[key[event], place] = size
        size += 1
        out.counts[PUSHED] += 1
        _probe(event, key[event], events, filters, query, own, out)


@step
def _probe(event: int, key: int, events: Events, filters: Ints, query: Query, own: Stacks, out: Outputs) -> None:
    """Join an event with all other streams, one after the other."""
    out.counts[BEGUN] += 1
    bound, cursor = out.bound, out.cursor
    bound[events.place[event]] = event
    most = query.length - 2
    stream = 0
    cursor[0] = own.top[key, _other(0, events.place[event])]
    while stream >= 0:
        instance = cursor[stream]
        if instance < 0 or events.time[event] - events.time[own.event[instance]] >= query.window:
            stream -= 1
            if stream >= 0:
                cursor[stream] = own.below[cursor[stream]]
            continue
        out.counts[VISITED] += 1
        bound[_other(stream, events.place[event])] = own.event[instance]
        if stream < most and _equal(own.event[instance], event, filters, events.columns):
            stream += 1
            cursor[stream] = own.top[key, _other(stream, events.place[event])]
            continue
        if stream == most and _equal(own.event[instance], event, filters, events.columns) and _in_order(bound):
            emit(query, events, out)
        cursor[stream] = own.below[instance]


@step
def _other(stream: int, own_place: int) -> int:
    """The place of a stream among those that an event is joined with."""
    return stream if stream < own_place else stream + 1


@step
def _equal(one: int, other: int, filters: Ints, columns: Ints) -> bool:
    for column in filters:  # noqa: SIM110 - compiled, and no generator is
        if columns[column, one] != columns[column, other]:
            return False
    return True


@step
def _in_order(bound: Ints) -> bool:
    for place in range(1, bound.size):  # noqa: SIM110 - compiled, and no generator is
        if bound[place] <= bound[place - 1]:
            return False
    return True
