"""Bound expressions and patterns in query syntax, for people: a bound node is turned back into a syntax tree."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction

from kleene.lang import tree
from kleene.lang.durations import nanoseconds_in
from kleene.lang.format import format_duration, format_expression, format_pattern
from kleene.pattern.expressions import (
    Aggregate,
    Agrees,
    Among,
    Arithmetic,
    Assigned,
    Attribute,
    Clause,
    Comparison,
    Constant,
    Contains,
    Elapsed,
    IsNull,
    Literal,
    Negative,
    Nth,
    OpenParameter,
    Scope,
    Secret,
    Truth,
    Value,
    Which,
    Whole,
)
from kleene.pattern.nodes import Component, ComponentKind, Conjunction, Disjunction, Leaf, Pattern, Sequence
from kleene.pattern.types import ValueType

_INDEX = {
    Which.FIRST: tree.Index.FIRST,
    Which.CURRENT: tree.Index.CURRENT,
    Which.PREVIOUS: tree.Index.PREVIOUS,
    Which.LAST: tree.Index.LAST,
}
_RANGE = {Scope.SO_FAR: tree.Index.SO_FAR, Scope.ALL: tree.Index.ALL}
_HUNDRED = Constant(100, ValueType.INT)
_UNITS = ("weeks", "days", "hours", "minutes", "seconds", "milliseconds", "microseconds", "nanoseconds")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def print_clauses(clauses: Iterable[Clause]) -> str:
    """A conjunction of clauses; TRUE when there is none."""
    parts = [clause.literals for clause in clauses]
    if not parts:
        return "TRUE"
    if len(parts) == 1:
        return _clause(parts[0])
    return " AND ".join(f"({_clause(part)})" if len(part) > 1 else _clause(part) for part in parts)


def print_clause(clause: Clause) -> str:
    """A disjunction of literals, as WHERE would have it."""
    return _clause(clause.literals)


def print_value(value: Value) -> str:
    return format_expression(_value(value))


def print_pattern(pattern: Pattern) -> str:
    return format_pattern(_pattern(pattern))


def print_alternative(pattern: Pattern) -> str:
    """One of the patterns that a pattern stands for: what may be absent elsewhere is present here."""
    return format_pattern(_pattern(_present(pattern)))


def _present(pattern: Pattern) -> Pattern:
    if isinstance(pattern, Leaf):
        return Leaf(replace(pattern.component, optional=False))
    return type(pattern)(tuple(map(_present, pattern.parts)))


def print_component(component: Component) -> str:
    return format_pattern(_component(component))


def print_nanoseconds(length: int | Fraction) -> str:
    """A length of time: `12 hours`, `90 minutes`."""
    return format_duration(_duration(Fraction(length)))


def _clause(literals: tuple[Literal, ...]) -> str:
    printed = [_literal(literal) for literal in literals]
    return format_expression(printed[0] if len(printed) == 1 else tree.Or(tuple(printed)))


def _literal(literal: Literal) -> tree.Expression:
    match literal:
        case Comparison(operator, left, right):
            return tree.Comparison(operator, _value(left), _value(right))
        case Contains(left, right, negated):
            contains = tree.Contains(_value(left), _value(right))
            return tree.Not(contains) if negated else contains
        case IsNull(operand, negated):
            return tree.IsNull(_value(operand), negated)
        case Among(operand, values, negated):
            return tree.In(
                _value(operand), tuple(_constant(Constant(value, operand.type)) for value in values), negated
            )
        case Agrees(left, variable, scope, attribute):
            return tree.Comparison("=", _value(left), tree.Attribute(variable, _RANGE[scope], attribute))
        case Truth(value):
            return tree.Literal(value)


def _value(value: Value) -> tree.Expression:
    match value:
        case Secret(parameter=name):
            return tree.Parameter(name)
        case Constant():
            return _constant(value)
        case OpenParameter(name):
            return tree.Parameter(name)
        case Assigned(operand):
            return _value(operand)
        case Elapsed():
            return tree.Name("DUR")
        case Attribute(variable, Which.OVERWRITTEN, attribute):
            named = tree.Attribute(variable, None, attribute)
            return tree.LastValue(named) if variable else tree.Attribute(attribute, None, "last")
        case Attribute(variable, which, attribute):
            # The predicate of an event class speaks of the event without naming it.
            return tree.Attribute(variable, _INDEX.get(which), attribute) if variable else tree.Name(attribute)
        case Nth(_, variable, _, attribute, _, position):
            return tree.Attribute(variable, tree.Nth(position), str(attribute))
        case Aggregate(function, variable, scope, attribute):
            return tree.Call(function, (_covered(variable, scope, attribute),))
        case Negative(operand):
            return tree.Negative(_value(operand))
        case Arithmetic("/", OpenParameter(name), right) if right is _HUNDRED and value.type is ValueType.FLOAT:
            return tree.Percent(tree.Parameter(name))
        case Arithmetic(operator, left, right):
            return tree.Arithmetic(operator, _value(left), _value(right))
        case Whole(variable):
            return tree.Name(variable)


def _covered(variable: str, scope: Scope, attribute: str | None) -> tree.Expression:
    """What an aggregate is over: `a.x` and `a` stand for all events of `a`, in any kind of closure."""
    if attribute is not None:
        return tree.Attribute(variable, None if scope is Scope.ALL else tree.Index.SO_FAR, attribute)
    return tree.Name(variable) if scope is Scope.ALL else tree.Events(variable, tree.Index.SO_FAR)


def _constant(constant: Constant) -> tree.Expression:
    value = constant.value
    if value is None:
        return tree.Literal(None)
    if constant.type is ValueType.DURATION:
        duration = _duration(Fraction(abs(value)))
        return tree.Negative(duration) if value < 0 else duration
    if constant.type in (ValueType.TIMESTAMP, ValueType.ZONED):
        return _timestamp(value, zoned=constant.type is ValueType.ZONED)
    if isinstance(value, int | float) and not isinstance(value, bool) and value < 0:
        return tree.Negative(tree.Literal(-value))
    return tree.Literal(value if isinstance(value, bool | int | float | str) else str(value))


def _timestamp(nanoseconds: int, *, zoned: bool) -> tree.Expression:
    try:
        moment = _EPOCH + timedelta(microseconds=nanoseconds // 1000)
    except OverflowError:
        return tree.Literal(nanoseconds)
    return tree.Timestamp((moment if zoned else moment.replace(tzinfo=None)).isoformat())


def _duration(nanoseconds: Fraction) -> tree.Duration:
    """In the largest unit of which it is a whole number."""
    for unit in _UNITS:
        count = nanoseconds / (nanoseconds_in(unit) or 1)
        if count and count.denominator == 1:
            return tree.Duration((tree.Quantity(count, unit),))
    return tree.Duration((tree.Quantity(nanoseconds, "nanoseconds"),))


def _pattern(pattern: Pattern) -> tree.Pattern:
    match pattern:
        case Leaf(component):
            forbidden = tuple(map(_component, component.forbidden))
            operand = forbidden[0] if len(forbidden) == 1 else tree.Sequence(forbidden)
            return tree.Negation(operand) if component.negated else operand
        case Sequence(parts):
            return tree.Sequence(tuple(map(_pattern, parts)))
        case Conjunction(parts):
            return tree.Conjunction(tuple(map(_pattern, parts)))
        case Disjunction(parts):
            return tree.Disjunction(tuple(map(_pattern, parts)))


def _component(component: Component) -> tree.Component:
    names = tuple(tree.TypeName(event_class.name) for event_class in component.classes)
    implicit = component.variable == names[0].name and len(names) == 1
    variable = None if implicit else component.variable
    return tree.Component(
        names, len(names) > 1, _repetition(component), variable, brackets=component.kind is ComponentKind.KLEENE
    )


def _repetition(component: Component) -> tree.Repetition | None:
    if component.kind is ComponentKind.SINGLE:
        return tree.Repetition(tree.Mark.OPTIONAL, 0, 1) if component.optional else None
    low, high = 0 if component.optional else component.minimum, component.maximum
    if high is None and low in (0, 1):
        return tree.Repetition(tree.Mark.STAR if low == 0 else tree.Mark.PLUS, low, None)
    mark = tree.Mark.POWER if component.kind is ComponentKind.CLOSURE else tree.Mark.BRACES
    return tree.Repetition(mark, low, high)
