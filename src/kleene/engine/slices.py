"""A table on several cores: slices of time, or of keys where there is no window, matched side by side.

A slice of time begins with the events that windows of its own matches may reach back to, which are the last ones of the
slice before it. It gives the matches that end in it, so that those of all slices, one after the other, are in the order
of results: the same rows, however many slices there are. Matches of slices of keys are put in order by their ends.
"""

from __future__ import annotations

import os
import sys
import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from itertools import pairwise
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kleene.engine.intake.keys import KeyCoder
from kleene.engine.intake.strings import StringPool
from kleene.engine.intake.timeline import integers
from kleene.frames.arrow import as_integers
from kleene.frames.numbers import to_arrow
from kleene.kernels.expression import Ints
from kleene.kernels.gathering import Rows
from kleene.kernels.scanning import STRICT, how_ends_follow
from kleene.kernels.timeline import in_time
from kleene.pattern.schema import Schema
from kleene.plan.settings import Settings

Flags = npt.NDArray[np.bool_]
S = TypeVar("S")
T = TypeVar("T")

# How long a thread works in the interpreter while another waits.
_TURN_SECONDS = 0.0001

# Fewer rows than this are matched sooner than a second slice is set up; fewer than that, where a window holds few rows
# of a key: then rows take little more time than Python takes for a slice, which has but one core.
FEWEST_ROWS, FEWEST_SPARSE_ROWS = 1 << 16, 1 << 21
_DENSE = 16
# Of a slice's own rows, the share that the slice before it may have to match as well.
MOST_TWICE = 0.5
# Rows by which a table is judged before all of them are read: by their times, and by their keys.
_LOOKED_AT, _KEYS_LOOKED_AT = 64, 256


class Slice(NamedTuple):
    """Rows of a table, in their order."""

    rows: pa.Table
    # It gives the matches that end then or later; None: all of them.
    since: int | None = None
    # [row]: whether it is of the slice's keys; None: all of them are.
    own: Flags | None = None
    # How many of its rows belong to the slices before it.
    halo: int = 0


class SliceEvents(NamedTuple):
    """What the useful events of a slice of time say about the order of its rows."""

    # Whether they came in the order of their ends.
    in_order: bool
    ends: Ints
    # [event]: its row; None: all rows are useful.
    places: Rows | None

    def halo_of(self, part: Slice) -> int:
        """How many of them belong to the slices before."""
        return part.halo if self.places is None else int(np.count_nonzero(self.places < part.halo))


