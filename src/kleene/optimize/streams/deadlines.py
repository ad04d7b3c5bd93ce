"""Upper bounds on DUR: how long an instance can be of use at each state.

A composite event only grows longer. So what one edge forbids by its length, no later edge can allow, and a bound that
stands on the last state holds at all states before it.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil, floor, isfinite

from kleene.pattern.expressions import Clause, Comparison, Constant, Elapsed
from kleene.plan.streams import FINAL, StreamEdge, StreamPlan, WaitingState

_MIRRORED = {">": "<", ">=": "<=", "=": "="}


def with_deadlines(plan: StreamPlan) -> StreamPlan:
    """The plan with the longest useful duration at each state."""
    states = list(plan.states)
    for number in reversed(range(len(states))):
        (forward,) = (edge for edge in plan.leaving(number) if edge.target != number)
        states[number] = replace(states[number], most=_most(states[number], forward, states))
    return replace(plan, states=tuple(states))


def _most(state: WaitingState, forward: StreamEdge, states: list[WaitingState]) -> int | None:
    bounds = [bound for clause in (*state.condition, *forward.condition) if (bound := longest(clause)) is not None]
    later = None if forward.target == FINAL else states[forward.target].most
    return min([*bounds, *([] if later is None else [later])], default=None)


def longest(clause: Clause) -> int | None:
    """How many steps of time a composite event may last if a clause holds; None: it says nothing of that."""
    match clause.literals:
        case (Comparison(operator, Elapsed() as elapsed, Constant(bound)),) if operator in ("<", "<=", "="):
            return _steps(elapsed, operator, bound)
        case (Comparison(operator, Constant(bound), Elapsed() as elapsed),) if operator in _MIRRORED:
            return _steps(elapsed, _MIRRORED[operator], bound)
    return None


def _steps(elapsed: Elapsed, operator: str, bound: object) -> int | None:
    """`steps · step + tick` compared with a bound."""
    if elapsed.of_event or isinstance(bound, bool) or not isinstance(bound, int | float) or not isfinite(bound):
        return None
    most = (bound - elapsed.tick) / elapsed.step if isinstance(bound, float) else None
    if most is None:
        whole, rest = divmod(int(bound) - elapsed.tick, elapsed.step)
        return whole - 1 if operator == "<" and not rest else whole
    return ceil(most) - 1 if operator == "<" else floor(most)
