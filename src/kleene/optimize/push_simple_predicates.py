"""Simple predicates to the scan (SASE §4.2): a condition on one event decides whether it becomes an instance at all."""

from __future__ import annotations

from dataclasses import replace

from kleene.pattern.expressions import variables
from kleene.plan.physical import SequencePlan


def push_simple_predicates(plan: SequencePlan) -> SequencePlan:
    names = [scan.component.variable for scan in plan.scans]
    masks = {name: list(scan.mask) for name, scan in zip(names, plan.scans, strict=True)}
    kept = []
    for clause in plan.after:
        alone = variables(clause)
        if len(alone) == 1 and alone <= set(names):
            masks[next(iter(alone))].append(clause)
        else:
            kept.append(clause)
    scans = tuple(replace(scan, mask=tuple(masks[name])) for name, scan in zip(names, plan.scans, strict=True))
    return replace(plan, scans=scans, after=tuple(kept))
