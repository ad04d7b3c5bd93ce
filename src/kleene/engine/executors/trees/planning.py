"""Plans chosen by statistics (ZStream §5.3): the first from a sample of the events, later ones at run time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from kleene.engine.executors.trees.adapting import Adapter, windows_of
from kleene.engine.executors.trees.observing import Observer, Sample
from kleene.engine.intake.bits import scan
from kleene.engine.intake.strings import StringPool
from kleene.engine.state.store import EventBatch
from kleene.optimize.choosing import logicals, trees
from kleene.optimize.planner import may_be_trees, plan_query
from kleene.optimize.statistics import Statistics
from kleene.optimize.trees.logical import Logical
from kleene.pattern.query import BoundQuery
from kleene.plan.layout import Column
from kleene.plan.physical import Plan
from kleene.plan.settings import Settings
from kleene.plan.trees import GroupNode, LeafNode, TreePlan, walk

# The most events of the sample for the first plan.
SAMPLED = 16_384
# The fewest events for which a line becomes a tree, in all and in one window of one partition.
_WORTH_IT, _DENSE = 2048, 16


@dataclass
class Planning:
    """Finds plans for one query."""

    query: BoundQuery
    settings: Settings
    statistics: Statistics
    # Whether the first events decide the plan.
    looks: bool
    _parts: tuple[Logical, ...] | None = None
    _adapters: list[Adapter] = field(default_factory=list)

    @property
    def parts(self) -> tuple[Logical, ...]:
        """The parts of the query's union, by the number of the alternative; computed on first use."""
        if self._parts is None:
            self._parts, _ = logicals(self.query, self.settings.without)
        return self._parts

    @staticmethod
    def of(query: BoundQuery, settings: Settings, plan: Plan, statistics: Statistics | None) -> Planning | None:
        """The planning of a query; None where there is nothing to choose."""
        is_tree = any(isinstance(alternative, TreePlan) for alternative in plan.alternatives)
        open_line = settings.executor is None and may_be_trees(query, settings)
        if not is_tree and (not open_line or statistics is not None):
            return None
        return Planning(query, settings, statistics or Statistics(), statistics is None)

    def again(self, *, looks: bool = False) -> Planning:
        """Planning for the same query, with the statistics so far; `looks`: whether it samples again."""
        known = self.statistics
        for adapter in self._adapters:
            known = _both(known, adapter.statistics)
        return Planning(self.query, self.settings, known, looks, self._parts)

    def first_plan(self, arrived: EventBatch, columns: Mapping[str, Column], strings: StringPool) -> Plan | None:
        """A plan for the first events; None: the plan stays."""
        if not self.looks:
            return None
        self.looks = False
        if self.query.is_lines and self.settings.executor is None and not self._is_dense(arrived):
            return None
        self.statistics = sampled(self.query, self.settings, arrived, columns, strings)
        return plan_query(self.query, self.settings, self.statistics)

    def _is_dense(self, arrived: EventBatch) -> bool:
        """Whether a window holds so many events that the order of joins can matter for a line.

        With few events, stacks take less time than sampling them would.
        """
        size, keys = len(arrived.end), int(arrived.partition.max()) + 1
        if size < _WORTH_IT or keys < 1:
            return False
        return size / (max(windows_of(self.query, arrived.end), 1.0) * keys) >= _DENSE

    def adapter(
        self, number: int, plan: TreePlan, columns: Mapping[str, Column], strings: StringPool
    ) -> Adapter | None:
        if not self.settings.adapting.on:
            return None
        adapter = Adapter(self.query, self.parts[number], plan, self.statistics, columns, strings, self.settings)
        self._adapters.append(adapter)
        return adapter


def sampled(
    query: BoundQuery, settings: Settings, arrived: EventBatch, columns: Mapping[str, Column], strings: StringPool
) -> Statistics:
    """Statistics of a sample from the middle of the events."""
    size = len(arrived.end)
    first = max(0, (size - SAMPLED) // 2)
    some = arrived if size <= SAMPLED else arrived.take(np.arange(first, first + SAMPLED))
    known = Statistics()
    for plan in trees(query, settings, Statistics()).alternatives:
        assert isinstance(plan, TreePlan), "trees are trees"
        observer = Observer(plan, columns, strings, query.window)
        known = _both(known, observer.observed(_sample(query, plan, some, strings)))
    return known


def _sample(query: BoundQuery, plan: TreePlan, some: EventBatch, strings: StringPool) -> Sample:
    taken = [node.scan for node in walk(plan.root) if isinstance(node, LeafNode | GroupNode)]
    negated = [scan for absence in plan.absences for scan in absence.scans]
    members = {}
    for scans, among in ((taken, some.partition >= 0), (negated, None)):
        scan_bits = scan([(each.component, each.mask) for each in scans], some.columns, strings, among)
        for place, each in enumerate(scans):
            members[each.component.variable] = np.flatnonzero((scan_bits.bits >> place) & 1)
    starts, ends = (some.position, some.position) if query.counts_events else (some.start, some.end)
    windows = windows_of(query, some.end)
    return Sample(members, starts, ends, some.partition, windows, some.columns.events, strings.arrays())


def _both(one: Statistics, other: Statistics) -> Statistics:
    """The statistics of both; those of the other win."""
    return replace(
        other,
        rates={**one.rates, **other.rates},
        selectivities={**one.selectivities, **other.selectivities},
        sampled=one.sampled + other.sampled,
    )