def cores(settings: Settings) -> int:
    """How many cores a run may use: as many as it is told, or all that this process has."""
    if settings.threads is not None:
        return settings.threads
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def slices_of(table: pa.Table, schema: Schema, horizon: int, number: int, key: tuple[str, ...] = ()) -> list[Slice]:
    """At most so many slices: fewer where rows are few or in no order, or where windows are as long as slices.

    Few times are looked at, so whether slices are right is known when their events are (`are_right`).

    horizon   how long before a slice an event may end that its matches need
    key       the columns that the events of a match agree in
    """
    size = table.num_rows
    number = min(number, size // FEWEST_ROWS)
    if number < 2:
        return [Slice(table)]
    ends = as_integers(table.column(schema.time))

    def end(row: int) -> int:
        return ends[row].as_py()  # type: ignore[no-any-return]

    seen = [end(row * size // _LOOKED_AT) for row in range(_LOOKED_AT)]
    if any(later < earlier for earlier, later in pairwise(seen)):
        return [Slice(table)]
    # Events that end together are in one slice.
    times = [end(each * size // number) for each in range(1, number)]
    begins = [bisect_left(range(size), time, key=end) for time in times]
    earliest = [bisect_left(range(size), in_time(time - horizon), key=end) for time in times]
    stops = [*begins[1:], size]
    if any(
        begin - first > MOST_TWICE * (stop - begin) for first, begin, stop in zip(earliest, begins, stops, strict=True)
    ):
        return slices_of(table, schema, horizon, number - 1, key)
    if size // number < FEWEST_SPARSE_ROWS and (begins[0] - earliest[0]) * _alike(table, key) < _DENSE:
        return [Slice(table)]
    return [
        Slice(table.slice(0, begins[0])),
        *(
            Slice(table.slice(first, stop - first), time, halo=begin - first)
            for first, begin, stop, time in zip(earliest, begins, stops, times, strict=True)
        ),
    ]


def _alike(table: pa.Table, key: tuple[str, ...]) -> float:
    """How likely two rows have the same key, judged by some."""
    if not key:
        return 1.0
    number = min(table.num_rows, _KEYS_LOOKED_AT)
    some = table.select(key).take(pa.array(np.arange(number) * table.num_rows // number))
    counts = Counter(zip(*(column.to_pylist() for column in some.columns), strict=True)).values()
    return float(sum(count * (count - 1) for count in counts) / max(number * (number - 1), 1))


def are_right(slices: Sequence[Slice], events: Sequence[SliceEvents], horizon: int) -> bool:
    """Whether slices of time hold the events that they should: a look at all rows would have cut the same ones."""
    own: list[Ints] = []
    for number, (part, each) in enumerate(zip(slices, events, strict=True)):
        if not each.in_order:
            return False
        halo = each.halo_of(part)
        if part.since is not None:
            reached = in_time(part.since - horizon)
            before = sum(len(ends) - int(np.searchsorted(ends, reached)) for ends in own)
            # What is in the halo ends before the slice begins, the rest does not, and no event is missing there.
            first, last = np.searchsorted(each.ends, [reached, part.since])
            if last != halo or halo - min(first, halo) != before:
                return False
        if number + 1 < len(slices) and len(each.ends) and each.ends[-1] >= slices[number + 1].since:
            return False
        own.append(each.ends[halo:])
    return True


def slices_of_keys(table: pa.Table, schema: Schema, key: tuple[str, ...], number: int) -> list[Slice]:
    """At most so many slices by key: one where rows are few, or where some end together.

    What ends together is in the order of its events, of which no slice sees all.
    """
    number = min(number, table.num_rows // FEWEST_ROWS)
    if number < 2 or how_ends_follow(integers(table.column(schema.time))) != STRICT:
        return [Slice(table)]
    codes = KeyCoder(key, StringPool()).codes(table)
    slices = codes % number
    return [Slice(table, own=slices == each) for each in range(number)]


def by_end(parts: Sequence[pa.Table]) -> pa.Table:
    """The matches of slices of keys in the order of results; those of one slice are."""
    together = pa.concat_tables(parts)
    order = np.argsort(integers(together.column("end")), kind="stable")
    return together.take(to_arrow(order))


_turns = threading.Lock()


@contextmanager
def _quick_turns() -> Iterator[None]:
    """Let threads take turns more often: one that comes back from a kernel waits five milliseconds for its turn.

    Only the first of several runs at once does so, and the last to end may have usual turns.
    """
    if not _turns.acquire(blocking=False):
        yield
        return
    usual = sys.getswitchinterval()
    try:
        sys.setswitchinterval(min(usual, _TURN_SECONDS))
        yield
    finally:
        sys.setswitchinterval(usual)
        _turns.release()


class SideBySide:
    """Threads that work on slices, one each; kernels run without Python's lock."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool = pool

    def each(self, work: Callable[[S], T], slices: Sequence[S]) -> list[T]:
        """The result of some work on each; where several fail, the problem of the first one in time is raised."""
        others = [self._pool.submit(copy_context().run, work, each) for each in slices[1:]]
        return [work(slices[0]), *(other.result() for other in others)]


@contextmanager
def side_by_side(number: int) -> Iterator[SideBySide]:
    """A thread for each of so many slices."""
    with _quick_turns(), ThreadPoolExecutor(number - 1) as pool:
        yield SideBySide(pool)
