"""What the engines of the stream algebra have in common: events in, results out, budgets, counts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, replace

import numpy as np
import pyarrow as pa

from kleene.engine.intake.arrivals import Arrivals
from kleene.engine.intake.timeline import integers
from kleene.engine.output.outputs import EngineOutputs
from kleene.engine.state.budget import Accounts
from kleene.engine.state.statistics import Alive, BatchCounts, RunCounts
from kleene.errors import BudgetExceeded
from kleene.frames.numbers import to_arrow
from kleene.frames.rows import BadRow
from kleene.pattern.schema import Schema
from kleene.plan.settings import Settings


class AlgebraEngine(ABC):
    """Runs one query of the stream algebra over batches of events.

    What its parts know of the past is saved as itself, so that a snapshot is all that another engine needs.
    """

    def __init__(self, schema: Schema, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self._accounts = Accounts(self.settings.budget)
        self._arrivals = Arrivals(schema)
        self._total = BatchCounts()

    # What each engine does its own way

    @abstractmethod
    def _begin(self, columns: pa.Schema) -> None:
        """Make what runs the query, for events with these columns; `NotCompilable` where nothing does."""

    @abstractmethod
    def _match(self, watermark: int | None) -> tuple[pa.Table | None, int]:
        """The results of the events that the watermark has passed, and how many of these are of use."""

    @abstractmethod
    def check_bounded(self) -> None:
        """Refuse a query for which detections could wait for ever on a stream."""

    @property
    @abstractmethod
    def _runs(self) -> int:
        """How many partial results wait."""

    @property
    @abstractmethod
    def _has_begun(self) -> bool:
        """Whether any event was ever seen."""

    @property
    @abstractmethod
    def state_bytes(self) -> int:
        """The bytes of what waits: they follow from that alone, not from how it came."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """The bytes that it holds in memory now."""

    # Events in, results out

    def process(self, batch: pa.Table, watermark: int | None = None) -> EngineOutputs:
        """Take in a batch, and match the events that the watermark has passed; None leaves it where it was."""
        if watermark is not None and self.settings.budget.state_bytes is None:
            self.check_bounded()
        bad, late = self._add(batch)
        matches, relevant = (None, 0) if watermark is None else self._match(watermark)
        counted = BatchCounts(rows=batch.num_rows, bad=len(bad), late=late.num_rows, relevant=relevant)
        return self._reported(EngineOutputs(matches, bad=bad, late=late), counted)

    def finish(self, batch: pa.Table | None = None, *, threads: int = 1) -> EngineOutputs:
        """Take in the last batch, if there is one, and decide everything that waits: bounded input ends time.

        threads   how many cores may be used: one is
        """
        bad, late = ([], None) if batch is None else self._add(batch)
        matches, relevant = self._match(None)
        counted = BatchCounts(relevant=relevant)
        if batch is not None and late is not None:
            counted = replace(counted, rows=batch.num_rows, bad=len(bad), late=late.num_rows)
        return self._reported(EngineOutputs(matches, bad=bad, late=late), counted)

    def replay(self, batch: pa.Table, watermark: int | None, *, gives: bool = False) -> EngineOutputs:
        """Take in events whose outputs another engine of this query has already given.

        gives   whether the outputs are given once more, for queries that read them
        """
        self._add(batch)
        if watermark is None:
            return EngineOutputs()
        with self._accounts.without_failing():
            matches, _ = self._match(watermark)
        self._total = replace(self._total, dropped=self._accounts.dropped)
        return EngineOutputs(matches) if gives else EngineOutputs()

    def _add(self, batch: pa.Table) -> tuple[list[BadRow], pa.Table]:
        if not self._has_begun:
            self._begin(batch.schema)
        return self._arrivals.add(batch)

    def _few_enough(self, table: pa.Table, *, latest_first: bool = False) -> pa.Table:
        """The results without those over the budget of matches that end with one event.

        latest_first   how those that end together stand: by the latest start, or by the earliest
        """
        most = self._accounts.matches_per_event
        if table.num_rows <= most:
            return table
        ends = integers(table.column("end"))
        first = np.searchsorted(ends, ends)
        # Of those that end together, the latest starts are kept.
        places = np.arange(len(ends))
        place = places - first + 1 if latest_first else np.searchsorted(ends, ends, side="right") - places
        over = place > most
        if not over.any():
            return table
        if not self._accounts.drops:
            if not self._accounts.fails:
                return table
            number = int(np.bincount(first).max())
            raise BudgetExceeded(
                f"more than {most:,} results end with one event, at {int(ends[over][0])}: {number:,}",
                hint="narrow the conditions, or raise the budget",
            )
        self._accounts.dropped_matches += int(over.sum())
        return table.filter(to_arrow(~over))

    # What is held

    @property
    def replays_by_update(self) -> bool:
        """Whether only the same batches and watermarks build an equal engine: what a budget drops depends on them."""
        return self._accounts.drops

    @property
    def waiting(self) -> pa.Table | None:
        """The events that the watermark has not passed; None when no event was ever seen."""
        return self._arrivals.waiting

    @property
    def alive(self) -> Alive:
        """The partial results that wait, and the waiting events."""
        waiting = self._arrivals.waiting
        events = 0 if waiting is None else waiting.num_rows
        return Alive(events, self._runs, self.state_bytes) if events or self._runs else Alive()

    @property
    def dropped(self) -> int:
        """How many matches and partial matches over a budget were dropped so far."""
        return self._total.dropped

    @property
    def statistics(self) -> RunCounts:
        """The counts of all batches so far, and what is held now."""
        waiting = self._arrivals.waiting
        return RunCounts(
            **asdict(self._total),
            waiting=0 if waiting is None else waiting.num_rows,
            runs=self._runs,
            state_bytes=self.nbytes,
        )

    def _reported(self, outputs: EngineOutputs, counted: BatchCounts) -> EngineOutputs:
        now = replace(
            counted,
            matches=0 if outputs.matches is None else outputs.matches.num_rows,
            dropped=self._accounts.dropped - self._total.dropped,
        )
        self._total += now
        return replace(outputs, statistics=now)
