"""Plans chosen by statistics (ZStream §5.3): the first from a sample of the events, later ones while the query runs.

Trees change into other trees by themselves (`Adapter`). Here is decided whether a line runs on stacks, on the automaton
or as a tree: on its first events, and again whenever that much was tried that looking once more costs little beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from kleene.engine.executors.contract import Executor
from kleene.engine.executors.trees.adapting import Adapter, windows_of
from kleene.engine.executors.trees.observing import Observer, Sample
from kleene.engine.intake.bits import scan
from kleene.engine.intake.strings import StringPool
from kleene.engine.state.store import EventBatch
from kleene.optimize.choosing import logicals, total_cost, trees
from kleene.optimize.planner import line_plans, may_be_trees, plan_query, why_not
from kleene.optimize.statistics import Statistics, changed, merged
from kleene.optimize.trees.logical import Logical
from kleene.pattern.query import BoundQuery
from kleene.pattern.recent import Recent
from kleene.plan.layout import Column
from kleene.plan.physical import Plan
from kleene.plan.settings import Settings
from kleene.plan.trees import GroupNode, LeafNode, TreePlan, walk

# The most events of the sample for the first plan, and of those for later ones.
SAMPLED, SAMPLED_LATER = 16_384, 4096
# The fewest events for which a line becomes a tree, in all and in one window of one partition.
_WORTH_IT, _DENSE = 2048, 16
# A line looks again after so many combinations, which take it some ten times as long as looking does; after fewer, if
# an event makes more than twice as many of them as when it looked last. Where an event makes few, no plan makes fewer.
_TRIED, _TRIED_IN_A_JUMP = 1_000_000, 100_000
# The weight of the latest statistics in the running averages.
_WEIGHT = 0.75


@dataclass
class _Progress:
    """How far a line has come since it last looked at its statistics, and what an event cost it before."""

    events: int = 0
    tried: int = 0
    tried_an_event: float | None = None

    def is_calm(self, events: int, tried: int) -> bool:
        """Whether events make so few combinations that no plan makes far fewer."""
        return tried - self.tried < _DENSE * (events - self.events)

    def is_worth_a_look(self, events: int, tried: int) -> bool:
        if self.is_calm(events, tried):
            return False
        events, tried = events - self.events, tried - self.tried
        jumps = self.tried_an_event is not None and tried > 2 * self.tried_an_event * events
        return tried >= (_TRIED_IN_A_JUMP if jumps else _TRIED)

    def after_look(self, events: int, tried: int) -> _Progress:
        return _Progress(events, tried, (tried - self.tried) / max(events - self.events, 1))


@dataclass
class Planning:
    """Finds plans for one query."""

    query: BoundQuery
    settings: Settings
    statistics: Statistics
    # Whether the first events decide the plan.
    looks: bool
    # Whether statistics decide between stacks, automaton and trees.
    is_open_line: bool
    _parts: tuple[Logical, ...] | None = None
    _adapters: list[Adapter] = field(default_factory=list)
    # Their statistics when stacks and the automaton were last considered instead of the trees.
    _judged: list[Statistics] = field(default_factory=list)
    # The statistics that the executors were chosen for.
    _chosen_for: Statistics | None = None
    _progress: _Progress = field(default_factory=_Progress)
    _observers: list[tuple[TreePlan, Observer]] = field(default_factory=list)

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
        is_open_line = _OPEN_LINES.get(query, settings, lambda: _is_open_line(query, settings))
        if not is_tree and not is_open_line:
            return None
        return Planning(query, settings, statistics or Statistics(), statistics is None, is_open_line)

    def again(self, *, looks: bool = False) -> Planning:
        """Planning for the same query, with the statistics so far; `looks`: whether it samples again."""
        known, chosen_for = self._known, self._chosen_for
        return Planning(self.query, self.settings, known, looks, self.is_open_line, self._parts, _chosen_for=chosen_for)

    @property
    def _known(self) -> Statistics:
        known = self.statistics
        for adapter in self._adapters:
            known = _both(known, adapter.statistics)
        return known

    # The first plan --------------------------------------------------------------------------------------------------

    def first_plan(self, arrived: EventBatch, columns: Mapping[str, Column], strings: StringPool) -> Plan | None:
        """A plan for the first events; None: the plan stays."""
        if not self.looks:
            return None
        self.looks = False
        if self.is_open_line and not self._is_dense(arrived):
            return None
        size = len(arrived.end)
        first = max(0, (size - SAMPLED) // 2)
        some = arrived if size <= SAMPLED else arrived.take(np.arange(first, first + SAMPLED))
        self.statistics = self._chosen_for = self._observed(some, columns, strings)
        return plan_query(self.query, self.settings, self.statistics)

    def _is_dense(self, arrived: EventBatch) -> bool:
        """Whether a window holds so many events that the order of joins can matter for a line.

        With few events, stacks take less time than sampling them would.
        """
        size, keys = len(arrived.end), int(arrived.partition.max()) + 1
        if size < _WORTH_IT or keys < 1:
            return False
        return size / (max(windows_of(self.query, arrived.end), 1.0) * keys) >= _DENSE

    # Later plans -----------------------------------------------------------------------------------------------------

    @property
    def may_change_executors(self) -> bool:
        """Whether a line may go on with other executors than it began with."""
        return self.settings.adapting.on and self.is_open_line

    def forget_adapters(self) -> None:
        """The trees that these watched run no more."""
        self._adapters.clear()

    def begin(self, executors: Sequence[Executor], events: int) -> None:
        """Count from here: new executors have taken over after so many events."""
        self._progress = _Progress(events, _tried(executors))

    def is_calm(self, executors: Sequence[Executor], events: int) -> bool:
        """Whether a line makes so few combinations of its events that it need not look often for a better plan."""
        return not self._adapters and self._progress.is_calm(events, _tried(executors))

    def is_due(self, executors: Sequence[Executor], events: int) -> bool:
        """Whether it is time to ask for a better plan, after so many events; seldom, since that costs some time."""
        if not self.may_change_executors:
            return False
        if self._adapters:
            return self._judged != [adapter.statistics for adapter in self._adapters]
        return self._progress.is_worth_a_look(events, _tried(executors))

    def better_plan(
        self,
        plan: Plan,
        executors: Sequence[Executor],
        events: int,
        latest: Callable[[int], EventBatch],
        columns: Mapping[str, Column],
        strings: StringPool,
    ) -> Plan | None:
        """A plan on other executors than those that run a line now, if it costs less; None: they stay.

        events   how many events they have taken in
        latest   gives the latest so many of these, or as many as are held
        """
        if self._adapters:
            return self._instead_of_trees(plan)
        self._progress = self._progress.after_look(events, _tried(executors))
        observed = self._observed(latest(SAMPLED_LATER), columns, strings)
        self.statistics = merged(self.statistics, observed, _WEIGHT, self.settings.adapting.change)
        if not self._is_new(self.statistics):
            return None
        best = plan_query(self.query, self.settings, self.statistics)
        return best if self._pays(best, plan) else None

    def _instead_of_trees(self, plan: Plan) -> Plan | None:
        """A plan on stacks or the automaton that costs less than the trees that run; their adapters observe."""
        self._judged = [adapter.statistics for adapter in self._adapters]
        self.statistics = known = self._known
        if not self._is_new(known):
            return None
        best = min(line_plans(self.query, self.settings), key=lambda line: total_cost(line, known))
        return best if self._pays(best, plan) else None

    def _is_new(self, statistics: Statistics) -> bool:
        """Whether statistics differ from those that the executors were last chosen for."""
        before = self._chosen_for
        if before is not None and not changed(before, statistics, self.settings.adapting.change):
            return False
        self._chosen_for = statistics
        return True

    def _pays(self, candidate: Plan, running: Plan) -> bool:
        if candidate.alternatives == running.alternatives:
            return False
        cost = total_cost(running, self.statistics)
        return total_cost(candidate, self.statistics) <= (1 - self.settings.adapting.gain) * cost

    def adapter(
        self, number: int, plan: TreePlan, columns: Mapping[str, Column], strings: StringPool
    ) -> Adapter | None:
        if not self.settings.adapting.on:
            return None
        adapter = Adapter(self.query, self.parts[number], plan, self.statistics, columns, strings, self.settings)
        self._adapters.append(adapter)
        return adapter

    # Statistics ------------------------------------------------------------------------------------------------------

    def _observed(self, some: EventBatch, columns: Mapping[str, Column], strings: StringPool) -> Statistics:
        """Statistics of some events."""
        if not self._observers:
            for plan in trees(self.query, self.settings, Statistics()).alternatives:
                assert isinstance(plan, TreePlan), "trees are trees"
                self._observers.append((plan, Observer(plan, columns, strings, self.query.window)))
        known = Statistics()
        for plan, observer in self._observers:
            known = _both(known, observer.observed(_sample(self.query, plan, some, strings)))
        return known


# By query and settings: whether statistics decide between stacks, automaton and trees.
_OPEN_LINES: Recent[bool] = Recent()


def _is_open_line(query: BoundQuery, settings: Settings) -> bool:
    return why_not(query) is None and settings.executor is None and may_be_trees(query, settings)


def _tried(executors: Sequence[Executor]) -> int:
    return sum(executor.tried for executor in executors)


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
