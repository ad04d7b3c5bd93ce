"""One query over batches of events: `process` takes a batch and how far time has come, `finish` ends time.

An engine has one owner. Everything that it knows of the past is in the events that it holds (`store`); runs and stacks
are made of them, and made again of them when the store has more of the past than of the present, and after `restore`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from kleene.engine import snapshots
from kleene.engine.arrivals import Arrivals
from kleene.engine.budget import Accounts
from kleene.engine.held import Held, reach, selects_in_stream
from kleene.engine.statistics import Alive, Statistics
from kleene.engine.trees.executor import TreeExecutor
from kleene.engine.trees.planning import Planning
from kleene.engine.windows import has_negated_end
from kleene.errors import UnboundedState
from kleene.frames.rows import BadRow
from kleene.lang.tree import OutputMode
from kleene.optimize.planner import plan_query
from kleene.optimize.statistics import Statistics as EventStatistics
from kleene.pattern.query import BoundQuery
from kleene.plan.costs import Measured
from kleene.plan.physical import Plan
from kleene.plan.program import NotCompilable
from kleene.plan.settings import Policy, Settings


@dataclass(frozen=True)
class Batch:
    """What one call of `process` or `finish` gave."""

    matches: pa.Table | None = None
    timeouts: pa.Table | None = None
    # Matches of events that completed too many, under the policy that emits these compressed.
    compressed: pa.Table | None = None
    late: pa.Table | None = None
    bad: list[BadRow] = field(default_factory=list)
    statistics: Statistics = field(default_factory=Statistics)


class Engine:
    def __init__(
        self,
        query: BoundQuery,
        settings: Settings | None = None,
        plan: Plan | None = None,
        statistics: EventStatistics | None = None,
    ) -> None:
        """An engine for a query bound to the columns of its events; `NotCompilable` when it needs the reference.

        plan         how it runs to the end, where that is not left to the planner
        statistics   what is known of the events; otherwise the first of them are looked at
        """
        self.query, self.settings = query, settings or Settings()
        self._first_plan = plan or plan_query(query, self.settings, statistics)
        if self._first_plan.fallback is not None:
            raise NotCompilable(self._first_plan.fallback.reason)
        self._planning = None if plan is not None else Planning.of(query, self.settings, self._first_plan, statistics)
        self._accounts = Accounts(self.settings.budget)
        self._arrivals = Arrivals(query.schema)
        self._held: Held | None = None
        self._step = 0
        self._total = Statistics()

    @property
    def plan(self) -> Plan:
        """How it runs, as far as that is known before the first events."""
        return self._first_plan if self._held is None else self._held.plan

    @property
    def measured(self) -> tuple[Measured | None, ...]:
        """What the trees of its plan counted; None for what is no tree."""
        if self._held is None:
            return (None,) * len(self.plan.alternatives)
        return tuple(
            executor.measured if isinstance(executor, TreeExecutor) else None for executor in self._held.executors
        )

    def planned_for(self, table: pa.Table) -> Plan:
        """How it would run on events like these, of which none is taken in."""
        if self._planning is None or self._held is not None:
            return self.plan
        arrivals = Arrivals(self.query.schema)
        arrivals.add(table)
        settled = arrivals.settled(None)
        if settled is None or not settled.num_rows:
            return self.plan
        return self._holding(settled, self._planning.again(looks=True)).planned_for(settled)

    # Life

    def process(self, batch: pa.Table, watermark: int | None = None) -> Batch:
        """Take in a batch, and match what time has passed.

        watermark   no event before it is still to come, in steps of the time column; None leaves it where it was.
                    Events of later batches that end before it are late
        """
        if watermark is not None and self.settings.budget.state_bytes is None:
            check_bounded(self.query, self.plan)
        bad, late = self._arrivals.add(batch)
        made = self._match(watermark) if watermark is not None else Batch()
        counted = Statistics(rows=batch.num_rows, bad=len(bad), late=late.num_rows)
        return self._reported(replace(made, bad=bad, late=late), counted)

    def replay(self, batch: pa.Table, watermark: int | None) -> None:
        """Take in what another engine of this query has taken in, which gave what there was to give."""
        self._arrivals.add(batch)
        if watermark is not None:
            # What is chosen next depends on what was chosen, and what waits is chosen in its turn.
            self._match(watermark, quietly=self.query.output is not OutputMode.NON_OVERLAP)

    @property
    def waiting(self) -> pa.Table | None:
        """The events whose time has not passed; None when none was ever seen."""
        return self._arrivals.waiting

    @property
    def deadline(self) -> int | None:
        """The first watermark at which something could be certain without further events; None: there is none."""
        watermark = self._arrivals.watermark
        known = [] if self._arrivals.first_end is None else [self._arrivals.first_end + 1]
        if self._held is not None and watermark is not None:
            closing = self._held.next_closing(watermark)
            known += [] if closing is None else [closing]
        return min(known, default=None)

    @property
    def expiry(self) -> int | None:
        """The watermark at which nothing held is of use any more, if nothing comes; None: there is no such time."""
        watermark = self._arrivals.watermark
        return None if self._held is None or watermark is None else self._held.expiry(watermark)

    @property
    def alive(self) -> Alive:
        """What is held for open windows, and what waits."""
        watermark, waiting = self._arrivals.watermark, self._arrivals.waiting
        held = Alive() if self._held is None or watermark is None else self._held.alive(watermark)
        waits = 0 if waiting is None else waiting.num_rows
        return Alive(held.events + waits, held.runs, held.nbytes + (self._arrivals.nbytes if waits else 0))

    @property
    def horizon(self) -> int | None:
        """How long before the watermark events end of which an equal engine can be made by `replay`; None: of no part.

        What NON_OVERLAP chooses, and what a budget drops, depends on all that was.
        """
        query, window = self.query, self.query.window
        waits = query.output is OutputMode.COMPRESSED and any(map(has_negated_end, self.plan.alternatives))
        drops = self.settings.budget.policy is Policy.DROP_OLDEST
        if window is None or window.events or query.output is OutputMode.NON_OVERLAP or waits or drops:
            return None
        return reach(window, self.plan)

    def finish(self) -> Batch:
        """Bounded input ends time: everything that waits is decided."""
        return self._reported(self._match(None), Statistics())

    @property
    def statistics(self) -> Statistics:
        """Everything so far."""
        return self._total

    def _reported(self, made: Batch, counted: Statistics) -> Batch:
        held = self._held
        waiting = self._arrivals.waiting
        now = Statistics(
            rows=counted.rows,
            bad=counted.bad,
            late=counted.late,
            relevant=made.statistics.relevant,
            matches=0 if made.matches is None else made.matches.num_rows,
            waiting=0 if waiting is None else waiting.num_rows,
            events=0 if held is None else held.store.size,
            runs=0 if held is None else sum(executor.runs for executor in held.executors),
            state_bytes=self._arrivals.nbytes + (0 if held is None else held.nbytes),
            dropped=self._accounts.dropped - self._total.dropped,
            plan_changes=sum(known.changes for known in self.measured if known is not None) - self._total.plan_changes,
            components=() if held is None else tuple(executor.counts() for executor in held.executors),
        )
        self._total = replace(
            now,
            **{
                name: getattr(self._total, name) + getattr(now, name)
                for name in ("rows", "bad", "late", "relevant", "matches", "dropped", "plan_changes")
            },
        )
        return replace(made, statistics=now)

    # Matching

    def _match(self, watermark: int | None, *, quietly: bool = False) -> Batch:
        table = self._arrivals.settled(watermark)
        if table is None:
            return Batch()
        if self._held is None:
            self._held = self._holding(table)
        held = self._held
        arrived, self._step = held.arrived(table, self._step)
        held.take_in(arrived)
        passed = None if watermark is None else self._arrivals.watermark
        made = held.settle(passed, quietly=quietly)
        if watermark is not None:
            self._held = held.lighter(self._arrivals.watermark)
            self._within_budget()
        relevant = Statistics(relevant=arrived.rows.num_rows)
        return Batch(made.matches, made.timeouts, made.compressed, statistics=relevant)

    def _holding(self, table: pa.Table, planning: Planning | None = None) -> Held:
        planning = planning or self._planning
        return Held(self.query, self._first_plan, self.settings, self._accounts, table, planning)

    def _within_budget(self) -> None:
        most = self.settings.budget.state_bytes
        held = self._held
        if most is None or held is None or held.nbytes + self._arrivals.nbytes <= most:
            return
        held = self._held = held.rebuilt(held.needed(self._arrivals.watermark), self._arrivals.watermark)
        if held.nbytes + self._arrivals.nbytes <= most:
            return
        if not self._accounts.drops:
            self._accounts.too_much_state(held.nbytes + self._arrivals.nbytes)
        size = held.store.size
        self._accounts.dropped_events += size - size // 2
        self._held = held.rebuilt(np.arange(size - size // 2, size), self._arrivals.watermark)

    # State

    def snapshot(self) -> bytes:
        """What must be kept to go on elsewhere: the events of open windows, and what cannot be told from them."""
        held = None
        if self._held is not None:
            held = self._held.saved(self._held.needed(self._arrivals.watermark))
        state = snapshots.State(
            self.query.digest, self._arrivals.watermark, self._arrivals.rows, self._step, self._arrivals.waiting, held
        )
        return snapshots.to_bytes(state)

    @staticmethod
    def restore(query: BoundQuery, data: bytes, settings: Settings | None = None, plan: Plan | None = None) -> Engine:
        """An engine that goes on where a snapshot was taken. The plan may be another one; the query may not."""
        state = snapshots.from_bytes(data, query.digest)
        engine = Engine(query, settings, plan)
        engine._arrivals.restore(state.waiting, state.watermark, state.rows)
        engine._step = state.step
        if state.held is not None:
            engine._held = engine._holding(state.held.rows)
            engine._held.restore(state.held, state.watermark)
        return engine


def check_bounded(query: BoundQuery, plan: Plan) -> None:
    """Refuse a query whose state could grow for ever on a stream (the semantics page §3, Window)."""
    window = query.window
    if window is None:
        problem, remedy = "a query without WITHIN keeps its events for ever", "add `WITHIN …`"
    elif window.events and query.schema.start is not None:
        problem = "over events that last `WITHIN n EVENTS` never closes: one that began in the window may still end"
        remedy = "say `WITHIN` in time"
    elif window.events and selects_in_stream(query) and any(map(has_negated_end, plan.alternatives)):
        problem = "matches of all partitions wait until each has had enough events to close `WITHIN n EVENTS`"
        remedy = "say `WITHIN` in time"
    else:
        return
    raise UnboundedState(problem, hint=f"{remedy}, or set a budget: Settings(budget=Budget(state_bytes=…))")
