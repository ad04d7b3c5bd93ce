"""Equivalence tests to partitioned stacks (PAIS, SASE §4.2.1): the comparisons that the key implies need no test."""

from __future__ import annotations

from dataclasses import replace

from kleene.plan.check import implied_by_key
from kleene.plan.physical import SequencePlan


def push_equivalence(plan: SequencePlan, partition: tuple[str, ...]) -> SequencePlan:
    """All attributes of the query's partition make one key: it is coded densely, so a longer key costs no memory."""
    keyed = replace(plan, key=partition, absences=tuple(replace(a, keyed=bool(partition)) for a in plan.absences))
    return replace(keyed, after=tuple(clause for clause in plan.after if not implied_by_key(clause, keyed)))
