"""What a run may use, and what happens when it would use more (the semantics page §6)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from kleene.engine.state.store import EventStore
from kleene.errors import BudgetExceeded
from kleene.plan.settings import Budget, Policy

_NARROWER = "narrow the window or the conditions, choose another strategy or OUTPUT COMPRESSED, or raise the budget"


@dataclass
class Accounts:
    """A budget, and what it made an engine drop."""

    budget: Budget
    dropped_matches: int = 0
    dropped_runs: int = 0
    dropped_events: int = 0

    # Whether too many matches are an error; not those that were given before.
    fails: bool = True

    @contextmanager
    def without_failing(self) -> Iterator[None]:
        self.fails = False
        try:
            yield
        finally:
            self.fails = True

    @property
    def matches_per_event(self) -> int:
        return self.budget.matches_per_event

    @property
    def drops(self) -> bool:
        return self.budget.policy is Policy.DROP_OLDEST

    @property
    def dropped(self) -> int:
        return self.dropped_matches + self.dropped_runs + self.dropped_events

    def too_many_matches(self, store: EventStore, event: int, count: int | None = None) -> None:
        suffix = "" if count is None else f": {count:,}"
        raise BudgetExceeded(
            f"more than {self.budget.matches_per_event:,} matches end with one event, at {store.end[event]}{suffix}",
            hint=_NARROWER,
        )

    def too_many_runs(self, store: EventStore, event: int) -> None:
        raise BudgetExceeded(
            f"more than {self.budget.runs_per_partition:,} partial matches are open in one partition, "
            f"at {store.end[event]}",
            hint=_NARROWER,
        )

    def too_much_state(self, size: int) -> None:
        raise BudgetExceeded(
            f"the query holds {size:,} bytes, more than its budget of {self.budget.state_bytes:,}", hint=_NARROWER
        )
