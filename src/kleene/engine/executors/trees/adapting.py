"""Looks for a better plan while one runs (ZStream §5.3): running averages, thresholds t and c."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kleene.engine.executors.trees.observing import Observer, Sample
from kleene.engine.intake.strings import StringPool
from kleene.engine.state.store import EventStore
from kleene.kernels.expression import Ints, Texts
from kleene.kernels.timeline import Timeline
from kleene.optimize.choosing import chosen_tree
from kleene.optimize.cost import cost_of
from kleene.optimize.statistics import Statistics, changed, merged
from kleene.optimize.trees.logical import Logical
from kleene.pattern.query import BoundQuery
from kleene.plan.costs import Costed
from kleene.plan.layout import Column
from kleene.plan.settings import Settings
from kleene.plan.trees import TreePlan

# The weight of the latest statistics in the running averages.
_WEIGHT = 0.75
# Observing costs as much as forty thousand combinations: it is done after so many of them, or so many usual rounds;
# and after fewer, where an event makes more than twice as many of them as it did before.
_TRIED, _ROUNDS, _TRIED_IN_A_JUMP = 1_000_000, 8, 40_000
# A look that finds nothing new lets the next one wait for twice as many combinations, up to so many times the first.
_MOST_PATIENCE = 8
# The events of a usual round.
USUAL_ROUND = 4096
# The fewest events that statistics rest on, where so many are held; a round is longer, unless batches are small.
_LEAST = 1024


class Adapter:
    """Watches one tree, and proposes better plans."""

    def __init__(
        self,
        query: BoundQuery,
        logical: Logical,
        plan: TreePlan,
        statistics: Statistics,
        columns: Mapping[str, Column],
        strings: StringPool,
        settings: Settings,
    ) -> None:
        """`statistics`: those that the plan was chosen for."""
        self._query, self._logical, self._settings = query, logical, settings
        self._observer = Observer(plan, columns, strings, query.window)
        self._plan, self._made_for, self.statistics = plan, statistics, statistics
        # Since the last look: the events, and the combinations that they made.
        self._events = self._tried = 0
        # How many an event made before the last look; None: not known for this plan.
        self._tried_an_event: float | None = None
        self._patience = 1
        self.costs: Costed = cost_of(query, plan, statistics)

    def after_round(
        self,
        store: EventStore,
        time: Timeline,
        members: Callable[[int, int], Mapping[str, Ints]],
        first: int,
        last: int,
        texts: Texts,
        tried: int,
    ) -> TreePlan | None:
        """A better plan, or None.

        members       gives the events of each variable between two numbers
        first, last   the events of the round
        tried         the combinations that the round tried
        """
        if not self._is_worth_a_look(last - first, tried):
            return None
        first = max(0, min(first, last - _LEAST))
        windows = windows_of(self._query, store.end[first:last])
        sample = Sample(members(first, last), time.starts, time.ends, time.keys, windows, store.events, texts)
        adapting = self._settings.adapting
        self.statistics = merged(self.statistics, self._observer.observed(sample), _WEIGHT, adapting.change)
        if not changed(self._made_for, self.statistics, adapting.change):
            self._patience = min(2 * self._patience, _MOST_PATIENCE)
            return None
        self._made_for, self._patience = self.statistics, 1
        self.costs = cost_of(self._query, self._plan, self.statistics)
        candidate = chosen_tree(self._query, self._logical, self.statistics, self._settings)
        if candidate.plan == self._plan or candidate.costs.total > (1 - adapting.gain) * self.costs.total:
            return None
        self._plan, self.costs = candidate.plan, candidate.costs
        self._tried_an_event = None
        return candidate.plan

    def _is_worth_a_look(self, events: int, tried: int) -> bool:
        before = self._tried / self._events if self._events else self._tried_an_event
        jumps = before is not None and tried > 2 * before * events
        self._events, self._tried = self._events + events, self._tried + tried
        rounds = _ROUNDS * (self._settings.adapting.round or USUAL_ROUND)
        if self._events < rounds and self._tried < (_TRIED_IN_A_JUMP if jumps else self._patience * _TRIED):
            return False
        self._tried_an_event = self._tried / self._events
        self._events = self._tried = 0
        return True


def windows_of(query: BoundQuery, ends: Ints) -> float:
    """How many windows events with these ends span."""
    window = query.window
    if window is None:
        return 1.0
    length = len(ends) if window.events else int(ends[-1]) - int(ends[0]) + 1
    return length / max(window.size, 1)
