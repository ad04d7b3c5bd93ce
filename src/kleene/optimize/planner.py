"""From a bound query to a physical plan: one executor, and the rules that improve on the basic plan of SASE §3.1."""

from __future__ import annotations

from collections.abc import Callable

from kleene.lang.tree import OutputMode, SelectionStrategy
from kleene.optimize.push_equivalence import push_equivalence
from kleene.optimize.push_simple_predicates import push_simple_predicates
from kleene.optimize.push_to_construction import push_to_construction
from kleene.optimize.push_window import push_window
from kleene.pattern.conditions import place
from kleene.pattern.expressions import Attribute, Whole
from kleene.pattern.nodes import Kind, Pattern, components
from kleene.pattern.query import BoundQuery
from kleene.plan.check import check
from kleene.plan.physical import Absence, Plan, ReferencePlan, Scan, SequencePlan
from kleene.plan.settings import Settings

Rule = Callable[[SequencePlan, BoundQuery], SequencePlan]

RULES: tuple[tuple[str, Rule], ...] = (
    ("push_simple_predicates", lambda plan, query: push_simple_predicates(plan)),
    ("push_equivalence", lambda plan, query: push_equivalence(plan, query.partition)),
    ("push_to_construction", lambda plan, query: push_to_construction(plan)),
    ("push_window", lambda plan, query: push_window(plan)),
)


def plan_query(query: BoundQuery, settings: Settings | None = None) -> Plan:
    """The plan of a query; one that no executor can run yet stays on the reference evaluator, with the reason."""
    reason = why_not_a_sequence(query)
    if reason is not None:
        return check(Plan(query, fallback=ReferencePlan(reason)))
    used = tuple((name, rule) for name, rule in RULES if (settings or Settings()).uses(name))
    alternatives = []
    for pattern in query.alternatives:
        sequence = basic_plan(query, pattern)
        for _, rule in used:
            sequence = rule(sequence, query)
        alternatives.append(sequence)
    return check(Plan(query, tuple(alternatives), rules=tuple(name for name, _ in used)))


def basic_plan(query: BoundQuery, pattern: Pattern) -> SequencePlan:
    """SASE §3.1: scan by type, construct every sequence, then select, test the window, negate."""
    line = place(tuple(components(pattern)), query.conditions.positive)
    scans = tuple(Scan(state.component) for state in line.states)
    absences = tuple(
        Absence(Scan(a.component), a.after, query.conditions.negative.get(a.component.variable, ()))
        for a in line.absences
    )
    nothing: tuple[tuple[()], ...] = ((),) * len(scans)
    return SequencePlan(scans, during=nothing, after=query.conditions.positive, absences=absences)


def why_not_a_sequence(query: BoundQuery) -> str | None:
    """Why the sequence executor cannot run a query; None when it can."""
    if not query.is_lines:
        return "the pattern is not a sequence"
    if any(component.kind is not Kind.SINGLE for component in query.components):
        return "a Kleene component needs the automaton"
    longest = max(sum(not c.negated for c in components(pattern)) for pattern in query.alternatives)
    if query.strategy is not SelectionStrategy.SKIP_TILL_ANY_MATCH and longest > 1:
        return f"{query.strategy.value} needs the automaton"
    if longest > 60:
        return "a sequence of more than 60 components"
    if query.output is not OutputMode.ALL or query.timeouts is not None:
        return "only OUTPUT ALL is compiled so far"
    if query.schema.start is not None or query.schema.made_types:
        return "events that last are not compiled so far"
    if query.returns is not None and not all(isinstance(c.value, Attribute | Whole) for c in query.returns):
        return "computed columns in RETURN are not compiled so far"
    return None
