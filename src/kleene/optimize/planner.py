"""From a bound query to a physical plan: the executor of each alternative, and the rules that improve a basic plan.

Sequences of single events in which every combination counts go to stacks (SASE §3–4), other lines to the automaton
(SASE+ §3–5). What is no line is a tree of joins (ZStream §4–5), and so is a line for which that costs less.
"""

from __future__ import annotations

from kleene.lang.tree import OutputMode, SelectionStrategy
from kleene.optimize.choosing import cheapest, trees
from kleene.optimize.rules import LINE_RULES, LinePlan
from kleene.optimize.statistics import Statistics
from kleene.optimize.trees.building import MOST_COMPONENTS, why_not_trees
from kleene.optimize.trees.lookups import is_lookup
from kleene.pattern.conditions import LinearPattern, applicable, assign_edges
from kleene.pattern.expressions import Aggregate, Agrees, references, variables
from kleene.pattern.links import key_of
from kleene.pattern.nodes import ComponentKind, Pattern, components
from kleene.pattern.query import BoundQuery
from kleene.pattern.recent import Recent
from kleene.plan.check import check
from kleene.plan.implied import implied_by_key
from kleene.plan.physical import Absence, AutomatonPlan, Edge, Plan, Scan, SequencePlan, StatePlan
from kleene.plan.settings import Budget, ExecutorKind, Policy, Settings

# Of lines with more alternatives than this, no trees are searched.
_FEW = 16
# Of queries of whose events nothing is known.
_PLANS: Recent[Plan] = Recent()
_PAIR = "a negated pair is looked for by trees only"


def plan_query(query: BoundQuery, settings: Settings | None = None, statistics: Statistics | None = None) -> Plan:
    """The plan of a query; one that no executor can run yet stays on the reference evaluator, with the reason.

    statistics   what is known of its events; where nothing is, lines stay on the executors of lines
    """
    assert query.alternatives, "only patterns come here: `plan_of` plans every query"
    settings = settings or Settings()
    if statistics is None:
        return _PLANS.get(query, settings, lambda: _planned(query, settings, None))
    return _planned(query, settings, statistics)


def _planned(query: BoundQuery, settings: Settings, statistics: Statistics | None) -> Plan:
    known = statistics or Statistics()
    wanted = settings.executor
    not_linear = why_not(query)
    is_linear = not_linear is None
    if not is_linear or wanted is ExecutorKind.TREES:
        reason = why_not_trees(query)
        if reason is None:
            return check(trees(query, settings, known))
        if not is_linear:
            return check(Plan.on_reference(query, f"{_PAIR}; {reason}" if not_linear == _PAIR else reason))
    usual = check(_lines(query, settings, ExecutorKind.AUTOMATON if wanted is ExecutorKind.AUTOMATON else None))
    if statistics is None or wanted is not None or not may_be_trees(query, settings):
        return usual
    return check(cheapest(line_plans(query, settings), trees(query, settings, known), known))


def line_plans(query: BoundQuery, settings: Settings) -> list[Plan]:
    """The plans of a line on the executors of lines: on those that suit it, and on the automaton alone."""
    return [_lines(query, settings, None), _lines(query, settings, ExecutorKind.AUTOMATON)]


def may_be_trees(query: BoundQuery, settings: Settings) -> bool:
    """Whether a line could cost less as a tree.

    Several joins can be ordered, a negation be pushed down, or events be looked up by an equality that makes no key.
    """
    if query.output is not OutputMode.ALL or settings.budget.policy is not Policy.FAIL:
        return False
    if len(query.alternatives) > _FEW or any(each.kind is ComponentKind.KLEENE for each in query.positives):
        return False
    listed = [list(components(pattern)) for pattern in query.alternatives]
    several = [each for each in listed if sum(not component.negated for component in each) > 1]
    long = any(len(each) > 2 for each in several)
    return bool(several) and (long or _looks_up(query)) and why_not_trees(query) is None


def _looks_up(query: BoundQuery) -> bool:
    """Whether a tree finds events by their values, where stacks and automaton try each."""
    present, key = {component.variable: component for component in query.positives}, key_of(query)
    clauses = [clause for clause in query.conditions.positive if len(variables(clause)) > 1]
    return any(is_lookup(clause, present, query.schema) and not implied_by_key(clause, key) for clause in clauses)


def _lines(query: BoundQuery, settings: Settings, executor: ExecutorKind | None) -> Plan:
    """Every alternative on an executor of lines: on this one, or on the one that suits it."""
    used = tuple((name, rule) for name, rule in LINE_RULES if settings.uses(name))
    alternatives = []
    for pattern in query.alternatives:
        plan = basic_plan(query, pattern, settings, executor)
        for _, rule in used:
            plan = rule(plan, query)
        alternatives.append(plan)
    return Plan(query, tuple(alternatives), rules=tuple(name for name, _ in used))


