"""The cost of the plans of a line, in the units of `cost`: events touched in one window.

Stacks construct backwards from each last event, so they try what a right-deep tree tries: for each sequence of the
later places, the events of this one that lie before it. Nothing between is kept, and nothing is looked up by hash, so a
condition saves only what would be tried below the place at which it is tested. An automaton offers every event to
every run of its partition that is open.

Two estimates are rough. Without the window in construction, stacks also try events older than the window, which no
statistic counts: the estimate is too low. Merged runs are counted as if each went on alone: the estimate is too high.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial

from kleene.lang.tree import SelectionStrategy
from kleene.optimize.cost import MOST, lists, survival
from kleene.optimize.statistics import Known, Statistics
from kleene.pattern.nodes import ComponentKind
from kleene.pattern.query import BoundQuery
from kleene.plan.physical import Absence, AutomatonPlan, Scan, SequencePlan, StatePlan


@dataclass(frozen=True, slots=True)
class LineWeights:
    """The cost of one step of stacks or runs, relative to one step of a tree; 1 for a step that was not measured."""

    # An event pushed onto the stack of a place, or read by the automaton.
    event: float = 1.0
    # An instance that construction visits.
    visit: float = 1.0
    # An event that is offered to a run, and a run that is created.
    offer: float = 1.0
    run: float = 1.0
    # A condition that is tested, relative to `visit` or `offer`.
    predicate: float = 0.25
    # A match that is emitted.
    output: float = 1.0


# The weights that `make bench-trees` measured, in the units of `cost.CALIBRATED`; those of runs are rough.
CALIBRATED_LINES = LineWeights(event=6.0, visit=2.7, offer=5.0, run=10.0, predicate=0.4, output=6.0)


def cost_of_line(
    query: BoundQuery,
    plan: SequencePlan | AutomatonPlan,
    statistics: Statistics,
    weights: LineWeights | None = None,
) -> float:
    """The cost of one window of events."""
    known = Known(statistics, query.components, plan.key)
    if isinstance(plan, SequencePlan):
        return _stacks(plan, known, weights or CALIBRATED_LINES)
    return _runs(query, plan, known, weights or CALIBRATED_LINES)


def _stacks(plan: SequencePlan, known: Known, weights: LineWeights) -> float:
    rates = [known.rate(scan) for scan in plan.scans]
    cost = weights.event * sum(rates)
    sequences = 0.0
    for place in reversed(range(len(rates))):
        later = len(rates) - 1 - place
        visited = rates[place] if not later else sequences * rates[place] / later / known.keys
        tests = plan.during[place]
        cost += weights.visit * visited * (1 + weights.predicate * len(tests))
        sequences = min(visited * known.of_all(tests), MOST)
    cost += weights.visit * weights.predicate * sequences * len(plan.after)
    sequences *= known.of_all(plan.after)
    for absence in plan.absences:
        cost += weights.visit * sequences * (1 + weights.predicate * len(absence.conditions))
        sequences *= _survive(absence, known)
    return cost + weights.output * sequences


def _runs(query: BoundQuery, plan: AutomatonPlan, known: Known, weights: LineWeights) -> float:
    """The cost of the conditions on edges, of the runs open at each state, and of the events offered to them."""
    events = sum(_begun(state, known) for state in plan.states)
    cost = weights.event * events
    # `combinations`: prod(CARD) of the states so far times the selectivities of their conditions.
    # `waiting`: the runs that wait for the next state.
    combinations, waiting = 1.0, 1.0
    forks = query.strategy is SelectionStrategy.SKIP_TILL_ANY_MATCH
    for number, state in enumerate(plan.states):
        tests = (*state.begin.tests, *state.proceed, *state.take.tests)
        mine = (_lists(state, known) if forks else _begun(state, known)) / (known.keys if number else 1.0)
        cost += weights.offer * weights.predicate * waiting * mine * len(tests)
        share = mine * known.of_all(tests)
        for absence in plan.absences:
            share *= _survive(absence, known) if absence.at == number else 1.0
        # Unless a run forks at each event, it continues in at most one way after its first state.
        combinations = min(combinations * (share if forks or not number else min(share, 1.0)), MOST)
        if number < len(plan.states) - 1:
            # prod(CARD) / (k - 1)! records are completed in one window, and one in k of them is open at any moment.
            waiting = combinations / factorial(number + 1) if forks else combinations
            cost += weights.run * waiting + weights.offer * waiting * events / known.keys
    matches = combinations / factorial(len(plan.states) - 1) if forks else combinations
    for absence in plan.absences:
        if absence.at is None:
            cost += weights.offer * matches * (1 + weights.predicate * len(absence.conditions))
            matches *= _survive(absence, known)
    return cost + weights.output * matches


def _begun(state: StatePlan, known: Known) -> float:
    return known.rate(Scan(state.component, state.begin.mask))


def _lists(state: StatePlan, known: Known) -> float:
    """Events, or lists of events, that a state takes in a window if it takes every one that it can."""
    if state.component.kind is ComponentKind.SINGLE:
        return _begun(state, known)
    more = known.rate(Scan(state.component, state.take.mask))
    return known.keys * lists(more / known.keys, state.component) * _begun(state, known) / more


def _survive(absence: Absence, known: Known) -> float:
    return survival(absence.scan, absence.conditions, known)
