"""The statistics of ZStream's Table 1, from the events in leaf buffers (§5.3): rates, and selectivities by sampling.

A condition is tried on events drawn at random that lie within a window of each other, not on those that the plan tries,
so that the statistics do not depend on the plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kleene.engine.executors.linking import groups
from kleene.engine.executors.trees.conditions import CompiledCondition
from kleene.engine.intake.strings import StringPool
from kleene.kernels.expression import EventColumns, Ints, ProgramScope, Texts, holds_each
from kleene.kernels.timeline import shifted
from kleene.optimize import fingerprints
from kleene.optimize.statistics import Statistics
from kleene.pattern.clock import Window
from kleene.pattern.expressions import Attribute, Clause, Which, references, variables
from kleene.pattern.nodes import Component
from kleene.plan.layout import Column
from kleene.plan.trees import GroupNode, JoinNode, LeafNode, NegNode, TreePlan, UnionNode, walk

# How many combinations of events each condition is tried on.
_DRAWN = 512


@dataclass(frozen=True, eq=False)
class Sample:
    """Observed events, in order."""

    # By variable: the numbers of its events.
    members: Mapping[str, Ints]
    # [event]: where windows begin and end to be measured, and its partition.
    starts: Ints
    ends: Ints
    keys: Ints
    # The time that they span, in windows.
    windows: float
    events: EventColumns
    texts: Texts


class Observer:
    """Observes the statistics of a pattern, whichever of its plans runs."""

    def __init__(
        self, plan: TreePlan, columns: Mapping[str, Column], strings: StringPool, window: Window | None
    ) -> None:
        nodes = list(walk(plan.root))
        negated = {scan.component.variable: scan for absence in plan.absences for scan in absence.scans}
        taken = {node.scan.component.variable: node.scan for node in nodes if isinstance(node, LeafNode | GroupNode)}
        self._rates = {name: fingerprints.of_scan(scan) for name, scan in {**taken, **negated}.items()}
        self._components: dict[str, Component] = {name: scan.component for name, scan in {**taken, **negated}.items()}
        self._window = window
        self._draws = 0
        self._tests = [
            (
                fingerprints.of_clause(clause, self._components),
                sorted(variables(clause)),
                CompiledCondition([clause], columns, strings),
            )
            for clause in dict.fromkeys(_clauses(plan))
            if self._can_be_tried(clause)
        ]

    def _can_be_tried(self, clause: Clause) -> bool:
        """Whether a clause is on single events of several variables; lists are unknown before they are made."""
        named = references(clause)
        single = all(
            isinstance(reference, Attribute) and reference.which in (Which.SINGLE, Which.MEMBER) for reference in named
        )
        return bool(named) and single and len(variables(clause)) > 1 and variables(clause) <= self._components.keys()

    def observed(self, sample: Sample) -> Statistics:
        self._draws += 1
        draw = np.random.default_rng(self._draws)
        windows = max(sample.windows, 1e-9)
        rates = {fingerprint: len(sample.members.get(name, ())) / windows for name, fingerprint in self._rates.items()}
        selectivities = {}
        for fingerprint, names, condition in self._tests:
            selectivity = self._tried(names, condition, sample, draw)
            if selectivity is not None:
                selectivities[fingerprint] = selectivity
        seen = [events for events in sample.members.values() if len(events)]
        every = np.concatenate(seen) if seen else np.zeros(0, np.int64)
        keys = self._keys(np.sort(every), sample, windows) if len(every) else 1.0
        return Statistics(rates, selectivities, {}, max(keys, 1.0), len(every))

    @staticmethod
    def _keys(every: Ints, sample: Sample, windows: float) -> float:
        """The number of partitions with an event in one window, estimated from its first events where it has many."""
        number = max(1, int(len(every) / max(windows, 1.0)))
        looked_at = every[: min(number, _DRAWN)]
        distinct = len(np.unique(sample.keys[looked_at]))
        # Where most keys differ, further events bring further partitions; otherwise most have been met.
        return distinct * number / len(looked_at) if 2 * distinct > len(looked_at) else float(distinct)

    def _tried(
        self, names: list[str], condition: CompiledCondition, sample: Sample, draw: np.random.Generator
    ) -> float | None:
        if any(not len(sample.members.get(name, ())) for name in names):
            return None
        chosen: dict[str, Ints] = {}
        first = sample.members[names[0]]
        anchors = first[draw.integers(0, len(first), _DRAWN)]
        chosen[names[0]] = anchors
        for name in names[1:]:
            chosen[name] = self._near(anchors, sample.members[name], sample, draw)
        bindings = np.full((_DRAWN, condition.slots), -1, np.int64)
        for (name, _), slot in condition.layout.identifiers.items():
            bindings[:, slot] = chosen[name]
        out = np.zeros(_DRAWN, np.bool_)
        scope = ProgramScope(sample.events, sample.texts, bindings, groups(_DRAWN, 1), condition.stack)
        holds_each(condition.code, scope, out)
        # As if half of one more had passed: what was not seen is rare, not impossible.
        return (int(np.count_nonzero(out)) + 0.5) / (_DRAWN + 1)

    def _near(self, anchors: Ints, others: Ints, sample: Sample, draw: np.random.Generator) -> Ints:
        """For each event another within a window of it, where there is one."""
        if self._window is None or self._window.events:
            return others[draw.integers(0, len(others), len(anchors))]
        ends = sample.ends[others]
        low = np.searchsorted(ends, shifted(sample.ends[anchors], -self._window.size))
        high = np.searchsorted(ends, shifted(sample.ends[anchors], self._window.size), side="right")
        low, high = np.minimum(low, len(others) - 1), np.maximum(high, low + 1)
        return others[np.minimum(low + (draw.random(len(anchors)) * (high - low)).astype(np.int64), len(others) - 1)]


def _clauses(plan: TreePlan) -> list[Clause]:
    clauses: list[Clause] = [*plan.after]
    for node in walk(plan.root):
        match node:
            case JoinNode(equalities=equalities, tests=tests):
                clauses += [*equalities, *tests]
            case GroupNode(members=members, tests=tests):
                clauses += [*members, *tests]
            case UnionNode(tests=tests):
                clauses += tests
            case LeafNode() | NegNode():
                pass
    for absence in plan.absences:
        clauses += absence.conditions
    return clauses
