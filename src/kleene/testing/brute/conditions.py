"""WHERE as conjuncts: NOT pushed down (the semantics page §2 Missing), conjunctive normal form (SASE+ §3.2 step 2)."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import combinations
from typing import Any

from kleene.lang import tree
from kleene.lang.tree import Index
from kleene.testing.brute.stream import Nothing
from kleene.testing.brute.values import Binding, aggregated, evaluate


@dataclass(frozen=True, slots=True)
class Test:
    """One comparison, as it stands when NOT has been pushed down to it."""

    operator: str
    left: tree.Expression
    right: tree.Expression


Clause = tuple[Test, ...]
Clauses = tuple[Clause, ...]

_OPPOSITE = {
    "=": "!=",
    "!=": "=",
    "<": ">=",
    ">=": "<",
    ">": "<=",
    "<=": ">",
    "contains": "not contains",
    "is null": "is not null",
}

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
    "<=": operator.le,
    "contains": operator.contains,
    "not contains": lambda text, part: part not in text,
}

_TRUE = tree.Literal(True)
_NULL = tree.Literal(None)


def conjuncts(expression: tree.Expression, singles: Sequence[str]) -> Clauses:
    """The conjunctive normal form; `singles` are the variables that an equivalence test below an OR speaks of."""
    return _normal(expression, True, singles)


def _normal(expression: tree.Expression, wanted: bool, singles: Sequence[str]) -> Clauses:
    """Conjuncts of an expression that is to be true, or to be false."""
    match expression:
        case tree.Not(operand):
            return _normal(operand, not wanted, singles)
        case tree.And(operands):
            return (_all if wanted else _any)(_normal(operand, wanted, singles) for operand in operands)
        case tree.Or(operands):
            return (_any if wanted else _all)(_normal(operand, wanted, singles) for operand in operands)
        case tree.In(operand, items, negated):
            return _several(((operand, item) for item in items), "!=" if negated else "=", wanted, negated)
        case tree.EqualityChain(operands):
            return _several(combinations(operands, 2), "=", wanted, True)
        case tree.Between(operand, low, high, negated):
            above, below = tree.Comparison(">=", operand, low), tree.Comparison("<=", operand, high)
            return _normal(tree.And((above, below)), wanted is not negated, singles)
        case tree.Equivalence(items):
            return (_all if wanted else _any)(_equivalence(item, wanted, singles) for item in items)
    return ((_test(expression, wanted),),)


def _all(parts: Iterable[Clauses]) -> Clauses:
    return tuple(clause for part in parts for clause in part)


def _any(parts: Iterable[Clauses]) -> Clauses:
    """(A ∧ B) ∨ C is (A ∨ C) ∧ (B ∨ C)."""
    result: Clauses = ((),)
    for part in parts:
        result = tuple((*left, *right) for left in result for right in part)
    return result


def _several(
    pairs: Iterable[tuple[tree.Expression, tree.Expression]], sign: str, wanted: bool, conjoined: bool
) -> Clauses:
    tests = [Test(sign if wanted else _OPPOSITE[sign], left, right) for left, right in pairs]
    return tuple((test,) for test in tests) if conjoined is wanted else (tuple(tests),)


def _equivalence(item: tree.EquivalenceItem, wanted: bool, singles: Sequence[str]) -> Clauses:
    sides = [tree.Attribute(variable, None, item.attribute) for variable in singles]
    if item.value is not None:
        return _several(((side, item.value) for side in sides), "=", wanted, True)
    return _several(combinations(sides, 2), "=", wanted, True)


def _test(expression: tree.Expression, wanted: bool) -> Test:
    match expression:
        case tree.Comparison(sign, left, right):
            test = Test(sign, left, right)
        case tree.Contains(left, right):
            test = Test("contains", left, right)
        case tree.IsNull(operand, negated):
            test, wanted = Test("is null", operand, _NULL), wanted is not negated
        case _:
            test = Test("=", expression, _TRUE)
    return test if wanted else replace(test, operator=_OPPOSITE[test.operator])


def holds(clause: Clause, binding: Binding) -> bool:
    return any(is_true(test, binding) for test in clause)


def is_true(test: Test, binding: Binding) -> bool:
    """Missing makes a comparison true; undefined and NULL do not (§2)."""
    if test.operator in ("is null", "is not null"):
        return _null_test(test, binding)
    left, right = evaluate(test.left, binding), evaluate(test.right, binding)
    if left is Nothing.MISSING or right is Nothing.MISSING:
        return True
    if any(value is None or value is Nothing.UNDEFINED or _is_nan(value) for value in (left, right)):
        return False
    return bool(_COMPARE[test.operator](left, right))


def _null_test(test: Test, binding: Binding) -> bool:
    value = evaluate(test.left, binding)
    if value is Nothing.UNDEFINED:
        return False
    absent = value is None or value is Nothing.MISSING
    return absent is (test.operator == "is null")


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


class Phase(IntEnum):
    """When an identifier of a variable is instantiated: on its begin edge, on its take edge, on leaving it."""

    BEGIN = 0
    TAKE = 1
    LEAVE = 2


@dataclass(frozen=True, slots=True)
class Identifiers:
    """What the variables of a query are, as far as finding the last identifier of a conjunct needs it."""

    lists: frozenset[str]
    closures: frozenset[str]
    owners: Mapping[str, str]

    def of(self, clause: Clause) -> set[tuple[str, Phase]]:
        identifiers: set[tuple[str, Phase]] = set()
        for test in clause:
            identifiers.update(self._below(test.left))
            identifiers.update(self._below(test.right))
        return identifiers

    def _below(self, expression: tree.Expression) -> Iterator[tuple[str, Phase]]:
        match expression:
            case tree.Percent(operand) | tree.Negative(operand):
                yield from self._below(operand)
            case tree.Arithmetic(_, left, right):
                yield from self._below(left)
                yield from self._below(right)
            case tree.Call(_, arguments):
                variable, index, _ = aggregated(arguments[0], self.owners)
                yield variable, self._aggregate_phase(variable, index)
            case tree.Name(name):
                yield self.owners[name], self._phase(self.owners[name], None, name)
            case tree.Attribute(variable, index, attribute):
                yield variable, self._phase(variable, index, attribute)

    def _aggregate_phase(self, variable: str, index: Index | tree.Nth | None) -> Phase:
        if variable not in self.lists:
            return Phase.BEGIN
        return Phase.TAKE if index is Index.SO_FAR else Phase.LEAVE

    def _phase(self, variable: str, index: Index | tree.Nth | None, attribute: str) -> Phase:
        """A bare attribute of a closure chooses its members, as a take edge does."""
        if variable not in self.lists or index is Index.FIRST:
            return Phase.BEGIN
        if index in (Index.CURRENT, Index.PREVIOUS) or (variable in self.closures and attribute.casefold() != "len"):
            return Phase.TAKE
        return Phase.LEAVE
