"""The arguments that every operator of a tree reads in a round (ZStream §4.3)."""

from __future__ import annotations

from dataclasses import dataclass

from kleene.engine.state.budget import Accounts
from kleene.engine.state.store import EventStore
from kleene.kernels.expression import EventColumns, Groups, Ints, ProgramScope, Stack, Texts
from kleene.kernels.joins import JoinWindow
from kleene.kernels.timeline import Timeline, WindowLength


@dataclass(frozen=True, eq=False)
class Round:
    store: EventStore
    time: Timeline
    # The number of partitions.
    keys: int
    window: JoinWindow
    # The query's window, whether or not it can be tested early.
    within: WindowLength
    # Whether the window is measured in time, not in events.
    by_time: bool
    events: EventColumns
    texts: Texts
    accounts: Accounts
    # Whether the records of the root are wanted, or only those of the nodes below it.
    emits: bool = True

    @property
    def starts(self) -> Ints:
        """[event]: when it starts, whatever windows are measured by."""
        return self.store.start

    def scope(self, bindings: Ints, groups: Groups, stack: Stack) -> ProgramScope:
        """What programs read in this round."""
        return ProgramScope(self.events, self.texts, bindings, groups, stack)

    @property
    def lasting(self) -> bool:
        return self.time.rights is not self.time.lefts