def basic_plan(
    query: BoundQuery, pattern: Pattern, settings: Settings | None = None, executor: ExecutorKind | None = None
) -> LinePlan:
    """What the rules begin with: on stacks where these can run it, unless it is to be the automaton."""
    line = assign_edges(tuple(components(pattern)), query.conditions.positive)
    absences = tuple(
        Absence(Scan(a.component), a.after, query.conditions.negative.get(a.component.variable, ()))
        for a in line.absences
    )
    stacks = _is_for_stacks(query, line, (settings or Settings()).budget)
    if stacks and executor is not ExecutorKind.AUTOMATON:
        return _on_stacks(query, line, absences)
    return _on_runs(query, line, absences)


def _is_for_stacks(query: BoundQuery, line: LinearPattern, budget: Budget) -> bool:
    """Runs can be dropped and matches be emitted compressed; stacks know neither."""
    every = query.strategy is SelectionStrategy.SKIP_TILL_ANY_MATCH or len(line.states) == 1
    single = all(state.component.kind is ComponentKind.SINGLE for state in line.states)
    plain = query.output is OutputMode.ALL and query.timeouts is None
    return every and single and plain and not _aggregates(query) and budget.policy is Policy.FAIL


def _aggregates(query: BoundQuery) -> bool:
    """Whether a condition aggregates, be it a list that is absent from this alternative: stacks cannot."""
    clauses = [*query.conditions.positive, *(c for listed in query.conditions.negative.values() for c in listed)]
    return any(isinstance(reference, Aggregate | Agrees) for clause in clauses for reference in references(clause))


def _on_stacks(query: BoundQuery, line: LinearPattern, absences: tuple[Absence, ...]) -> SequencePlan:
    """SASE §3.1: scan by type, construct every sequence, then select, test the window, negate."""
    scans = tuple(Scan(state.component) for state in line.states)
    nothing: tuple[tuple[()], ...] = ((),) * len(scans)
    after = applicable(query.conditions.positive, [scan.component.variable for scan in scans])
    return SequencePlan(scans, during=nothing, after=after, absences=absences)


def _on_runs(query: BoundQuery, line: LinearPattern, absences: tuple[Absence, ...]) -> AutomatonPlan:
    """SASE+ §3.2 steps 1–4 and 6.

    What an edge tests decides which events may be ignored, so only where every event may be (skip_till_any_match) can a
    condition wait until the end, and not where the query outputs prefixes of runs (TIMEOUTS). Contiguity is judged in a
    partition, so there runs are always kept apart by it.
    """
    states = tuple(
        StatePlan(state.component, Edge(tests=state.begin), Edge(tests=state.take), state.proceed)
        for state in line.states
    )
    key = query.partition if query.strategy.is_contiguous else ()
    plan = AutomatonPlan(states, key, tuple(_keyed(absence, key) for absence in absences))
    any_match = query.strategy is SelectionStrategy.SKIP_TILL_ANY_MATCH
    return _waiting(plan) if any_match and query.timeouts is None else plan


def _keyed(absence: Absence, key: tuple[str, ...]) -> Absence:
    return Absence(absence.scan, absence.after, absence.conditions, keyed=bool(key))


def _waiting(plan: AutomatonPlan) -> AutomatonPlan:
    """Every condition that can be tested on a complete match, on the last edge; those on `a[i]` cannot."""
    last = plan.states[-1]
    kleene = last.component.kind is ComponentKind.KLEENE
    late = tuple(clause for state in plan.states for clause in (*state.begin.tests, *state.proceed))
    states = [StatePlan(state.component, Edge(), state.take) for state in plan.states]
    if kleene:
        states[-1] = StatePlan(last.component, Edge(), last.take, late)
    else:
        states[-1] = StatePlan(last.component, Edge(tests=late))
    return AutomatonPlan(tuple(states), plan.key, plan.absences)


def why_not(query: BoundQuery) -> str | None:
    """Why no executor can run a query; None when one can."""
    if not query.is_lines:
        return "the pattern is not a line of single and Kleene components"
    if any(component.preceded_by is not None for component in query.components):
        return _PAIR
    longest = max(sum(not c.negated for c in components(pattern)) for pattern in query.alternatives)
    if longest > MOST_COMPONENTS:
        return f"a sequence of more than {MOST_COMPONENTS} components"
    return None
