"""What a run may be told: which rules of the optimiser are off, and budgets."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """Switches for ablation: every rule is on unless it is switched off here.

    >>> Settings(without=frozenset({"push_equivalence"})).uses("push_window")
    True
    """

    without: frozenset[str] = frozenset()
    max_matches: int = 50_000_000

    def uses(self, rule: str) -> bool:
        return rule not in self.without
