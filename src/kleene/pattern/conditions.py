"""The WHERE clause after binding: P₊, P₋ and member conditions (SASE §2.2.2), and where each clause belongs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from kleene.errors import (
    ClosureCondition,
    MisplacedIteration,
    NotSeparable,
    Span,
    TwoNegations,
)
from kleene.lang import tree
from kleene.pattern.bind_expression import Scopes
from kleene.pattern.closures import is_closure, side_by_side
from kleene.pattern.expressions import (
    Aggregate,
    Agrees,
    Attribute,
    Clause,
    Reference,
    Scope,
    Which,
    references,
    variables,
)
from kleene.pattern.nodes import Component, ComponentKind
from kleene.pattern.normal_form import clauses_of

_ITERATING = (Which.CURRENT, Which.PREVIOUS)


@dataclass(frozen=True, slots=True)
class Equivalent:
    """A top-level equivalence test: its attribute, and whether every component's types have it."""

    attribute: str
    partitions: bool


@dataclass(frozen=True, slots=True)
class Conditions:
    # Clauses without a negated variable: P₊.
    positive: tuple[Clause, ...] = ()
    # Clauses by the negated variable that they speak of, those on a pair by its last one: P₋.
    negative: Mapping[str, tuple[Clause, ...]] = field(default_factory=dict)
    # Clauses that choose the members of a closure, by its variable.
    members: Mapping[str, tuple[Clause, ...]] = field(default_factory=dict)
    equivalences: tuple[Equivalent, ...] = ()


def bind_conditions(where: tree.Expression | None, scopes: Scopes) -> Conditions:
    """Split a WHERE clause into what the executors need, or say which part of it cannot be split."""
    if where is None:
        return Conditions()
    clauses = clauses_of(scopes.condition(where), where.span)
    positive: list[Clause] = []
    negative: dict[str, list[Clause]] = {}
    members: dict[str, list[Clause]] = {}
    for clause in clauses:
        negated = _negated_variable(clause, scopes)
        closure = _closure_member(clause, scopes)
        if negated is not None:
            if closure is not None:
                raise ClosureCondition(
                    f"a negated variable cannot be compared with the members of `{closure}`", _place(clause, scopes)
                )
            _refuse_iteration(clause, scopes, "a condition on a negated variable")
            negative.setdefault(negated, []).append(clause)
        elif closure is not None:
            _refuse_iteration(clause, scopes, "a condition on a closure's members")
            _refuse_other_groups(clause, closure, scopes)
            members.setdefault(closure, []).append(clause)
        else:
            _check_iteration(clause, scopes)
            positive.append(clause)
    return Conditions(tuple(positive), _frozen(negative), _frozen(members), _equivalences(where, scopes))


def _frozen(groups: dict[str, list[Clause]]) -> dict[str, tuple[Clause, ...]]:
    return {name: tuple(clauses) for name, clauses in groups.items()}


def _place(clause: Clause, scopes: Scopes) -> Span | None:
    spans = [scopes.places[literal] for literal in clause.literals if literal in scopes.places]
    return None if not spans else Span(min(s.start for s in spans), max(s.end for s in spans))


def _negated_variable(clause: Clause, scopes: Scopes) -> str | None:
    """The one negated variable of a clause, or None; two are an error, since P must be P₊ ∧ P₋.

    The two of a pair, `!(B b ; C c)`, are looked for together: the last one stands for both.
    """
    negated = {name for name, component in scopes.components.items() if component.negated}
    touched = variables(clause) & negated
    if not touched:
        return None
    of_pairs = {
        component.preceded_by.variable: name
        for name, component in scopes.components.items()
        if component.preceded_by is not None
    }
    looked_for = {of_pairs.get(name, name) for name in touched}
    if len(looked_for) > 1:
        names = " and ".join(f"`{name}`" for name in sorted(touched))
        raise TwoNegations(
            f"{names} are both negated, and no event stands for both",
            _place(clause, scopes),
            hint="compare each with a positive variable",
        )
    for literal in clause.literals:
        named = variables(literal)
        if named and not named & negated:
            raise NotSeparable(
                f"this OR mixes the negated `{min(touched)}` with a condition that does not speak of it",
                _place(clause, scopes),
                hint="join them with AND, or repeat the negated component",
            )
    return looked_for.pop()


def _closure_member(clause: Clause, scopes: Scopes) -> str | None:
    members = {
        reference.variable
        for reference in references(clause)
        if isinstance(reference, Attribute) and reference.which is Which.MEMBER
    }
    if not members:
        return None
    grouped = {r.variable for r in references(clause) if isinstance(r, Aggregate)} & members
    if grouped:
        raise ClosureCondition(
            f"this condition chooses the members of `{min(grouped)}` by the group that they form",
            _place(clause, scopes),
            hint="test members and the group in separate conditions",
        )
    if len(members) > 1:
        raise ClosureCondition("the members of two closures cannot be compared", _place(clause, scopes))
    return members.pop()


def _refuse_other_groups(clause: Clause, closure: str, scopes: Scopes) -> None:
    """Members may be chosen by the group of an earlier closure, but not of one that is not whole then."""
    named = [name for name in variables(clause) if name != closure and is_closure(scopes.components[name])]
    for name in sorted(named):
        beside = any(
            {name, closure} <= {c.variable for c in run} for p in scopes.alternatives for run in side_by_side(p)
        )
        if beside or scopes.components[name].position > scopes.components[closure].position:
            where = "stands beside it" if beside else "comes later"
            raise ClosureCondition(
                f"the members of `{closure}` cannot be chosen by the group of `{name}`, which {where}",
                _place(clause, scopes),
                hint=f"test both groups: `min({closure}.x) > max({name}.x)`",
            )


