"""One query in EQL over batches of events, as `Engine` runs one of a pattern."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kleene.algebra.detections import NextDetection, aliases, last_aliases, said
from kleene.algebra.eql_query import BoundEqlQuery
from kleene.engine.algebra_engine import AlgebraEngine
from kleene.engine.detections.network import DetectionNetwork
from kleene.engine.detections.snapshots import DetectionSnapshot, from_bytes, to_bytes
from kleene.engine.output.returned import check_returns
from kleene.engine.output.tables import match_table
from kleene.engine.state.state_contract import require
from kleene.errors import BadSnapshot, BudgetExceeded, UnboundedState
from kleene.kernels.expression import Ints
from kleene.optimize.detections.planning import plan_detections
from kleene.plan.detections import DetectionPlan
from kleene.plan.program import NotCompilable
from kleene.plan.settings import Settings
from kleene.queries.meaning import meaning_of


class DetectionEngine(AlgebraEngine):
    def __init__(self, query: BoundEqlQuery, settings: Settings | None = None) -> None:
        """An engine for a query bound to the columns of its events.

        `NotCompilable`, with the first events, when it needs the reference evaluator.
        """
        super().__init__(query.schema, settings)
        self.query = query
        self.plan: DetectionPlan = plan_detections(query)
        self._network: DetectionNetwork | None = None

    @property
    def network(self) -> DetectionNetwork | None:
        """Its operators; None when no event was ever seen."""
        return self._network

    @property
    def _has_begun(self) -> bool:
        return self._network is not None

    def _begin(self, columns: pa.Schema) -> None:
        check_returns(self.query, columns)
        self._network = DetectionNetwork(self.plan, columns)

    def _match(self, watermark: int | None) -> tuple[pa.Table | None, int]:
        table, network = self._arrivals.settled(watermark), self._network
        if table is None or network is None:
            return None, 0
        matches, relevant = network.advance(table, None if watermark is None else self._arrivals.watermark)
        events = network.events
        results = match_table(self.query, events.rows, events.spans, matches, events.unread, network.strings)
        self._network = network.tidy()
        self._within_budget()
        return self._few_enough(results, latest_first=True), relevant

    def _within_budget(self) -> None:
        """Keep what waits within the budgets of runs and of bytes."""
        network, budget = self._network, self.settings.budget
        assert network is not None
        if network.size > budget.runs_per_partition and network.most_under_a_key > budget.runs_per_partition:
            if not self._accounts.drops:
                raise BudgetExceeded(
                    f"more than {budget.runs_per_partition:,} detections wait for the same events",
                    hint="bound them by `(…, …) OCCURS WITHIN …`, narrow the conditions, or raise the budget",
                )
            self._accounts.dropped_runs += network.drop_over(budget.runs_per_partition)
        if budget.state_bytes is None or self.state_bytes <= budget.state_bytes:
            return
        if not self._accounts.drops:
            self._accounts.too_much_state(self.state_bytes)
        while network.size and self.state_bytes > budget.state_bytes:
            self._drop(-(-network.size // 2))

    def _drop(self, number: int) -> None:
        assert self._network is not None
        self._accounts.dropped_runs += number
        self._network.drop_oldest(number)

    def check_bounded(self) -> None:
        check_bounded(self.plan)

    # What is held

    @property
    def _runs(self) -> int:
        return 0 if self._network is None else self._network.size

    @property
    def state_bytes(self) -> int:
        return 0 if self._network is None else self._network.state_bytes + self._arrivals.row_bytes

    @property
    def nbytes(self) -> int:
        return self._arrivals.nbytes + (0 if self._network is None else self._network.nbytes)

    @property
    def horizon(self) -> int | None:
        """How far back from the watermark events must be kept for `replay` to build an equal engine; None: all."""
        return None

    @property
    def deadline(self) -> int | None:
        """The first watermark at which an output could become certain without further events; None: there is none."""
        due = None if self._network is None else self._network.first_due()
        moments = [moment + 1 for moment in (self._arrivals.first_end, due) if moment is not None]
        return min(moments, default=None)

    @property
    def expiry(self) -> int | None:
        """The watermark from which on nothing that waits is of use, if no more events come; None: there is none."""
        latest = None if self._network is None else self._network.last_use()
        return None if latest is None else latest + 1

    @property
    def counts(self) -> Ints | None:
        """Nothing is counted by state: there are no automata."""
        return None

    # State

    def snapshot(self) -> bytes:
        """The state from which another engine can continue: waiting events, and the detections that wait."""
        arrivals, meaning, network = self._arrivals, meaning_of(self.query), self._network
        rows, steps, held = None, np.zeros(0, np.int64), []
        if network is not None:
            needed = network.rows_needed
            rows, steps, held = (
                network.events.rows.take(needed).table,
                network.events.steps[needed],
                network.held(needed),
            )
        state = DetectionSnapshot(
            self.query.digest, meaning, arrivals.watermark, arrivals.rows, arrivals.waiting, rows, steps, held
        )
        return to_bytes(state)

    @staticmethod
    def restore(query: BoundEqlQuery, data: bytes, settings: Settings | None = None) -> DetectionEngine:
        """An engine that goes on where a snapshot was taken."""
        engine = DetectionEngine(query, settings)
        state = from_bytes(data, query, meaning_of(query))
        engine._arrivals.restore(state.waiting, state.watermark, state.rows)
        if state.waiting is None or state.events is None:
            return engine
        try:
            engine._begin(state.waiting.schema)
        except NotCompilable as reason:
            raise BadSnapshot(f"no engine has held the events of this snapshot: {reason}") from None
        assert engine._network is not None
        problem = engine._network.restore(state.events, state.steps, state.held)
        require(problem is None, str(problem))
        return engine


def check_bounded(plan: DetectionPlan) -> None:
    """Refuse a query for which detections could wait for ever on a stream (semantics §3 Window)."""
    if plan.unbounded is None:
        return
    last = next(iter(last_aliases(plan.unbounded)))
    first = next(iter(aliases(plan.unbounded))) if isinstance(plan.unbounded, NextDetection) else last
    raise UnboundedState(
        f"what waits at `{said(plan.unbounded)}` may wait for ever",
        hint=f"bound it, such as `({first}, {last}) OCCURS WITHIN 12 hours`, or set a budget:"
        " Settings(budget=Budget(state_bytes=…))",
    )
