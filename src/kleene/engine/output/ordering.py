"""The order of results, and when matches start and end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kleene.engine.output.matches import ColumnarMatches, Matches
from kleene.engine.output.path_matches import PathMatches
from kleene.engine.state.memory import empty
from kleene.kernels.expression import Ints
from kleene.kernels.gathering import gather
from kleene.kernels.ordering import (
    EQUAL,
    IN_ORDER,
    Ranked,
    columns_in_order,
    is_in_order,
    leading_keys,
    order_by_spans,
    sort_groups,
    spans_of_columns,
    spans_of_matches,
)


@dataclass(frozen=True, eq=False)
class Spans:
    """When events happened, by event number; numbers are in canonical order."""

    # Simultaneous events have the same step.
    step: Ints
    start: Ints
    end: Ints


class Times(NamedTuple):
    """When matches start, and when they end."""

    start: Ints
    end: Ints


@dataclass(frozen=True, eq=False)
class Ordered:
    """Matches by end, then by start from the latest, then by events in pattern order."""

    # [place]: the number of a match; None: they stand in this order, from `first` on.
    order: Ints | None
    size: int
    # None: a match starts with its first event, and ends with its last one.
    times: Times | None
    first: int = 0

    @property
    def numbers(self) -> Ints:
        """[place]: the number of a match."""
        return np.arange(self.first, self.first + self.size) if self.order is None else self.order

    def part(self, begin: int, end: int) -> Ordered:
        """Those at some places."""
        order = None if self.order is None else self.order[begin:end]
        times = None if self.times is None else Times(self.times.start[begin:end], self.times.end[begin:end])
        return Ordered(order, end - begin, times, self.first + begin)

    def since(self, moment: int, matches: Matches, spans: Spans) -> Ordered:
        """Those that end then or later."""
        if self.times is not None:
            begin = np.searchsorted(self.times.end, moment)
        else:
            begin = np.searchsorted(matches.last, np.searchsorted(spans.end, moment))
        return self.part(int(begin), self.size)


def in_order(matches: Matches, spans: Spans) -> Ordered:
    """The order in which results stand."""
    size = len(matches)
    if isinstance(matches, ColumnarMatches) and matches.in_order:
        return Ordered(None, size, None)
    times = spans_of(matches, spans)
    start, end = times
    if matches.later is not None:
        end += matches.later
    if isinstance(matches, ColumnarMatches) and columns_in_order(matches.buffer, start, end):
        return Ordered(None, size, times)
    if isinstance(matches, PathMatches):
        order = np.arange(size)
        told = order_by_spans(start, end, order)
        if told != EQUAL:
            in_place = told == IN_ORDER
            return Ordered(None, size, times) if in_place else Ordered(order, size, Times(start[order], end[order]))
    ranked = Ranked(matches.offsets, matches.events, matches.variables, start)
    if is_in_order(ranked, end):
        return Ordered(None, size, times)
    order = np.arange(size)
    if not np.all(end[1:] >= end[:-1]):
        order = np.argsort(end, kind="stable")
    sort_groups(ranked, end, _keys(ranked, end, len(spans.end)), order, empty(size, np.int64))
    return Ordered(order, size, Times(start[order], end[order]))


def spans_of(matches: Matches, spans: Spans) -> Times:
    """[match]: when it starts, and when it ends."""
    size = len(matches)
    times = start, end = Times(empty(size, np.int64), empty(size, np.int64))
    if matches.follows:
        gather(spans.start, matches.first, start, False)
        gather(spans.end, matches.last, end, False)
        return times
    lasting = spans.start is not spans.end and not np.array_equal(spans.start, spans.end)
    if isinstance(matches, ColumnarMatches):
        spans_of_columns(matches.buffer, spans.start, spans.end, lasting, start, end)
    else:
        spans_of_matches(matches.offsets, matches.events, spans.start, spans.end, lasting, start, end)
    return times


def distinct(matches: Matches, spans: Spans) -> Matches:
    """Each match once, since a result is a set: two alternatives may give the same one (`B* | C*`, both empty)."""
    order = in_order(matches, spans).numbers
    sizes = np.diff(matches.offsets)[order]
    pairs = np.flatnonzero(sizes[1:] == sizes[:-1])
    if not len(pairs):
        return matches
    # Equal matches stand side by side: their references, one pair of neighbours after the other.
    lengths = sizes[pairs]
    begins = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    along = np.arange(lengths.sum()) - np.repeat(begins, lengths)
    one, other = (np.repeat(matches.offsets[order[pairs + shift]], lengths) + along for shift in (0, 1))
    alike = (matches.events[one] == matches.events[other]) & (matches.variables[one] == matches.variables[other])
    repeated = order[pairs[np.logical_and.reduceat(alike, begins)] + 1]
    return matches if not len(repeated) else matches.take(np.setdiff1d(order, repeated))


def _keys(ranked: Ranked, end: Ints, events: int) -> Ints:
    """[match]: as much of its sort key as fits 63 bits: its length, its first reference, its second."""
    length_bits = int((end - ranked.starts).view(np.uint64).max()).bit_length()
    event_bits = events.bit_length()
    bits = event_bits + (int(ranked.variables.max()) + 1).bit_length()
    number = min(2, max(0, 63 - length_bits) // bits)
    keys = empty(len(end), np.int64)
    leading_keys(ranked, end, max(0, length_bits - 63), number, event_bits, bits, keys)
    return keys
