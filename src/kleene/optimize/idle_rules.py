"""Which rules of the optimiser a query gives nothing to do: for `explain`."""

from __future__ import annotations

from kleene.optimize.planner import basic_plan, why_not
from kleene.optimize.rules import LINE_RULES
from kleene.pattern.query import BoundQuery
from kleene.plan.settings import Settings


def idle_rules(query: BoundQuery, settings: Settings) -> frozenset[str]:
    """The rules that are on and change the plan of no alternative."""
    on = {name: rule for name, rule in LINE_RULES if settings.uses(name)}
    if why_not(query) is not None:
        return frozenset(on)
    busy = set()
    for pattern in query.alternatives:
        plan = basic_plan(query, pattern)
        for name, rule in on.items():
            better = rule(plan, query)
            if better != plan:
                busy.add(name)
            plan = better
    return frozenset(on) - busy
