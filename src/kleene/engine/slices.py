"""A table on several cores: slices of time, or of keys where there is no window, matched side by side.

A slice of time begins with the events that windows of its own matches may reach back to, which are the last ones of the
slice before it. It gives the matches that end in it, so that those of all slices, one after the other, are in the order
of results: the same rows, however many slices there are. Matches of slices of keys are put in order by their ends.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kleene.engine.intake.keys import KeyCoder
from kleene.engine.intake.strings import StringPool
from kleene.engine.intake.timeline import integers
from kleene.frames.numbers import to_arrow
from kleene.kernels.scanning import SHUFFLED, STRICT, how_ends_follow
from kleene.kernels.timeline import in_time
from kleene.pattern.schema import Schema
from kleene.plan.settings import Settings

Flags = npt.NDArray[np.bool_]
T = TypeVar("T")

# How long a thread works in the interpreter while another waits.
_TURN_SECONDS = 0.0005

# Fewer rows than this are matched sooner than a second slice is set up.
FEWEST_ROWS = 1 << 16
# Of a slice's own rows, the share that the slice before it may have to match as well.
MOST_TWICE = 0.5


class Slice(NamedTuple):
    """Rows of a table, in their order."""

    rows: pa.Table
    # It gives the matches that end then or later; None: all of them.
    since: int | None = None
    # [row]: whether it is of the slice's keys; None: all of them are.
    own: Flags | None = None


def cores(settings: Settings) -> int:
    """How many cores a run may use: as many as it is told, or all that this process has."""
    if settings.threads is not None:
        return settings.threads
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def slices_of(table: pa.Table, schema: Schema, horizon: int, number: int) -> list[Slice]:
    """At most so many slices: fewer where rows are few or in no order, or where windows are as long as slices.

    horizon   how long before a slice an event may end that its matches need
    """
    number = min(number, table.num_rows // FEWEST_ROWS)
    if number < 2:
        return [Slice(table)]
    ends = integers(table.column(schema.time))
    if how_ends_follow(ends) == SHUFFLED:
        return [Slice(table)]
    # Events that end together are in one slice.
    times = ends[np.arange(1, number) * len(ends) // number]
    begins = np.searchsorted(ends, times)
    earliest = np.searchsorted(ends, np.array([in_time(each - horizon) for each in times.tolist()]))
    stops = np.append(begins[1:], len(ends))
    if np.any(begins - earliest > MOST_TWICE * (stops - begins)):
        return slices_of(table, schema, horizon, number - 1)
    others = zip(earliest.tolist(), stops.tolist(), times.tolist(), strict=True)
    return [
        Slice(table.slice(0, int(begins[0]))),
        *(Slice(table.slice(first, stop - first), since) for first, stop, since in others),
    ]


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


def side_by_side(work: Callable[[Slice], T], slices: Sequence[Slice]) -> list[T]:
    """The result of some work on each slice, a thread a slice; kernels run without Python's lock.

    Where several fail, the problem of the first one in time is raised.
    """
    with _quick_turns(), ThreadPoolExecutor(len(slices) - 1) as pool:
        others = [pool.submit(copy_context().run, work, each) for each in slices[1:]]
        return [work(slices[0]), *(other.result() for other in others)]
