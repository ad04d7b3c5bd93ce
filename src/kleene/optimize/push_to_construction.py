"""Pushes conditions across events into construction (SASE §4.2.2): each is tested once its events are bound.

The paper calls this dynamic filtering. Construction goes from the last place to the first, so a clause can be tested at
the earliest place that it names. An equivalence test compares all places with each other; it is tested between
neighbours, so that each event is tested when it is bound.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from kleene.pattern.expressions import Clause, variables
from kleene.pattern.query import BoundQuery
from kleene.plan.check import agreement
from kleene.plan.implied import implied_by_key
from kleene.plan.physical import AutomatonPlan, SequencePlan


def push_to_construction(plan: SequencePlan | AutomatonPlan, query: BoundQuery) -> SequencePlan | AutomatonPlan:
    if isinstance(plan, AutomatonPlan):
        return plan
    names = [scan.component.variable for scan in plan.scans]
    places = {name: place for place, name in enumerate(names)}
    during = [list(clauses) for clauses in plan.during]
    for clause in _between_neighbours(plan.after, names, query.partition):
        named = [places[name] for name in variables(clause) if name in places]
        during[min(named, default=len(places) - 1)].append(clause)
    return replace(plan, during=tuple(map(tuple, during)), after=())


def _between_neighbours(clauses: tuple[Clause, ...], names: list[str], partition: tuple[str, ...]) -> list[Clause]:
    """The clauses, with `b.x = a.x` and `c.x = a.x` replaced by `a.x = b.x` and `b.x = c.x`.

    That is the same, since every event type has the attributes of the partition.
    """
    tests = [clause for clause in clauses if not implied_by_key(clause, partition)]
    for attribute in partition:
        if any(implied_by_key(clause, (attribute,)) for clause in clauses):
            tests += [agreement(left, right, attribute, clauses) for left, right in pairwise(names)]
    return tests
