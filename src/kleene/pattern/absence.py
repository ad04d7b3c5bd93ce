"""What is known of a condition where some variables are absent (the semantics page §2, Missing)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from enum import Enum
from operator import eq, ge, gt, le, lt, ne
from typing import Any

from kleene.pattern.conditions import iterated
from kleene.pattern.expressions import (
    Aggregate,
    Agrees,
    Among,
    Arithmetic,
    Attribute,
    Clause,
    Comparison,
    Constant,
    Contains,
    IsNull,
    Literal,
    Negative,
    Truth,
    Value,
    variables,
)
from kleene.pattern.nodes import Disjunction, Leaf, Pattern


class _Special(Enum):
    MISSING = "of an absent variable"
    # Known only with events: SOME is a value or NULL, OPEN may be missing as well.
    SOME = "of an event that has it"
    OPEN = "of an event that may lack it"


_MISSING, _SOME, _OPEN = _Special.MISSING, _Special.SOME, _Special.OPEN
_COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {"=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}

# Whether an attribute is there for certain: its variable is present, and all its types have the attribute.
Has = Callable[[Attribute], bool]


def _unsure(attribute: Attribute) -> bool:
    return False


def truth(clause: Clause, absent: Collection[str], has: Has = _unsure) -> bool | None:
    """Whether a clause holds of every match without the absent variables, or of none; None when it depends."""
    truths = [_literal(literal, absent, has) for literal in clause.literals]
    if True in truths:
        return True
    # A clause on every `a[i]` of an absent variable is never tested, so it is not false.
    if None in truths or iterated(clause) in absent:
        return None
    return False


def _literal(literal: Literal, absent: Collection[str], has: Has) -> bool | None:
    match literal:
        case Truth(value):
            return value
        case Comparison(operator, left, right):
            return _comparison(operator, _known(left, absent, has), _known(right, absent, has))
        case Contains(left, right):
            return _comparison(None, _known(left, absent, has), _known(right, absent, has))
        case IsNull(operand, negated):
            known = _known(operand, absent, has)
            if known in (_SOME, _OPEN):
                return None
            return (known is None or known is _MISSING) != negated
        case Among(operand, values, negated):
            known = _known(operand, absent, has)
            if _is_count(known):
                return (known in values) != negated
            return _comparison(None, known, values)
        case Agrees(left, variable):
            return True if variable in absent or left.variable in absent else None


def _comparison(operator: str | None, left: Any, right: Any) -> bool | None:
    """The truth of a comparison: missing makes it true; NULL makes it false where nothing can be missing."""
    if _MISSING in (left, right):
        return True
    if _OPEN in (left, right):
        return None
    if left is None or right is None:
        return False
    if operator is None or not (_is_count(left) and _is_count(right)):
        return None
    return _COMPARED[operator](left, right)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _known(value: Value, absent: Collection[str], has: Has) -> Any:
    """A constant, None for NULL, or what kind of value it will be."""
    match value:
        case Constant():
            return value.value
        case Attribute(variable):
            return _MISSING if variable in absent else _SOME if has(value) else _OPEN
        case Aggregate(function, variable):
            counts = function == "count" or value.attribute is None
            if variable in absent:
                return 0 if counts else _MISSING
            return _SOME if counts else _OPEN
        case Negative(operand):
            return _calculated(_known(operand, absent, has))
        case Arithmetic(_, left, right):
            return _calculated(_known(left, absent, has), _known(right, absent, has))
    return _OPEN


def _calculated(*operands: Any) -> Any:
    """The result of arithmetic: missing when an operand is; otherwise its value is known only with events."""
    if _MISSING in operands:
        return _MISSING
    return _OPEN if _OPEN in operands else _SOME


# Branches ----------------------------------------------------------------------------------------------------------


def presences(pattern: Pattern, names: Collection[str]) -> frozenset[frozenset[str]]:
    """Which of these variables a match can have together: one set for each choice of branches that tells them apart.

    A negated variable counts as present in the branches where its event is looked for. There are never more sets than
    subsets of the names, however many disjunctions the pattern has.
    """
    if isinstance(pattern, Leaf):
        return frozenset({frozenset(each.variable for each in pattern.component.forbidden) & frozenset(names)})
    choices = [presences(part, names) for part in pattern.parts]
    if isinstance(pattern, Disjunction):
        return frozenset().union(*choices)
    combined = frozenset({frozenset[str]()})
    for choice in choices:
        combined = frozenset(left | right for left in combined for right in choice)
    return combined


def holds_by_absence(clause: Clause, pattern: Pattern, of: str | None = None) -> bool:
    """Whether a clause is true of every match of a pattern, since whatever branches it takes, a variable is absent.

    Examples: `a.x = b.x` and `a.x > 1 OR b.x > 1` for the pattern `(A a ; C c) | (B b ; D d)`.

    of   the negated variable or the closure that the clause is about: only branches that have it count
    """
    named = variables(clause)
    relevant = (present for present in presences(pattern, named) if of is None or of in present)
    return all(truth(clause, named - present) for present in relevant)
