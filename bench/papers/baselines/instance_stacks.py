"""Active instance stacks (SASE §4.1), by key (PAIS, §4.2.1) or with one key for all (AIS).

Window and predicates are tested in scan, in construction or in selection, as the query says (§4.2.2, §4.3). That is
what the product's kernel does too; this one has the plain loops of the other baselines around it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bench.papers.baselines.compiling import compiled, step
from bench.papers.baselines.sequences import (
    BEGUN,
    INTERSECTED,
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


class Stacks(NamedTuple):
    """The stacks of all keys and places, linked."""

    event: Ints  #  [instance]
    below: Ints  #  [instance]: the one below it in its stack
    recent: Ints  # [instance]: the newest one of the previous place when it came (RIP)
    top: Ints  #    [key, place]


def stacks(events: int, keys: int, length: int) -> Stacks:
    """Empty ones."""
    event, below, recent = (np.empty(events, np.int64) for _ in range(3))
    return Stacks(event, below, recent, np.full((keys, length), -1, np.int64))


def partitioned(events: Events, query: Query, key: Ints | None = None) -> Ints:
    """Find all sequences; without keys there is one stack a place. Gives the counters."""
    own = np.zeros(events.time.size, np.int64) if key is None else key
    out = outputs(query.length)
    _scan(events, own, query, stacks(events.time.size, int(own.max()) + 1, query.length), out)
    return out.counts


def multi_partitioned(events: Events, query: Query, keys: tuple[Ints, Ints], *, nested: bool) -> Ints:
    """Multi-PAIS (§4.2.2): stacks by each of two attributes; an event needs an instance that is in both stacks.

    Construction goes by the first attribute alone, so selection must test the second. The paper does not say how it
    intersects: `nested` looks for each instance of one stack in the other, as lists do; otherwise both are walked once,
    since both are in order.
    """
    out = outputs(query.length)
    first, second = (stacks(events.time.size, int(key.max()) + 1, query.length) for key in keys)
    _scan_both(events, keys, query, (first, second), nested, out)
    return out.counts


@compiled
def _scan(events: Events, key: Ints, query: Query, own: Stacks, out: Outputs) -> None:
    events, key, query, own, out = borrowed(events), borrowed(key), borrowed(query), borrowed(own), borrowed(out)
    size = 0
    for event in range(events.time.size):
        place = events.place[event]
        if place < 0:
            continue
        recent = -1
        if place > 0:
            recent = _newest(event, key[event], place, events, query, own)
            if recent < 0:
                continue
        if place == query.length - 1:
            construct(event, recent, events, query, own, out)
        else:
            _push(size, event, recent, key[event], place, own)
            out.counts[PUSHED] += 1
            size += 1


@compiled
def _scan_both(
    events: Events,
    keys: tuple[Ints, Ints],
    query: Query,
    both: tuple[Stacks, Stacks],
    nested: bool,
    out: Outputs,
) -> None:
    events, keys, query, out = borrowed(events), borrowed(keys), borrowed(query), borrowed(out)
    first, second = borrowed(both[0]), borrowed(both[1])
    size = 0
    for event in range(events.time.size):
        place = events.place[event]
        if place < 0:
            continue
        recent = -1
        if place > 0:
            recent = _newest(event, keys[0][event], place, events, query, first)
            other = _newest(event, keys[1][event], place, events, query, second)
            if nested:
                common = _look_up_each(event, recent, other, events, query, (first, second), out.counts)
            else:
                common = _walk_both(event, recent, other, events, query, (first, second), out.counts)
            if common == 0:
                continue
        if place == query.length - 1:
            construct(event, recent, events, query, first, out)
        else:
            _push(size, event, recent, keys[0][event], place, first)
            _push(size, event, -1, keys[1][event], place, second)
            out.counts[PUSHED] += 2
            size += 1


@step
def _newest(event: int, key: int, place: int, events: Events, query: Query, own: Stacks) -> int:
    """The top of the previous place's stack; −1: none, or outside the window, and then the whole stack is pruned."""
    recent = own.top[key, place - 1]
    if recent >= 0 and query.in_scan and events.time[event] - events.time[own.event[recent]] >= query.window:
        own.top[key, place - 1] = -1
        return -1
    return int(recent)


@step
def _push(instance: int, event: int, recent: int, key: int, place: int, own: Stacks) -> None:
    own.event[instance] = event
    own.below[instance] = own.top[key, place]
    own.recent[instance] = recent
    own.top[key, place] = instance


@step
def _walk_both(
    event: int, one: int, other: int, events: Events, query: Query, both: tuple[Stacks, Stacks], counts: Ints
) -> int:
    """Cross-attribute transition filtering: how many instances two stacks have in common."""
    first, second = both
    common = 0
    while one >= 0 and other >= 0:
        counts[INTERSECTED] += 1
        if query.in_scan and events.time[event] - events.time[first.event[min(one, other)]] >= query.window:
            break
        if one == other:
            common += 1
            one, other = first.below[one], second.below[other]
        elif one > other:
            one = first.below[one]
        else:
            other = second.below[other]
    return common


@step
def _look_up_each(
    event: int, one: int, other: int, events: Events, query: Query, both: tuple[Stacks, Stacks], counts: Ints
) -> int:
    first, second = both
    common = 0
    while one >= 0 and not (query.in_scan and events.time[event] - events.time[first.event[one]] >= query.window):
        instance = other
        while instance >= 0:
            counts[INTERSECTED] += 1
            if query.in_scan and events.time[event] - events.time[second.event[instance]] >= query.window:
                break
            if instance == one:
                common += 1
                break
            instance = second.below[instance]
        one = first.below[one]
    return common


@step
def construct(event: int, recent: int, events: Events, query: Query, own: Stacks, out: Outputs) -> None:
    """Depth first from an event that completes sequences, down the stacks (§4.1)."""
    out.counts[BEGUN] += 1
    last = query.length - 1
    bound, cursor = out.bound, out.cursor
    bound[last] = event
    if not hold_at(query.during, last, bound, events.columns):
        return
    place = last - 1
    cursor[place] = recent
    while place < last:
        instance = cursor[place]
        if instance < 0:
            place += 1
            if place < last:
                cursor[place] = own.below[cursor[place]]
            continue
        out.counts[VISITED] += 1
        bound[place] = own.event[instance]
        if query.in_construction and events.time[event] - events.time[bound[place]] >= query.window:
            cursor[place] = -1
        elif not hold_at(query.during, place, bound, events.columns):
            cursor[place] = own.below[instance]
        elif place == 0:
            emit(query, events, out)
            cursor[place] = own.below[instance]
        else:
            cursor[place - 1] = own.recent[instance]
            place -= 1