def _iterating(clause: Clause) -> set[str]:
    """The Kleene variables whose `a[i]`, `a[i-1]` or `a[..i-1]` a clause names."""
    return {reference.variable for reference in references(clause) if _iterates(reference)}


def iterated(clause: Clause) -> str | None:
    """The Kleene variable for each of whose events a clause is tested; None: it is tested once."""
    return next((reference.variable for reference in references(clause) if _iterates(reference)), None)


def _iterates(reference: Reference) -> bool:
    if isinstance(reference, Attribute):
        return reference.which in _ITERATING
    return isinstance(reference, Aggregate | Agrees) and reference.scope is Scope.SO_FAR


def _iteration_place(clause: Clause, scopes: Scopes, variable: str) -> Span | None:
    """Where the clause names `a[i]`."""
    for reference in references(clause):
        if reference.variable == variable and _iterates(reference) and reference in scopes.places:
            return scopes.places[reference]
    return _place(clause, scopes)


def _refuse_iteration(clause: Clause, scopes: Scopes, what: str) -> None:
    for name in _iterating(clause):
        span = _iteration_place(clause, scopes, name)
        raise MisplacedIteration(f"{what} cannot use `{name}[i]`", span, hint=_alternatives(name))


def _alternatives(name: str) -> str:
    return f"use `{name}[1]`, `{name}[{name}.LEN]` or an aggregate such as `max({name}.x)`"


def _check_iteration(clause: Clause, scopes: Scopes) -> None:
    """`a[i]` sits on a's own take edge: nothing in its clause may be known later than a[i]."""
    iterating = _iterating(clause)
    if not iterating:
        return
    name = max(iterating, key=lambda variable: scopes.components[variable].position)
    own = scopes.components[name]
    for reference in references(clause):
        component = scopes.components[reference.variable]
        later = component.position > own.position or (reference.variable != name and reference.variable in iterating)
        whole = reference.variable == name and (
            (isinstance(reference, Aggregate | Agrees) and reference.scope is Scope.ALL)
            or (isinstance(reference, Attribute) and reference.which is Which.LAST)
        )
        if later or whole:
            other = f"`{reference.variable}`" if later else f"the whole of `{name}`"
            raise MisplacedIteration(
                f"`{name}[i]` is tested when it is taken, and {other} is not known then",
                _iteration_place(clause, scopes, name),
                hint=_alternatives(name),
            )


def _equivalences(where: tree.Expression, scopes: Scopes) -> tuple[Equivalent, ...]:
    equivalents: dict[str, Equivalent] = {}
    for part in where.operands if isinstance(where, tree.And) else (where,):
        for item in part.items if isinstance(part, tree.Equivalence) else ():
            everywhere = all(_has(component, item.attribute, scopes) for component in scopes.components.values())
            equivalents.setdefault(item.attribute, Equivalent(item.attribute, everywhere))
    return tuple(equivalents.values())


def _has(component: Component, attribute: str, scopes: Scopes) -> bool:
    return scopes.attribute_type(component, attribute) is not None and scopes.always_has(component, attribute)


# Placement (SASE+ §3.2 step 2) -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LinearState:
    """A component of a line with the clauses on its edges; `take` and `proceed` only for Kleene components."""

    component: Component
    begin: tuple[Clause, ...]
    take: tuple[Clause, ...]
    proceed: tuple[Clause, ...]


@dataclass(frozen=True, slots=True)
class NegatedState:
    """A negated component, after the positive state `after` (−1: before the first)."""

    component: Component
    after: int


@dataclass(frozen=True, slots=True)
class LinearPattern:
    """One alternative of a pattern as NFA^b runs it: states in order, and the negations between them."""

    states: tuple[LinearState, ...]
    absences: tuple[NegatedState, ...]


def applicable(clauses: Iterable[Clause], present: Collection[str]) -> tuple[Clause, ...]:
    """The clauses without those on `a[i]` where `a` is absent: they are about i > 1, and there is no such i."""
    return tuple(clause for clause in clauses if all(name in present for name in _iterating(clause)))


def assign_edges(components: Iterable[Component], positive: Iterable[Clause]) -> LinearPattern:
    """Put each clause on the edge that instantiates its last identifier among the components that are present."""
    present = [component for component in components if not component.negated]
    order = {component.variable: number for number, component in enumerate(present)}
    edges: dict[tuple[int, int], list[Clause]] = {}
    for clause in applicable(positive, order):
        edges.setdefault(_last_identifier(clause, order, present), []).append(clause)
    states = tuple(
        LinearState(component, *(tuple(edges.get((number, edge), ())) for edge in (_BEGIN, _TAKE, _PROCEED)))
        for number, component in enumerate(present)
    )
    absences, after = [], -1
    for component in components:
        if component.negated:
            absences.append(NegatedState(component, after))
        else:
            after += 1
    return LinearPattern(states, tuple(absences))


_BEGIN, _TAKE, _PROCEED = range(3)


def _last_identifier(clause: Clause, order: Mapping[str, int], present: list[Component]) -> tuple[int, int]:
    last = (0, _BEGIN)
    for reference in references(clause):
        if reference.variable in order:
            number = order[reference.variable]
            last = max(last, (number, _edge(reference, present[number])))
    return last


def _edge(reference: object, component: Component) -> int:
    if component.kind is ComponentKind.SINGLE:
        return _BEGIN
    if isinstance(reference, Attribute):
        return {Which.FIRST: _BEGIN, Which.LAST: _PROCEED}.get(reference.which, _TAKE)
    assert isinstance(reference, Aggregate | Agrees)
    return _TAKE if reference.scope is Scope.SO_FAR else _PROCEED
