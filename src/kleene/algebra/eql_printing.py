"""Conditions of bound queries in EQL for people: PREV and ALL as they are written, OCCURS WITHIN as one condition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from kleene.algebra.detections import FIRST_MOMENT, LAST_MOMENT
from kleene.pattern.clock import Clock, ClockKind
from kleene.pattern.expressions import (
    Aggregate,
    Arithmetic,
    Attribute,
    Clause,
    Comparison,
    Constant,
    Literal,
    Node,
    Scope,
    Which,
)
from kleene.pattern.printing import print_clause, print_nanoseconds
from kleene.pattern.rewriting import rewritten

_CALLS = {Which.PREVIOUS: "PREV", Which.MEMBER: "ALL"}
_A_SECOND = 10**9
_MOMENTS = {FIRST_MOMENT: "start", LAST_MOMENT: "end"}


@dataclass(frozen=True, slots=True)
class Occurs:
    """`(names) OCCURS WITHIN steps`, as a bound condition has it: a test of every two of its aliases."""

    names: tuple[str, ...]
    steps: int
    clauses: tuple[Clause, ...]

    def text(self, clock: Clock) -> str:
        return f"({', '.join(self.names)}) OCCURS WITHIN {print_steps(self.steps, clock)}"


@dataclass(frozen=True, slots=True)
class _Pair:
    """`last.end - first.start <= steps`, or its negation."""

    first: str
    last: str
    steps: int
    negated: bool


def print_steps(steps: int, clock: Clock) -> str:
    """A time in steps of a clock: `12 hours`, or a plain number."""
    length = clock.nanoseconds
    if length is None and (clock.kind is ClockKind.TIMESTAMP or _is_of_units(steps, clock)):
        length = Fraction(1)
    return f"{steps:,}" if length is None or not steps else print_nanoseconds(steps * length)


def _is_of_units(steps: int, clock: Clock) -> bool:
    """Whether a time was written with a unit: before the events are known, such ones are counted in nanoseconds."""
    return clock.kind is ClockKind.UNKNOWN and steps >= _A_SECOND


def print_conjuncts(clauses: Iterable[Clause], clock: Clock) -> list[str]:
    """Clauses, one text for each condition that was written."""
    texts = []
    for each in conjuncts(clauses):
        if isinstance(each, Occurs):
            texts.append(each.text(clock))
        else:
            excluded = _negated(each)
            texts.append(print_clause(_shown(each)) if excluded is None else f"NOT {excluded.text(clock)}")
    return texts


def conjuncts(clauses: Iterable[Clause]) -> Iterator[Clause | Occurs]:
    """Clauses, with those of each OCCURS WITHIN together."""
    left = list(clauses)
    while left:
        names = _names(left)
        if not names:
            yield left.pop(0)
            continue
        number = len(names) ** 2
        first = _pair(left[0].literals[0])
        assert first is not None, "the first of the pairs"
        yield Occurs(tuple(names), first.steps, tuple(left[:number]))
        left = left[number:]


def occurrences(clauses: Iterable[Clause]) -> list[Occurs]:
    """The conditions OCCURS WITHIN among clauses."""
    return [each for each in conjuncts(clauses) if isinstance(each, Occurs)]


def _names(clauses: list[Clause]) -> list[str]:
    """The aliases of an OCCURS WITHIN with which clauses begin; none when they begin with something else.

    Its tests are those of the first alias with each, then those of the second with each, and so on.
    """
    pairs: list[_Pair] = []
    for clause in clauses:
        pair = _pair(clause.literals[0]) if len(clause.literals) == 1 else None
        if pair is None or pair.negated or (pairs and (pair.first, pair.steps) != (pairs[0].first, pairs[0].steps)):
            break
        if pair.last in (each.last for each in pairs):
            break
        pairs.append(pair)
    names = [each.last for each in pairs]
    # What is left of an OCCURS WITHIN in other conditions is shown as it is.
    return names if names and names[0] == pairs[0].first and len(clauses) >= len(names) ** 2 else []


def _negated(clause: Clause) -> Occurs | None:
    pairs = [_pair(literal) for literal in clause.literals]
    known = [pair for pair in pairs if pair is not None and pair.negated]
    names = tuple(dict.fromkeys(pair.last for pair in known))
    if not known or len(known) < len(pairs) or len(names) ** 2 != len(known):
        return None
    return Occurs(names, known[0].steps, (clause,))


def _pair(literal: Literal) -> _Pair | None:
    match literal:
        case Comparison(
            ("<=" | ">") as sign,
            Arithmetic("-", Attribute(attribute=last_moment) as last, Attribute(attribute=first_moment) as first),
            Constant(value=steps),
        ) if (last_moment, first_moment) == (LAST_MOMENT, FIRST_MOMENT):
            return _Pair(first.variable, last.variable, steps, sign == ">")
    return None


def _shown(clause: Clause) -> Clause:
    """A clause as EQL writes it."""

    def called(part: Node) -> Node | None:
        if not isinstance(part, Attribute):
            return None
        if part.attribute in _MOMENTS:
            return Aggregate(_MOMENTS[part.attribute], part.variable, Scope.ALL, None, part.type)
        if part.which not in _CALLS:
            return None
        return Aggregate(_CALLS[part.which], part.variable, Scope.ALL, part.attribute, part.type)

    return rewritten(clause, called)
