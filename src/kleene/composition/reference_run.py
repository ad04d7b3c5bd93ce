"""A query that no engine runs, over batches of events, as an engine would run it.

Its events are held as long as they can matter, and at each watermark the reference evaluator goes through all of them
again; what became certain since the last one is given. A match is certain when time has passed its end or, where
something may still forbid it or add to it, when its window has closed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kleene.algebra.eql_query import BoundEqlQuery
from kleene.algebra.query import BoundStreamQuery
from kleene.composition.query_graph import Part, QueryNode, decides_late
from kleene.engine.output.outputs import EngineOutputs
from kleene.engine.state.sizes import row_bytes
from kleene.engine.state.state_contract import check_events
from kleene.engine.state.statistics import Alive, BatchCounts
from kleene.errors import BadSnapshot, NotOnStreams
from kleene.frames.arrow import as_integers, fitted
from kleene.frames.kept_tables import read_table
from kleene.frames.numbers import to_arrow, to_numpy
from kleene.lang.tree import OutputMode
from kleene.optimize.any_planner import plan_on_reference
from kleene.optimize.streams.automaton import plan_stream
from kleene.pattern.query import BoundQuery
from kleene.plan.any_plan import AnyPlan
from kleene.plan.settings import Budget
from kleene.queries.any_query import AnyBoundQuery
from kleene.reference.process import reference_tables

# In a snapshot: the name of each part of the input, and its rows as an Arrow stream.
_SNAPSHOT = pa.schema([("name", pa.string()), ("rows", pa.large_binary())])
_WHAT = "the snapshot of a query on the reference evaluator"


class ReferenceRun:
    """Runs one query on the reference evaluator, over the part of its input that can still matter."""

    replays_by_update = False
    counts = None

    def __init__(self, node: QueryNode, reason: str, snapshot: bytes | None = None) -> None:
        """A run that has seen nothing, or that holds what a snapshot holds; the next replay says where time is."""
        self._node, self._query = node, node.runs
        self._parts: list[Part] = list(node.nothing)
        self._watermark: int | None = None
        # How long what is found may last; None: any time.
        self._window = _longest(node.runs)
        self.plan: AnyPlan = plan_on_reference(node.runs, reason)
        if snapshot is not None:
            self._restore(snapshot)

    # Events in, matches out

    def process(self, parts: Sequence[Part], watermark: int | None) -> EngineOutputs:
        self._take(parts)
        return EngineOutputs() if watermark is None else self._advance(watermark)

    def finish(self, parts: Sequence[Part], threads: int = 1) -> EngineOutputs:
        self._take(parts)
        return self._advance(None)

    def replay(self, parts: Sequence[Part], watermark: int | None) -> EngineOutputs:
        self._take(parts)
        if watermark is not None and self._node.read:
            return self._advance(watermark)
        if watermark is not None:
            self._watermark = watermark
            self._forget(watermark)
        return EngineOutputs()

    def _take(self, parts: Sequence[Part]) -> None:
        """Hold rows: those of one stream in one table, or in several where their column types differ."""
        for name, rows in parts:
            for place, (known, earlier) in enumerate(self._parts):
                if known == name and earlier.schema.equals(rows.schema):
                    self._parts[place] = name, pa.concat_tables([earlier, rows])
                    break
            else:
                self._parts.append((name, rows))

    def _advance(self, watermark: int | None) -> EngineOutputs:
        before, self._watermark = self._watermark, watermark
        passed = self._parts
        if watermark is not None:
            passed = [(name, rows.filter(pc.less(self._ends(rows), watermark))) for name, rows in self._parts]
        matches, timeouts, bad = reference_tables(self._query, passed)
        matches = self._fresh(matches, "end", before, watermark, late=_decides_late(self._query))
        if timeouts is not None:
            timeouts = self._fresh(timeouts, "closed", before, watermark, late=False)
        if watermark is not None:
            self._forget(watermark)
        return EngineOutputs(matches, timeouts, bad=bad, statistics=BatchCounts(matches=matches.num_rows))

    def _fresh(self, rows: pa.Table, moment: str, before: int | None, watermark: int | None, *, late: bool) -> pa.Table:
        """The rows that are certain at this watermark, and were not at the one before."""
        if watermark is None and before is None:
            return rows
        certain = to_numpy(as_integers(rows.column(moment)))
        if late:
            assert self._window is not None
            certain = np.maximum(certain, to_numpy(as_integers(rows.column("start"))) + self._window)
        fresh = np.ones(len(certain), np.bool_)
        if watermark is not None:
            fresh &= certain < watermark
        if before is not None:
            fresh &= certain >= before
        return rows.filter(to_arrow(fresh))

    def _ends(self, rows: pa.Table) -> pa.ChunkedArray:
        return as_integers(rows.column(self._query.schema.time))

    def _forget(self, watermark: int) -> None:
        horizon = self.horizon
        if horizon is not None:
            keeping = watermark - horizon
            self._parts = [
                (name, rows.filter(pc.greater_equal(self._ends(rows), keeping))) for name, rows in self._parts
            ]

    # What is held

    @property
    def horizon(self) -> int | None:
        """How far back from the watermark events must be kept for `replay` to build an equal run; None: all of them."""
        return None if self._window is None else 2 * self._window

    @property
    def waiting(self) -> pa.Table:
        """The events that the watermark has not passed."""
        rows = self._parts[0][1]
        return rows if self._watermark is None else rows.filter(pc.greater_equal(self._ends(rows), self._watermark))

    @property
    def deadline(self) -> int | None:
        """The first watermark at which an output could become certain; perhaps none does."""
        schema, window = self._query.schema, self._window
        moments = []
        for _, rows in self._parts:
            end = to_numpy(self._ends(rows))
            start = end if schema.start is None else to_numpy(as_integers(rows.column(schema.start)))
            moments += [end, start if window is None else start + window]
        known = np.concatenate(moments)
        known = known if self._watermark is None else known[known >= self._watermark]
        return int(known.min()) + 1 if len(known) else None

    @property
    def expiry(self) -> int | None:
        """The watermark at which all events are forgotten; None: there is no such time."""
        latest = [end for _, rows in self._parts if (end := pc.max(self._ends(rows)).as_py()) is not None]
        return None if not latest or self.horizon is None else int(max(latest)) + self.horizon + 1

    @property
    def alive(self) -> Alive:
        events = sum(rows.num_rows for _, rows in self._parts)
        return Alive(events=events, nbytes=self.nbytes) if events else Alive()

    @property
    def nbytes(self) -> int:
        """The bytes of the events held, however they were cut into batches."""
        return sum(row_bytes(rows) for _, rows in self._parts)

    @property
    def dropped(self) -> int:
        return 0

    # State

    def snapshot(self) -> bytes:
        """The state from which another process can continue: all rows that are held, by part."""
        written = [_written(rows) for _, rows in self._parts]
        names = pa.array([name for name, _ in self._parts], pa.string())
        return _written(pa.table([names, pa.array(written, pa.large_binary())], schema=_SNAPSHOT))

    def _restore(self, data: bytes) -> None:
        snapshot = read_table(pa.py_buffer(data), _WHAT)
        if not snapshot.schema.equals(_SNAPSHOT):
            raise BadSnapshot(f"{_WHAT} has other columns", hint="begin with a new checkpoint")
        columns = dict(reversed(self._node.parts))
        parts = []
        for row in snapshot.to_pylist():
            if row["name"] not in columns or row["rows"] is None:
                raise BadSnapshot(f"{_WHAT} is of another query", hint="begin with a new checkpoint")
            rows = read_table(pa.py_buffer(row["rows"]), _WHAT)
            try:
                rows = fitted(rows, columns[row["name"]])
            except pa.ArrowException as problem:
                raise BadSnapshot(f"{_WHAT} has other columns: {problem}", hint="begin with a new checkpoint") from None
            check_events(rows, self._query.schema, _WHAT)
            parts.append((row["name"], rows))
        self._parts = list(self._node.nothing)
        self._take(parts)


def check_evaluated_again(node: QueryNode, budget: Budget, reason: str) -> None:
    """Refuse a query on the reference evaluator whose matches depend on more events than those of its window."""
    query, problem = node.query, None
    if not isinstance(query, BoundQuery):
        if _longest(query) is None:
            problem = "what it finds may last for ever"
    elif isinstance(query, BoundEqlQuery):
        if budget.state_bytes is None:
            problem = "every event could matter again"
    elif query.counts_events or (query.window is None and (budget.state_bytes is None or decides_late(query))):
        problem = "it has no window of time"
    elif query.output is OutputMode.NON_OVERLAP:
        problem = "what OUTPUT NON_OVERLAP chooses depends on all events before"
    elif query.output is OutputMode.COMPRESSED and (decides_late(query) or query.timeouts is not None):
        problem = "a row of OUTPUT COMPRESSED is not certain while something may forbid one of its matches"
    if problem is not None:
        raise NotOnStreams(
            f"`{query.name}` cannot run on a stream: {problem}, and it stays on the reference evaluator: {reason}"
        )


def _decides_late(query: AnyBoundQuery) -> bool:
    return isinstance(query, BoundQuery) and decides_late(query)


def _longest(query: AnyBoundQuery) -> int | None:
    """How long what a query finds may last, or what decides on it; None: any time, as in EQL."""
    if isinstance(query, BoundStreamQuery):
        return plan_stream(query).longest
    return None if query.window is None else query.window.size


def _written(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(rows.combine_chunks())
    return bytes(sink.getvalue().to_pybytes())
