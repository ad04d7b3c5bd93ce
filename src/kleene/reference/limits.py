"""How much work the reference may do before it gives up with a clear error."""

from __future__ import annotations

from dataclasses import dataclass

from kleene.errors import BudgetExceeded


@dataclass(frozen=True, slots=True)
class Limits:
    """Budgets of a run: a pattern can have exponentially many matches."""

    runs: int = 50_000
    matches: int = 1_000_000

    def check_runs(self, count: int) -> None:
        if count > self.runs:
            raise BudgetExceeded(
                f"more than {self.runs:,} partial matches are open at once",
                hint="narrow the window or the conditions, choose another strategy, or raise the budget",
            )

    def check_matches(self, count: int) -> None:
        if count > self.matches:
            raise BudgetExceeded(
                f"more than {self.matches:,} matches",
                hint="narrow the window or the conditions, or raise the budget",
            )
