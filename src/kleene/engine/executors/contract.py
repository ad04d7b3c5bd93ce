"""The contract between the engine and what runs one alternative of a plan.

An executor is offered events, says which of them are of use, and gives what is certain. Its state is made of the events
that the store holds and of `Resumed`, and can be made of them again: nothing else of it is ever saved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from kleene.engine.executors.drops import Drops
from kleene.engine.executors.windows import Closing
from kleene.engine.intake.bits import Bits
from kleene.engine.intake.columns import ColumnStore
from kleene.engine.intake.strings import StringPool
from kleene.engine.output.matches import Matches
from kleene.engine.state.budget import Accounts
from kleene.engine.state.statistics import ComponentCounts
from kleene.engine.state.store import EventStore
from kleene.kernels.expression import Ints
from kleene.kernels.timeline import Timeline
from kleene.pattern.query import BoundQuery
from kleene.plan.costs import Costed, Measured
from kleene.plan.layout import Column
from kleene.plan.settings import Settings

if TYPE_CHECKING:
    from kleene.engine.executors.automaton import AutomatonExecutor
    from kleene.engine.executors.trees.adapting import Adapter

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ExecutorContext:
    """What an executor is made with, besides its plan."""

    query: BoundQuery
    columns: Mapping[str, Column]
    strings: StringPool
    accounts: Accounts
    settings: Settings
    # Whether the query has no other alternative.
    alone: bool = True
    # What looks for a better plan as it runs; None: nothing does.
    adapter: Callable[[Any], Adapter | None] | None = None


@dataclass(frozen=True, eq=False)
class CompletedRuns:
    """Runs of an automaton that are matches, by their last nodes: they share what they have selected."""

    graph: AutomatonExecutor
    nodes: Ints


@dataclass(frozen=True, eq=False)
class Completions:
    """What an executor has completed: matches that are written out, or runs that stand for them."""

    matches: Matches | None = None
    runs: CompletedRuns | None = None


@dataclass(frozen=True, eq=False)
class Resumed:
    """What an executor cannot tell from events when it is made anew.

    frontier   [partition]: the step with which the match chosen last ended (NON_OVERLAP)
    drops      where a budget made it drop runs
    """

    frontier: Ints
    drops: Drops = field(default_factory=Drops)


class Executor(Protocol):
    """Runs one alternative of a plan.

    key    the equivalence attributes by which it divides events
    plan   what it runs now; it may change where the executor adapts
    """

    key: tuple[str, ...]
    plan: Any

    # Events

    def bits(self, columns: ColumnStore, in_partition: Flags) -> Bits:
        """What each event of a batch could be here."""

    def advance(self, store: EventStore, begin: int, bits: Bits, time: Timeline, keys: int) -> None:
        """Take in the store's events from `begin` on; `keys` is how many partitions there are."""

    def settle(self, store: EventStore, time: Timeline, keys: int, closing: Closing) -> Completions:
        """What is certain by now, and was not before; what has a negated end waits for its window to close."""

    @property
    def undecided_events(self) -> Ints:
        """The last events of what has been completed, and waits for its window to close."""
        return np.zeros(0, np.int64)

    # Made anew

    def resume(self, known: Resumed) -> None:
        """Begin with what cannot be told from the events that follow."""

    @property
    def drops(self) -> Drops:
        """Where a budget made it drop runs."""
        return Drops()

    def forget_matches(self) -> bool:
        """Drop what is certain, since it was given before; False where the executor cannot tell it apart."""
        return False

    # What it counts

    def counts(self) -> tuple[ComponentCounts, ...]:
        """By component: how many events it saw, and what became of them."""

    def count_from(self, before: Self | None) -> None:
        """What was counted before this one was made, in place of what was counted in making it."""

    @property
    def measured(self) -> Measured | None:
        """What was counted by node of its plan, where it has nodes."""
        return None

    @property
    def costs(self) -> Costed | None:
        """What its plan is expected to cost, where it has changed that plan."""
        return None

    # What it holds

    @property
    def runs(self) -> int:
        """Partial matches that are held."""

    def open_runs(self, closing: Closing) -> int:
        """Those of them whose window is still open."""

    @property
    def nbytes(self) -> int:
        """What it takes, with what is dead and not dropped yet."""

    @property
    def fixed_bytes(self) -> int:
        """Asked before the first event: what it takes whatever comes; nothing where its plan may change."""
        return self.nbytes

    def open_bytes(self, closing: Closing, time: Timeline) -> int:
        """What the partial matches of open windows take, whatever plan and batches made them."""


ExecutorFactory = Callable[[Any, ExecutorContext], Executor]
