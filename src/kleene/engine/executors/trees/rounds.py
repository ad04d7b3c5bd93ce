"""What every operator of a tree needs in a round (ZStream §4.3)."""

from __future__ import annotations

from dataclasses import dataclass

from kleene.engine.state.budget import Accounts
from kleene.engine.state.store import EventStore
from kleene.kernels.expression import EventColumns, Ints, Texts
from kleene.kernels.joins import JoinWindow
from kleene.kernels.timeline import Timeline


@dataclass(frozen=True, eq=False)
class Round:
    store: EventStore
    time: Timeline
    # How many partitions there are.
    keys: int
    window: JoinWindow
    # As WITHIN says it, whether or not it can be tested early.
    size: int
    inclusive: bool
    # Whether it is measured in time, not in events.
    by_time: bool
    events: EventColumns
    texts: Texts
    accounts: Accounts
    # Whether records that the root makes are wanted, or only what later ones are made of.
    emits: bool = True

    @property
    def starts(self) -> Ints:
        """[event]: when it starts, whatever windows are measured by."""
        return self.store.start

    @property
    def lasting(self) -> bool:
        return self.time.rights is not self.time.lefts
