"""Pulls a component that two branches have in common out of a disjunction (ZStream §5.2.1), for three rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from kleene.optimize.rewrites.merging import Merging, merged
from kleene.optimize.rewrites.renaming import Meaning, meaning, renamed
from kleene.optimize.trees.logical import Logical
from kleene.pattern import nodes
from kleene.pattern.expressions import variables
from kleene.pattern.nodes import ComponentKind, Conjunction, Disjunction, EventClass, Leaf, Pattern

# The leaves of a branch that could be pulled, each with the rest of the branch.
Leaves = Callable[[Pattern], Iterator[tuple[Leaf, Pattern]]]
# Puts a leaf that was pulled beside the rest of the branches.
Beside = Callable[[Leaf, Pattern], Pattern]

# By variable: the conditions that name no other variable, with `_ALIKE` in the place of its name.
_OwnConditions = Mapping[str, frozenset[Meaning]]
_ALIKE = "|"


@dataclass(frozen=True, slots=True)
class _Candidate:
    branch: int
    leaf: Leaf
    rest: Pattern


def pull(logical: Logical, leaves: Leaves, beside: Beside) -> Logical:
    """Pulls out every leaf that two branches have in common, where that is possible; the first one's variable stays."""
    # Components that are merged have the same conditions of their own, so these stay valid after each step.
    own_conditions = _own_conditions(logical)
    while (simpler := _pulled_once(logical, leaves, beside, own_conditions)) is not None:
        logical = simpler
    return logical


def _pulled_once(logical: Logical, leaves: Leaves, beside: Beside, own_conditions: _OwnConditions) -> Logical | None:
    for disjunction in _disjunctions(logical.pattern):
        for one, other in _alike(disjunction, leaves, own_conditions):
            merging = Merging(one.leaf.component.variable, other.leaf.component.variable, one.rest, other.rest)
            simpler = merged(logical, merging)
            if simpler is not None:
                joined = beside(one.leaf, _either(one.rest, other.rest))
                parts = [joined if n == one.branch else part for n, part in enumerate(disjunction.parts)]
                del parts[other.branch]
                instead = Disjunction(tuple(parts)) if len(parts) > 1 else joined
                return replace(simpler, pattern=_replaced(logical.pattern, disjunction, instead))
    return None


def _either(one: Pattern, other: Pattern) -> Disjunction:
    """The disjunction of two rests; a rest that is a disjunction itself becomes part of one list."""
    return Disjunction((*(one.parts if isinstance(one, Disjunction) else (one,)), other))


def sequence_of(parts: Sequence[Pattern]) -> Pattern:
    return parts[0] if len(parts) == 1 else nodes.Sequence(tuple(parts))


def _disjunctions(pattern: Pattern) -> Iterator[Disjunction]:
    if isinstance(pattern, Leaf):
        return
    if isinstance(pattern, Disjunction):
        yield pattern
    for part in pattern.parts:
        yield from _disjunctions(part)


def _replaced(pattern: Pattern, old: Pattern, new: Pattern) -> Pattern:
    if pattern is old:
        return new
    if isinstance(pattern, Leaf):
        return pattern
    return type(pattern)(tuple(_replaced(part, old, new) for part in pattern.parts))


def _own_conditions(logical: Logical) -> _OwnConditions:
    conditions: dict[str, set[Meaning]] = {}
    for clause in logical.positive:
        named = variables(clause)
        if len(named) == 1:
            (name,) = named
            conditions.setdefault(name, set()).add(meaning(renamed(clause, {name: _ALIKE})))
    return {name: frozenset(own) for name, own in conditions.items()}


def _alike(
    disjunction: Disjunction, leaves: Leaves, own_conditions: _OwnConditions
) -> Iterator[tuple[_Candidate, _Candidate]]:
    """Pairs of single components in different branches with the same classes and the same conditions of their own."""
    groups: dict[tuple[tuple[EventClass, ...], frozenset[Meaning]], list[_Candidate]] = {}
    for number, branch in enumerate(disjunction.parts):
        for leaf, rest in leaves(branch):
            component = leaf.component
            if component.kind is ComponentKind.SINGLE and not component.negated and _stands_alone(rest):
                alike = component.classes, own_conditions.get(component.variable, frozenset())
                groups.setdefault(alike, []).append(_Candidate(number, leaf, rest))
    for group in groups.values():
        yield from ((one, other) for one, other in combinations(group, 2) if one.branch != other.branch)


def _stands_alone(part: Pattern) -> bool:
    """Whether a part begins and ends with a component that takes events by itself.

    A negation or a closure at an edge is bounded by the part outside, so it may not be nested without that part.
    """
    if isinstance(part, Leaf):
        return not part.component.negated and part.component.kind is not ComponentKind.CLOSURE
    if isinstance(part, Conjunction | Disjunction):
        return all(map(_stands_alone, part.parts))
    return _stands_alone(part.parts[0]) and _stands_alone(part.parts[-1])
