"""SASE+'s query of §6 for the algorithms that are compared: SEQ(STOCK+ a[], STOCK b), and with `tail` STOCK c after it.

WHERE [symbol] ∧ a[1].price % 500 = 0 ∧ an iterator predicate on prices ∧ b.volume < 150, and for c (Expt 4)
c.price > a[1].price ∧ c.price < a[a.LEN].price. The window counts events of a partition.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bench.papers.baselines.compiling import step

Ints = npt.NDArray[np.int64]

# What is counted: matches, events in them, steps of runs (a run looks at an event), runs begun or cloned, runs merged
# into another, and entries written to the match buffer; events that a partition had already read; runs that came to c,
# the steps of these, and those of them whose window closed there.
MATCHES, REFERENCES, STEPS, RUNS, MERGED, ENTRIES, AGAIN, AT_C, STEPS_AT_C, CLOSED_AT_C, COUNTERS = range(11)
# Iterator predicates (Table 1): none, more than the price before, more than the least price so far.
P1, P2, P3 = 1, 2, 3
CONTIGUOUS, NEXT = 2, 3


class Ticks(NamedTuple):
    """The events of one partition; a window is a number of them."""

    price: Ints  #  [event]
    volume: Ints  # [event]


class Closure(NamedTuple):
    predicate: int
    strategy: int
    window: int
    tail: bool
    non_overlap: bool
    constructs: bool  # whether matches are retrieved from the buffer


class Buffer(NamedTuple):
    """The shared match buffer (§5.1): entries of all runs of a partition, in a ring, since what expired is used again.

    An entry stands for a pointer of the paper's buffer, of one run or of several that became one.
    """

    event: Ints  #  [entry]: −1 where two runs became one
    before: Ints  # [entry]: the entry of the event selected before; −1: none
    other: Ints  #  [entry]: where two runs became one, the other's
    size: Ints  #   [1]: how many were ever written
    match: Ints  #  [place]: the match under construction, last event first


def ticks(table: pa.Table) -> list[Ticks]:
    """The partitions of a stream, by symbol: no algorithm looks at two of them together."""
    columns = {name: table.column(name).to_numpy().astype(np.int64) for name in ("symbol", "price", "volume")}
    own = [np.flatnonzero(columns["symbol"] == symbol) for symbol in np.unique(columns["symbol"])]
    return [Ticks(columns["price"][rows], columns["volume"][rows]) for rows in own]


def without_starts(data: Ticks) -> Ticks:
    """The same events at prices that compare alike, none of which starts a run."""
    return Ticks(500 * data.price + 1, data.volume)


def most_starts(data: Ticks, span: int) -> int:
    """How many runs can start within so many events of a partition."""
    begun = np.concatenate(([0], np.cumsum(data.price % 500 == 0)))
    return int((begun[min(span, data.price.size) :] - begun[: begun.size - min(span, data.price.size)]).max())


def buffer(entries: int, longest: int) -> Buffer:
    room = 1 << (entries - 1).bit_length()
    event, before, other = (np.empty(room, np.int64) for _ in range(3))
    return Buffer(event, before, other, np.zeros(1, np.int64), np.empty(longest, np.int64))


@step
def starts(event: int, data: Ticks) -> bool:
    return bool(data.price[event] % 500 == 0)


@step
def takes(event: int, value: int, data: Ticks, query: Closure) -> bool:
    """Whether a run may select an event into a[i]; of the events before it this needs one value."""
    return query.predicate == P1 or data.price[event] > value


@step
def next_value(event: int, value: int, data: Ticks, query: Closure) -> int:
    """What later events are compared with when this one is selected; equal values are one for merging."""
    if query.predicate == P1:
        return 0
    return int(data.price[event]) if query.predicate == P2 else min(value, data.price[event])


@step
def first_value(event: int, data: Ticks, query: Closure) -> int:
    return 0 if query.predicate == P1 else int(data.price[event])


@step
def ends_closure(event: int, data: Ticks) -> bool:
    return bool(data.volume[event] < 150)


@step
def ends_tail(event: int, lowest: int, highest: int, data: Ticks) -> bool:
    return bool(lowest < data.price[event] < highest)


@step
def write(event: int, before: int, other: int, rows: Buffer, counts: Ints) -> int:
    """Put an event into the match buffer."""
    entry = rows.size[0]
    slot = entry & (rows.event.size - 1)
    rows.event[slot] = event
    rows.before[slot] = before
    rows.other[slot] = other
    rows.size[0] = entry + 1
    counts[ENTRIES] += 1
    return int(entry)


@step
def retrieve(entry: int, length: int, rows: Buffer) -> int:
    """Copy the events from an entry back to the start of its run behind what the match has; the match's length."""
    while entry >= 0:
        slot = entry & (rows.event.size - 1)
        rows.match[length] = rows.event[slot]
        length += 1
        entry = rows.before[slot]
    return length
