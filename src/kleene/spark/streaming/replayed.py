"""Queries of a stream that no engine runs: patterns that are not lines yet, and queries that feed each other.

Their events are held as long as they can matter, and at each watermark the queries are evaluated on all of them again.
What became certain since the last one is given. A match is certain when time has passed its end; where something may
still forbid it, when its window has closed; and what is made of composite events is so much later certain as these are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kleene.errors import NotOnStreams
from kleene.frames.arrow import as_integers
from kleene.frames.numbers import to_arrow, to_numpy
from kleene.lang.tree import OutputMode
from kleene.pattern import nodes
from kleene.pattern.query import BoundQuery
from kleene.plan.settings import Budget
from kleene.spark.slot import Made, Work, made_at_once
from kleene.spark.streaming.segments import read_segment, write_segment

Ints = npt.NDArray[np.int64]
# Longer than any stream, short enough to be added to a time.
_EVER = 1 << 61


@dataclass(frozen=True)
class Waits:
    """How long a query's output is waited for, in steps of the time column.

    window   how long after its start a match is certain; 0: when it has ended
    inputs   how much later than their ends the events are known that other queries make for it
    reach    how long before the start of a match events can matter
    closings how long after its first event a window closes of which it reads the timeouts: there its matches may end
    """

    window: int
    inputs: int
    reach: int
    closings: frozenset[int] = frozenset()

    @property
    def total(self) -> int:
        return self.window + self.inputs


def waits_of(queries: Mapping[int, BoundQuery], order: Sequence[int]) -> dict[int, Waits]:
    """By number, in dependency order."""
    known: dict[int, Waits] = {}
    for number in order:
        query = queries[number]
        makers = [maker for maker in known if queries[maker].into in query.types]
        # A timeout ends when its window closes, and is known as soon as what the window held is.
        late = [maker for maker in known if queries[maker].timeouts in query.types]
        lags = [*(known[maker].total for maker in makers), *(known[maker].inputs for maker in late)]
        reaches = [known[maker].reach for maker in (*makers, *late)]
        windows = {window.size for maker in late if (window := queries[maker].window) is not None}
        known[number] = Waits(
            window=query.window.size if query.window is not None and _decides_late(query) else 0,
            inputs=max(lags, default=0),
            reach=_EVER if query.window is None else 2 * query.window.size + max(reaches, default=0),
            closings=frozenset(windows.union(*(known[maker].closings for maker in makers))),
        )
    return known


def _decides_late(query: BoundQuery) -> bool:
    """Whether a match, or a timeout, is certain only when its window has closed."""
    pattern = query.pattern
    # In a sequence a group is whole when what follows it has come; elsewhere it may still grow.
    followed = isinstance(pattern, nodes.Sequence) and all(isinstance(part, nodes.Leaf) for part in pattern.parts)
    open_ended = query.components[-1:] if followed else query.components
    grows = any(component.kind is nodes.Kind.CLOSURE for component in open_ended)
    return query.timeouts is not None or grows or any(component.negated for component in query.components)


def check_replays(query: BoundQuery, budget: Budget, reason: str) -> None:
    """Refuse a query whose matches depend on more than the events of some time."""
    problem = None
    if query.counts_events or (query.window is None and (budget.state_bytes is None or _decides_late(query))):
        problem = "it has no window of time"
    elif query.output is OutputMode.NON_OVERLAP:
        problem = "what OUTPUT NON_OVERLAP chooses depends on all events before"
    elif query.output is OutputMode.COMPRESSED and _decides_late(query):
        problem = "a row of OUTPUT COMPRESSED is not certain while something may forbid one of its matches"
    if problem is not None:
        raise NotOnStreams(f"`{query.name}` cannot run on a stream: {problem}, and {reason}")


class Replayed:
    def __init__(self, work: Work, numbers: Sequence[int], columns: pa.Schema) -> None:
        self._work = work
        # In the order in which their input is there.
        self.numbers = tuple(number for number in work.bound if number in numbers)
        self._waits = waits_of(work.bound, self.numbers)
        self._events = columns.empty_table()
        self._watermark: int | None = None

    @property
    def horizon(self) -> int:
        return min(_EVER, max(one.reach + one.total for one in self._waits.values()))

    @property
    def held(self) -> int:
        return int(self._events.num_rows)

    @property
    def nbytes(self) -> int:
        return int(self._events.nbytes)

    @property
    def waiting(self) -> pa.Table:
        if self._watermark is None:
            return self._events
        return self._events.filter(pc.greater_equal(as_integers(self._time), self._watermark))

    @property
    def _time(self) -> pa.ChunkedArray:
        return self._events.column(self._work.schema.time)

    @property
    def deadline(self) -> int | None:
        """The first watermark at which something could become certain; perhaps nothing does."""
        end = to_numpy(as_integers(self._time))
        start = end if self._work.schema.start is None else to_numpy(as_integers(self._start))
        moments = np.concatenate(
            [
                moments
                for one in self._waits.values()
                for moments in (
                    end + one.inputs,
                    start + one.total,
                    *(start + closing + one.inputs for closing in one.closings),
                )
            ]
        )
        moments = moments if self._watermark is None else moments[moments >= self._watermark]
        return int(moments.min()) + 1 if len(moments) else None

    @property
    def _start(self) -> pa.ChunkedArray:
        assert self._work.schema.start is not None
        return self._events.column(self._work.schema.start)

    @property
    def expiry(self) -> int | None:
        """The watermark at which all events are forgotten."""
        latest = pc.max(as_integers(self._time)).as_py()
        return None if latest is None or self.horizon == _EVER else int(latest) + self.horizon + 1

    # Time

    def take(self, rows: pa.Table) -> None:
        self._events = pa.concat_tables([self._events, rows])

    def advance(self, watermark: int) -> Iterator[Made]:
        before, self._watermark = self._watermark, watermark
        ends = as_integers(self._time)
        passed = self._events.filter(pc.less(ends, watermark))
        for made in made_at_once(self._work, self.numbers, passed):
            assert made.rows is not None
            certain = self._certain(made)
            fresh = certain < watermark
            if before is not None:
                fresh &= certain >= before
            rows = made.rows.filter(to_arrow(fresh))
            if rows.num_rows:
                yield made._replace(number=rows.num_rows, rows=rows)
        self._forget(watermark)

    def replay(self, rows: pa.Table, watermark: int | None) -> None:
        self.take(rows)
        self._watermark = watermark
        if watermark is not None:
            self._forget(watermark)

    def _forget(self, watermark: int) -> None:
        self._events = self._events.filter(pc.greater_equal(as_integers(self._time), watermark - self.horizon))

    def _certain(self, made: Made) -> Ints:
        """[row]: the last moment that must have passed."""
        assert made.rows is not None
        start, end = (to_numpy(as_integers(made.rows.column(name))) for name in ("start", "end"))
        names = pa.array([self._work.bound[number].name for number in self.numbers])
        query = to_numpy(pc.index_in(made.rows.column("query"), names))
        waits = [self._waits[number] for number in self.numbers]
        window, inputs = (np.array([getattr(one, of) for one in waits])[query] for of in ("window", "inputs"))
        moments: Ints = np.maximum(end, np.where(window > 0, start + window, end)) + inputs
        return moments

    # State

    def snapshot(self) -> bytes:
        return write_segment(self._events)

    def restore(self, data: bytes) -> None:
        self._events = read_segment(data)
