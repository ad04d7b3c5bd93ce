"""One query over batches of events: `process` takes a batch and how far time has come, `finish` ends time.

An engine has one owner. All its knowledge of the past is in the events that it holds (`store`); runs and stacks
are built from them, and rebuilt from them when most of the store is no longer needed, and after `restore`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kleene.algebra.eql_query import BoundEqlQuery
from kleene.engine.engine_state import EngineState, reach, selects_in_stream
from kleene.engine.intake.arrivals import Arrivals
from kleene.engine.intake.counting import counts_all, counts_by_step
from kleene.engine.output.outputs import EngineOutputs
from kleene.engine.planning import Planning
from kleene.engine.slices import Slice, SliceEvents, are_right, by_end, side_by_side, slices_of, slices_of_keys
from kleene.engine.state import snapshots
from kleene.engine.state.budget import Accounts
from kleene.engine.state.state_contract import check_state
from kleene.engine.state.statistics import Alive, BatchCounts, RunCounts
from kleene.engine.state.store import EventBatch
from kleene.errors import BadSnapshot, UnboundedState, UnknownKind
from kleene.lang.tree import OutputMode
from kleene.optimize.planner import plan_query
from kleene.optimize.statistics import Statistics
from kleene.pattern.query import BoundQuery
from kleene.plan.costs import Measured
from kleene.plan.physical import Plan
from kleene.plan.program import NotCompilable
from kleene.plan.settings import Policy, Settings
from kleene.queries.meaning import meaning_of


class Engine:
    def __init__(
        self,
        query: BoundQuery,
        settings: Settings | None = None,
        plan: Plan | None = None,
        statistics: Statistics | None = None,
    ) -> None:
        """An engine for a query bound to the columns of its events; `NotCompilable` when it needs the reference.

        plan         a fixed plan; otherwise the planner chooses, and may change it
        statistics   what is known of the events; otherwise the first of them are sampled
        """
        if isinstance(query, BoundEqlQuery):
            raise UnknownKind("an `Engine` runs patterns, and this is a query in EQL", hint="`kleene.match` runs it")
        self.query, self.settings = query, settings or Settings()
        self._first_plan = plan or plan_query(query, self.settings, statistics)
        reason = self._first_plan.why_on_reference
        if reason is not None:
            raise NotCompilable(reason)
        self._planning = None if plan is not None else Planning.of(query, self.settings, self._first_plan, statistics)
        self._accounts = Accounts(self.settings.budget)
        self._arrivals = Arrivals(query.schema)
        self._state: EngineState | None = None
        self._step = 0
        self._total = BatchCounts()

    @property
    def plan(self) -> Plan:
        """How it runs, as far as that is known before the first events."""
        return self._first_plan if self._state is None else self._state.plan

    @property
    def measured(self) -> tuple[Measured | None, ...]:
        """By alternative: the counts of a tree; None for one that runs otherwise."""
        if self._state is None:
            return (None,) * len(self.plan.alternatives)
        return tuple(executor.measured for executor in self._state.executors)

    def planned_for(self, table: pa.Table) -> Plan:
        """The plan for events like these; none of them is taken in."""
        if self._planning is None or self._state is not None:
            return self.plan
        settled = self._settled(table)
        if settled is None:
            return self.plan
        return self._holding(settled, self._planning.again(looks=True)).planned_for(settled)

    def number_of_slices(self, table: pa.Table, threads: int) -> int:
        """In how many slices a table like this is matched by so many threads, where it is all there is."""
        settled = self._settled(table)
        slices = [] if settled is None else self.slices(settled, threads)
        if len(slices) < 2 or self._is_by_key:
            return max(len(slices), 1)
        return len(slices) if self._are_right([self._begin_slice(each) for each in slices]) else 1

    def _settled(self, table: pa.Table) -> pa.Table | None:
        """The events of a table that is all there is; None where there are none."""
        arrivals = Arrivals(self.query.schema)
        arrivals.add(table)
        settled = arrivals.settled(None)
        return settled if settled is not None and settled.num_rows else None

    def check(self, columns: pa.Schema) -> None:
        """`NotCompilable` when events with these columns need the reference evaluator."""
        self._holding(columns.empty_table())

    # Life

    def process(self, batch: pa.Table, watermark: int | None = None) -> EngineOutputs:
        """Take in a batch, and match the events that the watermark has passed.

        watermark   no event before it is still to come, in steps of the time column; None leaves it where it was.
                    Events of later batches that end before it are late
        """
        if watermark is not None and self.settings.budget.state_bytes is None:
            check_bounded(self.query, has_negated_end=self.plan.has_negated_end)
        bad, late = self._arrivals.add(batch)
        outputs = self._match(watermark) if watermark is not None else EngineOutputs()
        counted = BatchCounts(rows=batch.num_rows, bad=len(bad), late=late.num_rows)
        return self._reported(replace(outputs, bad=bad, late=late), counted)

    def replay(self, batch: pa.Table, watermark: int | None, *, gives: bool = False) -> EngineOutputs:
        """Take in events whose outputs another engine of this query has already given.

        Under a budget that drops, batches and watermarks must be those of the other engine (`replays_by_update`).

        gives   whether the outputs are given once more, for queries that read them
        """
        self._arrivals.add(batch)
        passed = self._arrivals.watermark
        # Under a budget that drops, events are counted against it when the watermark moves on.
        stands = self.replays_by_update and passed is not None and watermark is not None and watermark <= passed
        outputs = EngineOutputs()
        if watermark is not None and not stands:
            outputs = self._match(watermark, again=True, gives=gives)
        # The other engine has counted what was dropped.
        self._total = replace(self._total, dropped=self._accounts.dropped)
        return outputs

    @property
    def replays_by_update(self) -> bool:
        """Whether only the same batches and watermarks build an equal engine: what a budget drops depends on them."""
        return self._accounts.drops

    @property
    def waiting(self) -> pa.Table | None:
        """The events that the watermark has not passed; None when no event was ever seen."""
        return self._arrivals.waiting

    @property
    def deadline(self) -> int | None:
        """The first watermark at which an output could become certain without further events; None: there is none."""
        watermark = self._arrivals.watermark
        known = [] if self._arrivals.first_end is None else [self._arrivals.first_end + 1]
        if self._state is not None and watermark is not None:
            closing = self._state.next_closing(watermark)
            known += [] if closing is None else [closing]
        return min(known, default=None)

    @property
    def expiry(self) -> int | None:
        """The watermark from which on no event held is needed, if no more events come; None: there is none."""
        watermark = self._arrivals.watermark
        return None if self._state is None or watermark is None else self._state.expiry(watermark)

    @property
    def alive(self) -> Alive:
        """The events and runs held for open windows, and the waiting events."""
        watermark, waiting = self._arrivals.watermark, self._arrivals.waiting
        living = Alive() if self._state is None or watermark is None else self._state.alive(watermark)
        waits = 0 if waiting is None else waiting.num_rows
        return Alive(living.events + waits, living.runs, living.nbytes + (self._arrivals.row_bytes if waits else 0))

    @property
    def horizon(self) -> int | None:
        """How far back from the watermark events must be kept for `replay` to build an equal engine; None: all of them.

        What NON_OVERLAP chooses, and what a budget drops, depends on all events before.
        """
        query, window = self.query, self.query.window
        waits = query.output is OutputMode.COMPRESSED and self.plan.has_negated_end
        drops = self.settings.budget.policy is Policy.DROP_OLDEST
        if window is None or window.events or query.output is OutputMode.NON_OVERLAP or waits or drops:
            return None
        return reach(window, self.plan)

    def finish(self, batch: pa.Table | None = None, *, threads: int = 1) -> EngineOutputs:
        """Take in the last batch, if there is one, and decide everything that waits: bounded input ends time.

        threads   how many cores may be used for a batch that is the only one; outputs do not depend on it
        """
        if batch is None:
            return self._reported(self._match(None), BatchCounts())
        bad, late = self._arrivals.add(batch)
        counted = BatchCounts(rows=batch.num_rows, bad=len(bad), late=late.num_rows)
        outputs = self._match_in_slices(threads) if threads > 1 and self._state is None else None
        return self._reported(replace(outputs or self._match(None), bad=bad, late=late), counted)

    @property
    def dropped(self) -> int:
        """How many matches and partial matches over a budget were dropped so far."""
        return self._total.dropped

    @property
    def statistics(self) -> RunCounts:
        """The counts of all batches so far, and what is held now."""
        state, waiting = self._state, self._arrivals.waiting
        return RunCounts(
            **asdict(self._total),
            waiting=0 if waiting is None else waiting.num_rows,
            events=0 if state is None else state.store.size,
            runs=0 if state is None else sum(executor.runs for executor in state.executors),
            state_bytes=self.nbytes,
            components=() if state is None else tuple(executor.counts() for executor in state.executors),
        )

    @property
    def nbytes(self) -> int:
        """The bytes that it holds in memory now."""
        return self._arrivals.nbytes + (0 if self._state is None else self._state.nbytes)

    def _reported(self, outputs: EngineOutputs, counted: BatchCounts) -> EngineOutputs:
        now = BatchCounts(
            rows=counted.rows,
            bad=counted.bad,
            late=counted.late,
            relevant=outputs.statistics.relevant,
            matches=0 if outputs.matches is None else outputs.matches.num_rows,
            dropped=self._accounts.dropped - self._total.dropped,
            plan_changes=(0 if self._state is None else self._state.plan_changes) - self._total.plan_changes,
        )
        self._total += now
        return replace(outputs, statistics=now)

    # Matching

    def _match(self, watermark: int | None, *, again: bool = False, gives: bool = True) -> EngineOutputs:
        """Match the events that the watermark has passed; `again`: a second time, with outputs only if `gives`."""
        table = self._arrivals.settled(watermark)
        if table is None:
            return EngineOutputs()
        if self._state is None:
            self._state = self._holding(table)
            if watermark is not None:
                self._state.weigh()
        state = self._state
        arrived, self._step = state.arrived(table, self._step)
        state.take_in(arrived)
        passed = None if watermark is None else self._arrivals.watermark
        outputs = state.settle_again(passed, gives=gives) if again else state.settle(passed)
        if watermark is not None:
            state.store.keep_rows()
            self._state = state = state.lighter(self._arrivals.watermark)
            state.adapt(self._arrivals.watermark)
            # Events that were within the budget stay within it when they are replayed in other batches.
            if not again or self.replays_by_update:
                self._within_budget()
        relevant = BatchCounts(relevant=arrived.rows.num_rows)
        return replace(outputs, statistics=relevant)

    def slices(self, table: pa.Table, number: int) -> list[Slice]:
        """The slices in which a whole table is matched, at most so many; one where outputs would depend on them."""
        query, horizon = self.query, self.horizon
        if self._is_by_key:
            return slices_of_keys(table, query.schema, query.partition, number)
        if horizon is None or query.timeouts is not None or self.plan.has_negated_end:
            return [Slice(table)]
        return slices_of(table, query.schema, horizon, number, self.plan.alternatives[0].key)

    @property
    def _is_by_key(self) -> bool:
        """Whether a whole table can be cut by key: there is no window, and no event of one key matters to another."""
        query = self.query
        free = query.window is None and query.timeouts is None and not any(each.negated for each in query.components)
        by_key = bool(query.partition) and not counts_all(query) and not counts_by_step(query)
        drops = self.settings.budget.policy is Policy.DROP_OLDEST
        return free and by_key and query.output is OutputMode.ALL and not drops

    def _match_in_slices(self, number: int) -> EngineOutputs | None:
        """Match all events, of which none was matched before; None where they are in one slice."""
        table = self._arrivals.waiting
        slices = [] if table is None else self.slices(table, number)
        if len(slices) < 2:
            return None
        with side_by_side(len(slices)) as threads:
            begun = threads.each(self._begin_slice, slices)
            if not self._is_by_key and not self._are_right(begun):
                return None
            self._arrivals.settled(None)
            outputs = threads.each(_settled_slice, begun)
        relevant = sum(each.statistics.relevant for each in outputs)
        matches = [each.matches for each in outputs if each.matches is not None]
        return EngineOutputs(
            by_end(matches) if self._is_by_key else _together(matches),
            compressed=_together([each.compressed for each in outputs]),
            statistics=BatchCounts(relevant=relevant),
        )

    def _begin_slice(self, part: Slice) -> BegunSlice:
        state = self._holding(part.rows, None if self._planning is None else self._planning.again(looks=True))
        return BegunSlice(part, state, state.arrived(part.rows, 0, part.own)[0])

    def _are_right(self, begun: Sequence[BegunSlice]) -> bool:
        """Whether slices of time hold the events that they should, now that these are known."""
        assert self.horizon is not None, "slices of time are of windows of time"
        events = [SliceEvents(each.state.came_in_order, each.events.end, each.events.rows.places) for each in begun]
        return are_right([each.part for each in begun], events, self.horizon)

    def _holding(self, table: pa.Table, planning: Planning | None = None) -> EngineState:
        planning = planning or self._planning
        return EngineState(self.query, self._first_plan, self.settings, self._accounts, table, planning)

    def _within_budget(self) -> None:
        """Drop the oldest events while those still needed are over the budget; then drop events no longer needed."""
        most, state, watermark = self.settings.budget.state_bytes, self._state, self._arrivals.watermark
        if most is None or state is None:
            return
        waiting = self._arrivals.row_bytes
        if state.most_living_bytes + waiting <= most:
            return
        while (size := state.living_bytes(watermark) + waiting) > most:
            if not self._accounts.drops:
                self._accounts.too_much_state(size)
            needed = state.needed(watermark)
            if not len(needed):
                break
            older = len(needed) - len(needed) // 2
            self._accounts.dropped_events += older
            state = self._state = state.rebuilt(needed[older:], watermark)
        if state.nbytes + self._arrivals.nbytes > most and state.has_grown:
            self._state = state.rebuilt(state.needed(watermark), watermark)

    # State

    def snapshot(self) -> bytes:
        """The state from which another engine can continue: events of open windows, and what they do not tell."""
        saved = None
        if self._state is not None:
            saved = self._state.saved(self._state.needed(self._arrivals.watermark))
        arrivals = self._arrivals
        state = snapshots.Snapshot(
            self.query.digest,
            meaning_of(self.query),
            arrivals.watermark,
            arrivals.rows,
            self._step,
            arrivals.waiting,
            saved,
        )
        return snapshots.to_bytes(state)

    @staticmethod
    def restore(query: BoundQuery, data: bytes, settings: Settings | None = None, plan: Plan | None = None) -> Engine:
        """An engine that goes on where a snapshot was taken. The plan may be another one; the query may not.

        Nor may its columns mean something else: the roles and types of columns, the tick, and the output.
        """
        state = snapshots.from_bytes(data, query.digest, meaning_of(query))
        check_state(state, query)
        engine = Engine(query, settings, plan)
        engine._arrivals.restore(state.waiting, state.watermark, state.rows)
        engine._step = state.step
        if state.events is not None:
            try:
                engine._state = engine._holding(state.events.rows)
                engine._state.weigh()
                engine._state.restore(state.events, state.watermark)
            except NotCompilable as reason:
                raise BadSnapshot(f"no engine has held the events of this snapshot: {reason}") from None
        return engine


class BegunSlice(NamedTuple):
    """A slice whose events were taken in, and not matched yet."""

    part: Slice
    state: EngineState
    events: EventBatch


def _settled_slice(begun: BegunSlice) -> EngineOutputs:
    part, state, events = begun
    state.take_in(events)
    own = len(events.end) if part.since is None else np.count_nonzero(events.end >= part.since)
    return replace(state.settle(None, since=part.since), statistics=BatchCounts(relevant=int(own)))


def _together(tables: Sequence[pa.Table | None]) -> pa.Table | None:
    there = [table for table in tables if table is not None]
    return pa.concat_tables(there) if there else None


def check_bounded(query: BoundQuery, *, has_negated_end: bool) -> None:
    """Refuse a query whose state could grow for ever on a stream (the semantics page §3, Window)."""
    window = query.window
    if window is None:
        problem, remedy = "a query without WITHIN keeps its events for ever", "add `WITHIN …`"
    elif window.events and query.schema.start is not None:
        problem = "over events that last `WITHIN n EVENTS` never closes: one that began in the window may still end"
        remedy = "say `WITHIN` in time"
    elif window.events and selects_in_stream(query) and has_negated_end:
        problem = "matches of all partitions wait until each has had enough events to close `WITHIN n EVENTS`"
        remedy = "say `WITHIN` in time"
    else:
        return
    raise UnboundedState(problem, hint=f"{remedy}, or set a budget: Settings(budget=Budget(state_bytes=…))")
