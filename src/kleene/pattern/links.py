"""Equalities that link all components of a query, `a.tag = b.tag and a.tag = c.tag`: they route it as a key would.

Equality is transitive, so what counts is which attributes are equal in every match, however that is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from kleene.lang.tree import OutputMode, SelectionStrategy
from kleene.pattern.conditions import assign_edges
from kleene.pattern.expressions import Attribute, Clause, Comparison, Which
from kleene.pattern.nodes import Component, ComponentKind, Pattern, components
from kleene.pattern.query import BoundQuery

# An attribute of a variable: equal to all others of its group in every match.
Term = tuple[str, str]


def columns_by_type(query: BoundQuery, comparable: Callable[[str, str], bool]) -> Mapping[str, str]:
    """The column by which the events of each type can be routed; nothing when no equality links all components.

    comparable   whether values of two columns that are equal can be told so without comparing them
    """
    if not _may_be_linked(query):
        return {}
    by_type: dict[str, str] = {}
    for pattern in query.alternatives:
        linked = _columns_of(query, list(components(pattern)), comparable)
        if linked is None:
            return {}
        for kind, name in linked.items():
            # An event that went to two buckets could meet the same events in both.
            if by_type.setdefault(kind, name) != name:
                return {}
    return by_type


def key_of(query: BoundQuery) -> tuple[str, ...]:
    """The attributes on which all events of every match agree, and those that forbid one: its brackets come first.

    Where the partition decides what is a match, that is its brackets alone; and where runs that came to no match are
    shown, since a first event that has NULL there begins one.
    """
    linked = bool(query.alternatives) and _may_be_linked(query) and all(map(_has_two_positives, query.alternatives))
    if not linked or query.timeouts is not None:
        return query.partition
    every = [_agreed(query, list(components(pattern))) for pattern in query.alternatives]
    return tuple(dict.fromkeys((*query.partition, *(name for name in every[0] if all(name in each for each in every)))))


def _may_be_linked(query: BoundQuery) -> bool:
    """Count windows and NON_OVERLAP depend on the partition, which an equality does not make; contiguity is judged
    among all events (semantics §3 Partition)."""
    return not (query.counts_events or query.output is OutputMode.NON_OVERLAP or query.strategy.is_contiguous)


def _has_two_positives(pattern: Pattern) -> bool:
    """Whether an equality between positive events says that a key is not NULL."""
    return sum(not component.negated for component in components(pattern)) > 1


def _agreed(query: BoundQuery, parts: list[Component]) -> tuple[str, ...]:
    """The attributes that all components of one alternative have, and are equal in."""
    chosen_ones = _chosen(query, parts, lambda left, right: left == right)
    return tuple(dict.fromkeys(name for chosen in chosen_ones for name in chosen.values()))


# `a[i].x = a[1].x` and `a[i].x = a[i-1].x` make all events of a closure equal.
_ITERATED = ({Which.CURRENT, Which.FIRST}, {Which.CURRENT, Which.PREVIOUS})


def _by_edges(query: BoundQuery) -> bool:
    """Whether it matters which edge tests an equality: a run must not go on with an event of another bucket."""
    return query.strategy is SelectionStrategy.SKIP_TILL_NEXT_MATCH or query.timeouts is not None


def _columns_of(
    query: BoundQuery, parts: list[Component], comparable: Callable[[str, str], bool]
) -> Mapping[str, str] | None:
    """The column of each type in one alternative."""
    for chosen in _chosen(query, parts, comparable):
        named: dict[str, str] = {}
        kinds = ((kind, chosen[component.variable]) for component in parts for kind in component.types)
        if all(named.setdefault(kind, name) == name for kind, name in kinds):
            return named
    return None


def _chosen(
    query: BoundQuery, parts: list[Component], comparable: Callable[[str, str], bool]
) -> Iterator[Mapping[str, str]]:
    """For each group of equal attributes that all components of an alternative have: that of each variable."""
    by_name = {component.variable: component for component in parts}
    equalities = _Equalities(query, by_name, comparable)
    pairs = equalities.among(query.conditions.positive)
    forbidding = [equalities.among(listed) for listed in query.conditions.negative.values()]
    # A lone positive component is equal to itself.
    lone = [(term, term) for each in forbidding for pair in each for term in pair if not by_name[term[0]].negated]
    for group in _groups([*(pair for pair in pairs if pair[0][0] != pair[1][0]), *lone]):
        terms = [term for term in group if _agrees_with_itself(term, by_name[term[0]], pairs)]
        negated = [term for each in forbidding for term in _forbidden(each, terms, by_name)]
        chosen = dict(reversed([*terms, *negated]))
        if set(chosen) == set(by_name) and (not _by_edges(query) or _each_edge_tests(equalities, parts, chosen)):
            yield chosen


def _forbidden(pairs: list[tuple[Term, Term]], terms: list[Term], by_name: Mapping[str, Component]) -> Iterator[Term]:
    """The attributes of one negation that are equal to these in whatever it forbids.

    What a forbidden event is equal to says nothing of the match: through it no two attributes of the match are equal.
    """
    reached = set(terms)
    for _ in pairs:
        for one, other in (*pairs, *((right, left) for left, right in pairs)):
            if one in reached and other not in reached and by_name[other[0]].negated:
                reached.add(other)
                yield other


@dataclass(frozen=True, slots=True)
class _Equalities:
    """Which clauses make two attributes equal, among the components of one alternative."""

    query: BoundQuery
    present: Mapping[str, Component]
    comparable: Callable[[str, str], bool]

    def among(self, clauses: Iterable[Clause]) -> list[tuple[Term, Term]]:
        return [pair for clause in clauses if (pair := self.of(clause)) is not None]

    def of(self, clause: Clause) -> tuple[Term, Term] | None:
        """The two attributes that a clause makes equal in every match."""
        match clause.literals:
            case (Comparison("=", Attribute() as left, Attribute() as right),):
                pass
            case _:
                return None
        if not (
            self._is_certain(left) and self._is_certain(right) and self.comparable(left.attribute, right.attribute)
        ):
            return None
        if left.variable == right.variable:
            around = {left.which, right.which}
            if left.attribute != right.attribute or around not in _ITERATED:
                return None
        elif Which.CURRENT in (left.which, right.which) or Which.PREVIOUS in (left.which, right.which):
            # A closure of one event has no second one that could be compared.
            return None
        return (left.variable, left.attribute), (right.variable, right.attribute)

    def _is_certain(self, side: Attribute) -> bool:
        """Whether the attribute is there whenever the variable is; a comparison with one that is missing is true."""
        component = self.present.get(side.variable)
        if component is None or component.kind is ComponentKind.CLOSURE:
            return False
        return all(self.query.schema.has(kind, side.attribute) for kind in component.types)


def _groups(pairs: Iterable[tuple[Term, Term]]) -> list[list[Term]]:
    """Attributes that are equal to each other, in the order in which they were met."""
    groups: list[list[Term]] = []
    for pair in pairs:
        touched = [group for group in groups if any(term in group for term in pair)]
        merged = list(dict.fromkeys([term for group in touched for term in group] + list(pair)))
        groups = [group for group in groups if group not in touched] + [merged]
    return groups


def _agrees_with_itself(term: Term, component: Component, pairs: list[tuple[Term, Term]]) -> bool:
    """Whether all events of a variable have the same value: those of a closure only where a condition says so."""
    return component.kind is ComponentKind.SINGLE or (term, term) in pairs


def _each_edge_tests(equalities: _Equalities, parts: list[Component], chosen: Mapping[str, str]) -> bool:
    """Whether every event that a run takes is compared with one that it has."""
    seen: set[Term] = set()
    for state in assign_edges(parts, equalities.query.conditions.positive).states:
        own = (state.component.variable, chosen[state.component.variable])
        if seen and not any(_ties(equalities.of(clause), own, seen) for clause in state.begin):
            return False
        iterates = state.component.kind is ComponentKind.KLEENE
        if iterates and not any(_ties(equalities.of(clause), own, {own}) for clause in state.take):
            return False
        seen.add(own)
    return True


def _ties(pair: tuple[Term, Term] | None, own: Term, others: set[Term]) -> bool:
    return pair is not None and own in pair and (pair[0] in others if pair[1] == own else pair[1] in others)
