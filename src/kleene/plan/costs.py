"""The expected and the measured costs of a plan, as plain numbers for display."""

from __future__ import annotations

from dataclasses import dataclass

from kleene.plan.trees import Alternative


@dataclass(frozen=True, slots=True)
class NodeCost:
    """One node of a tree in the time of one window: combinations tried, records made, and what that costs."""

    tried: float
    records: float
    cost: float


@dataclass(frozen=True, slots=True)
class Costed:
    """The expected cost of one alternative in one window, in steps: a step is two records looked at together."""

    total: float
    # Of a tree: in the order of `plan.trees.walk`, children before their parents.
    nodes: tuple[NodeCost, ...] = ()
    # The next best way to run it, and what that would cost.
    runner_up: Alternative | None = None
    runner_up_cost: float | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """Counts of one alternative's executor since its plan was last changed."""

    # Of a tree: combinations tried and records made, in the order of `plan.trees.walk`.
    nodes: tuple[tuple[int, int], ...]
    # How many windows long the events were that it saw.
    windows: float
    # Rounds in which something was assembled, and how often the plan was changed so far.
    rounds: int = 0
    changes: int = 0
