"""One query of the stream algebra over batches of events, as `Engine` runs one of a pattern.

All its knowledge of the past is in the instances that wait. Where each of them is of use for a limited time, events of
that time make them again; others are saved as themselves.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kleene.algebra.query import BoundStreamQuery
from kleene.engine.algebra_engine import AlgebraEngine
from kleene.engine.streams.compiling import compile_stream
from kleene.engine.streams.intake import arrived
from kleene.engine.streams.pool import InstancePool
from kleene.engine.streams.results import result_table
from kleene.engine.streams.snapshots import (
    StreamSnapshot,
    from_bytes,
    instance_tables,
    moved,
    restore_instances,
    to_bytes,
)
from kleene.errors import BadSnapshot, BudgetExceeded, UnboundedState
from kleene.kernels.expression import Ints
from kleene.kernels.stream_instances import StreamResults
from kleene.optimize.streams.automaton import plan_stream
from kleene.optimize.streams.bounds import unbounded_state
from kleene.pattern.schema import is_private
from kleene.plan.program import NotCompilable
from kleene.plan.settings import Settings
from kleene.plan.streams import EventAutomaton, StreamPlan
from kleene.queries.meaning import meaning_of

# Strings that no instance holds are dropped when there are more of them than of the others, and at least so many.
_WORTH_IT = 1 << 16


class StreamEngine(AlgebraEngine):
    def __init__(self, query: BoundStreamQuery, settings: Settings | None = None) -> None:
        """An engine for a linear-plus query bound to the columns of its events.

        `NotCompilable`, with the first events, when it needs the reference evaluator.
        """
        super().__init__(query.schema, settings)
        self.query = query
        self.plan: StreamPlan = plan_stream(query)
        self._pool: InstancePool | None = None
        self._columns: pa.Schema | None = None
        # How many values were of use when others were last dropped.
        self._tidied = 0

    # Events in, results out

    @property
    def _has_begun(self) -> bool:
        return self._pool is not None

    def _begin(self, columns: pa.Schema) -> None:
        self._columns = columns
        self._pool = InstancePool(compile_stream(self.plan, columns))

    def _match(self, watermark: int | None) -> tuple[pa.Table | None, int]:
        """The results of the events that the watermark has passed, and how many of these some formula takes."""
        table = self._arrivals.settled(watermark)
        if table is None or self._pool is None or self._columns is None:
            return None, 0
        relevant, parts = 0, []
        for events in arrived(table, self._pool.stream, self._pool.values):
            relevant += len(events.events.ends)
            parts += [self._table(results) for results in self._pool.advance(events)]
            self._tidy(int(events.events.ends[-1]) if len(events.events.ends) else None)
        if self._arrivals.watermark is not None:
            self._pool.expire(self._arrivals.watermark)
        self._within_budget()
        nothing = StreamResults(*(np.zeros((0, self._pool.stream.width), kind) for kind in (np.int64, np.uint8)))
        return pa.concat_tables(parts) if parts else self._table(nothing), relevant

    def _table(self, results: StreamResults) -> pa.Table:
        assert self._pool is not None
        assert self._columns is not None
        table = result_table(self.query, self._columns, results, self._pool.stream.cells[-1], self._pool.values)
        return self._few_enough(table)

    # Budgets

    def _within_budget(self) -> None:
        """Keep instances within the budgets of runs and of bytes."""
        pool, budget = self._pool, self.settings.budget
        assert pool is not None
        runs = pool.size
        if runs > budget.runs_per_partition and pool.most_in_a_room() > budget.runs_per_partition:
            if not self._accounts.drops:
                raise BudgetExceeded(
                    f"more than {budget.runs_per_partition:,} instances wait for the same events",
                    hint="bound DUR, narrow the conditions, or raise the budget",
                )
            self._drop(pool.most_in_a_room() - budget.runs_per_partition)
        if budget.state_bytes is None or self.state_bytes <= budget.state_bytes:
            return
        if not self._accounts.drops:
            self._accounts.too_much_state(self.state_bytes)
        over = self.state_bytes - budget.state_bytes
        self._drop(min(pool.size, -(-over // pool.bytes_an_instance)))

    def _drop(self, number: int) -> None:
        assert self._pool is not None
        self._accounts.dropped_runs += number
        self._pool.drop_oldest(number)

    def _tidy(self, now: int | None) -> None:
        """Drop strings and other values that no instance holds, where these are most of them."""
        pool = self._pool
        assert pool is not None
        size = pool.values.strings.size + pool.values.others.size
        if size < _WORTH_IT or size < 2 * self._tidied:
            return
        if now is not None:
            pool.expire(now)
        tidied = InstancePool(pool.stream)
        for state, layout in enumerate(pool.stream.cells[:-1]):
            cells, states = pool.rows(state)
            tidied.put(state, *moved(cells, states, layout, pool.values, tidied.values))
        tidied.counts[:] = pool.counts
        self._pool, self._tidied = tidied, tidied.values.strings.size + tidied.values.others.size

    # What is held

    @property
    def state_bytes(self) -> int:
        """The bytes of instances and waiting events: it follows from them alone, not from how they came."""
        pool = self._pool
        if pool is None:
            return 0
        instances = pool.size * pool.bytes_an_instance + pool.values.strings.nbytes_of(pool.text_codes)
        return instances + self._arrivals.row_bytes

    @property
    def _runs(self) -> int:
        return 0 if self._pool is None else self._pool.size

    @property
    def horizon(self) -> int | None:
        """How far back from the watermark events must be kept for `replay` to build an equal engine; None: all."""
        longest = self.plan.longest
        return None if self._accounts.drops or longest is None else longest + 1

    @property
    def deadline(self) -> int | None:
        """The first watermark at which an output could become certain without further events; None: there is none."""
        first = self._arrivals.first_end
        return None if first is None else first + 1

    @property
    def expiry(self) -> int | None:
        """The watermark from which on no instance held is of use, if no more events come; None: there is none."""
        latest = None if self._pool is None else self._pool.latest_use()
        return None if latest is None else latest + 1

    @property
    def nbytes(self) -> int:
        """The bytes that it holds in memory now."""
        return self._arrivals.nbytes + (0 if self._pool is None else self._pool.nbytes)

    @property
    def counts(self) -> Ints | None:
        """[state, COUNTERS] and a row for results: how far instances came; None when no event was ever seen."""
        return None if self._pool is None else self._pool.counts

    def check_bounded(self) -> None:
        check_bounded(self.query, self.plan)

    # State

    def snapshot(self) -> bytes:
        """The state from which another engine can continue: waiting events, and the instances themselves."""
        tables = [] if self._pool is None else list(instance_tables(self._pool))
        arrivals, meaning = self._arrivals, meaning_of(self.query)
        state = StreamSnapshot(self.query.digest, meaning, arrivals.watermark, arrivals.rows, arrivals.waiting, tables)
        return to_bytes(state)

    @staticmethod
    def restore(query: BoundStreamQuery, data: bytes, settings: Settings | None = None) -> StreamEngine:
        """An engine that goes on where a snapshot was taken."""
        engine = StreamEngine(query, settings)
        state = from_bytes(data, query, engine.plan, meaning_of(query))
        engine._arrivals.restore(state.waiting, state.watermark, state.rows)
        if state.waiting is None:
            return engine
        engine._columns = state.waiting.schema
        try:
            engine._pool = InstancePool(compile_stream(engine.plan, engine._columns))
        except NotCompilable as reason:
            raise BadSnapshot(f"no engine has held the events of this snapshot: {reason}") from None
        restore_instances(engine._pool, state.instances, state.watermark)
        return engine


def check_bounded(query: BoundStreamQuery, plan: EventAutomaton) -> None:
    """Refuse an expression whose instances could wait for ever on a stream (semantics §4 CESAR, Ends)."""
    state = unbounded_state(plan)
    if state is None:
        return
    source = plan.formulas[state.formula].source
    error = UnboundedState(
        f"what waits for {'this part' if is_private(source.id) else f'`{source.id}`'} may wait for ever",
        query.place_of(source),
        hint="bound its duration, such as `… AND DUR <= 100` in the condition of `;` or μ, or set a budget:"
        " Settings(budget=Budget(state_bytes=…))",
    )
    if query.written is not None:
        error.locate(query.written.text, query.written.origin)
    raise error
