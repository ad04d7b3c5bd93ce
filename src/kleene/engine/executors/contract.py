"""The contract between the engine and its executors, each of which runs one alternative of a plan.

An executor takes in events, says which of them are useful, and returns the matches that are certain. Its state follows
from the events in the store and from `Resumed`, and can be rebuilt from them: nothing else of it is ever saved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

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
    """The arguments of an executor besides its plan."""

    query: BoundQuery
    columns: Mapping[str, Column]
    strings: StringPool
    accounts: Accounts
    settings: Settings
    # Whether the query has no other alternative.
    alone: bool = True
    # Makes what looks for a better plan at run time; None: the plan stays.
    adapter: Callable[[Any], Adapter | None] | None = None


@dataclass(frozen=True, eq=False)
class CompletedRuns:
    """Runs of an automaton that are matches, given by their last nodes; runs share nodes."""

    graph: AutomatonExecutor
    nodes: Ints

    def ending(self, ends: Ints, since: int) -> CompletedRuns:
        """Those that end at a time or later, given when events end."""
        return CompletedRuns(self.graph, self.nodes[ends[self.graph.event(self.nodes)] >= since])


@dataclass(frozen=True, eq=False)
class Completions:
    """Completed matches of an executor: written out, or as runs that stand for them."""

    matches: Matches | None = None
    runs: CompletedRuns | None = None


@dataclass(frozen=True, eq=False)
class Resumed:
    """State that an executor cannot recover from events when it is rebuilt.

    frontier   [partition]: the step at which the last chosen match ended (NON_OVERLAP)
    drops      the events at which a budget made it drop runs
    """

    frontier: Ints
    drops: Drops = field(default_factory=Drops)


class Executor(Protocol):
    """Runs one alternative of a plan.

    key    the equivalence attributes by which it divides events
    plan   the plan that it runs now; it may change where the executor adapts
    """

    key: tuple[str, ...]
    plan: Any

    # Events

    def bits(self, columns: ColumnStore, in_partition: Flags) -> Bits:
        """The components that each event of a batch could stand for."""

    def advance(self, store: EventStore, begin: int, bits: Bits, time: Timeline, keys: int) -> None:
        """Take in the store's events from `begin` on, as many as there are bits; `keys` is the number of partitions.

        The store may hold further events, which come with a later call.
        """

    def settle(self, store: EventStore, time: Timeline, keys: int, closing: Closing) -> Completions:
        """The matches that have become certain; those with a negated end wait for their window to close."""

    @property
    def undecided_events(self) -> Ints:
        """The last events of completed matches that wait for their window to close."""
        return np.zeros(0, np.int64)

    # Rebuilding

    def resume(self, known: Resumed) -> None:
        """Restore the state that cannot be recovered from the events that follow."""

    @property
    def drops(self) -> Drops:
        """The events at which a budget made it drop runs."""
        return Drops()

    def forget_matches(self) -> bool:
        """Drop certain matches, which were returned before; False where the executor cannot tell them apart."""
        return False

    # Counts

    def counts(self) -> tuple[ComponentCounts, ...]:
        """By component: how many events it saw, and what became of them."""

    def count_from(self, counts: Mapping[str, ComponentCounts], measured: Measured | None) -> None:
        """Take over the counts of the executor that this one replaces, by variable; all zero: start from zero."""

    @property
    def tried(self) -> int:
        """About how many combinations of events it has tried since it was made."""
        return 0

    @property
    def measured(self) -> Measured | None:
        """Counts by node of its plan, where the plan has nodes."""
        return None

    @property
    def costs(self) -> Costed | None:
        """The expected costs of its plan, where it has changed that plan."""
        return None

    # Sizes

    @property
    def runs(self) -> int:
        """The number of partial matches."""

    def open_runs(self, closing: Closing) -> int:
        """The number of partial matches whose window is still open."""

    @property
    def nbytes(self) -> int:
        """Bytes of its state, including what is dead and not dropped yet."""

    @property
    def fixed_bytes(self) -> int:
        """Bytes of its state before the first event; 0 where its plan may change."""
        return self.nbytes

    def open_bytes(self, closing: Closing, time: Timeline) -> int:
        """Bytes of the partial matches of open windows, whatever the plan and the batches."""


ExecutorFactory = Callable[[Any, ExecutorContext], Executor]
