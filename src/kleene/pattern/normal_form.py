"""Conjunctive normal form (SASE+ §3.2 step 2): a condition as clauses, each placed on one edge.

Which conjunct stands on which edge decides what a run may ignore, so the normal form is part of the meaning.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kleene.errors import Span, TooComplex
from kleene.pattern.expressions import Clause, Literal, Truth

MAX_CLAUSES = 2_000
_MAX_LITERALS = 50_000


@dataclass(frozen=True, slots=True)
class AllOf:
    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class OneOf:
    parts: tuple[Condition, ...]


Condition = AllOf | OneOf | Literal

_Clauses = list[dict[Literal, None]]


def clauses_of(condition: Condition, span: Span | None = None) -> tuple[Clause, ...]:
    """The clauses of a condition, without those that another one implies."""
    disjunctions = _absorbed(_distribute(condition, span))
    if any(not literals for literals in disjunctions):
        return (Clause((Truth(False),)),)
    return tuple(Clause(tuple(literals)) for literals in disjunctions)


def _distribute(condition: Condition, span: Span | None) -> _Clauses:
    if isinstance(condition, AllOf):
        return _conjoin(_distribute(part, span) for part in condition.parts)
    if isinstance(condition, OneOf):
        result: _Clauses = [_alone(condition.parts)]
        if any(isinstance(part, Truth) and part.value for part in condition.parts):
            return []
        for part in condition.parts:
            if not isinstance(part, AllOf | OneOf):
                continue
            right = _absorbed(_distribute(part, span))
            size = len(result) * len(right)
            if size > MAX_CLAUSES:
                raise TooComplex(
                    f"this condition has more than {MAX_CLAUSES} conjuncts in normal form",
                    span,
                    hint="a long OR of ANDs multiplies out; test with IN, or use several queries",
                )
            result = _absorbed([{**left, **clause} for left in result for clause in right])
        return result
    if isinstance(condition, Truth):
        return [] if condition.value else [{}]
    return [{condition: None}]


def _alone(parts: Iterable[Condition]) -> dict[Literal, None]:
    """The literals among the parts of a disjunction: they go into every clause."""
    return {part: None for part in parts if not isinstance(part, AllOf | OneOf | Truth)}


def _conjoin(parts: Iterable[_Clauses]) -> _Clauses:
    return [clause for part in parts for clause in part]


def _absorbed(clauses: _Clauses) -> _Clauses:
    """Drop a clause that contains another one: `p and (p or q)` is `p`."""
    if len(clauses) < 2 or sum(map(len, clauses)) > _MAX_LITERALS:
        return clauses
    distinct: dict[frozenset[Literal], dict[Literal, None]] = {}
    for clause in clauses:
        distinct.setdefault(frozenset(clause), clause)
    if len(distinct) > MAX_CLAUSES or all(len(clause) == 1 for clause in distinct):
        return list(distinct.values())
    return [clause for key, clause in distinct.items() if not any(other < key for other in distinct)]
