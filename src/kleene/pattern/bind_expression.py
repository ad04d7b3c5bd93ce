"""Bind expressions: values typed, conditions checked, NOT pushed down to the comparisons."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal

from kleene.errors import (
    BadLiteral,
    BadParameter,
    MisplacedIteration,
    NotACondition,
    NotAValue,
    Span,
    SyntaxProblem,
    TooComplex,
    TypeMismatch,
    did_you_mean,
)
from kleene.lang import tree
from kleene.lang.characters import half_character
from kleene.lang.durations import TICKS
from kleene.lang.format import format_expression
from kleene.pattern.clock import Clock, datetime_nanoseconds, duration_nanoseconds, in_ticks, timestamp_nanoseconds
from kleene.pattern.expressions import (
    INVERSE,
    Among,
    Arithmetic,
    Comparison,
    Constant,
    Contains,
    IsNull,
    Literal,
    Negative,
    OpenParameter,
    Secret,
    Truth,
    Value,
    references,
)
from kleene.pattern.names import Names
from kleene.pattern.nodes import ComponentKind
from kleene.pattern.normal_form import AllOf, Condition, OneOf
from kleene.pattern.secrets import is_secret
from kleene.pattern.types import NUMERIC, ValueType, arithmetic_type, comparable

_ITERATING = (tree.Index.CURRENT, tree.Index.PREVIOUS, tree.Index.SO_FAR)
# A chain means all pairs, so its length counts twice.
_MAX_CHAIN = 200
# A list of more values is one literal; a shorter one is a comparison with each, which plans and hints know more about.
_MANY_VALUES = 16
_IN_SETS: dict[ValueType, type] = {ValueType.INT: int, ValueType.STRING: str}


@dataclass(slots=True)
class Scopes(Names):
    """All that an expression is bound with."""

    @property
    def clock(self) -> Clock:
        return self.schema.clock

    # Conditions

    def condition(self, node: tree.Expression, *, negate: bool = False) -> Condition:
        """A condition with NOT pushed down to its comparisons."""
        match node:
            case tree.Not(operand):
                self.refuse_iteration(operand, node.span)
                return self.condition(operand, negate=not negate)
            case tree.And(operands) | tree.Or(operands):
                parts = tuple(self.condition(operand, negate=negate) for operand in operands)
                return AllOf(parts) if isinstance(node, tree.And) != negate else OneOf(parts)
            case tree.Comparison(operator, left, right):
                return self.compare(operator, left, right, node.span, negate=negate)
            case tree.EqualityChain(operands):
                if len(operands) > _MAX_CHAIN:
                    raise TooComplex(
                        f"a chain of more than {_MAX_CHAIN} equalities", node.span, hint="all pairs are compared"
                    )
                pairs = [
                    self.compare("=", left, right, node.span, negate=negate)
                    for place, left in enumerate(operands)
                    for right in operands[place + 1 :]
                ]
                return OneOf(tuple(pairs)) if negate else AllOf(tuple(pairs))
            case tree.In(operand, items, negated):
                return self.among(self.value(operand), items, node.span, negate=negate != negated)
            case tree.Between(operand, low, high, negated):
                inverse = negate != negated
                bounds = (
                    self.compare(">=", operand, low, node.span, negate=inverse),
                    self.compare("<=", operand, high, node.span, negate=inverse),
                )
                return OneOf(bounds) if inverse else AllOf(bounds)
            case tree.Contains(left, right):
                return self.contains(left, right, node.span, negate=negate)
            case tree.IsNull(operand, negated):
                return self.placed(IsNull(self.value(operand), negate != negated), node.span)
            case tree.Equivalence():
                return self.equivalence(node, negate=negate)
        return self.truth(node, negate=negate)

    def listed(self, items: tuple[tree.Expression, ...]) -> tuple[tree.Expression | Constant, ...]:
        """The items of IN; a parameter may hold a list of them."""
        if len(items) == 1 and isinstance(items[0], tree.Parameter):
            parameter = items[0]
            values = self.params.get(parameter.name)
            if isinstance(values, list | tuple):
                return tuple(constant(value, parameter) for value in values)
        return items

    def plain_values(self, items: tuple[tree.Expression, ...], kind: ValueType) -> tuple[int, ...] | tuple[str, ...]:
        """The distinct values of a long IN; empty unless all items are constants of this type that fit it."""
        listed: object = [_plain(item) for item in items]
        if len(items) == 1 and isinstance(items[0], tree.Parameter) and not is_secret(items[0].name):
            listed = self.params.get(items[0].name)
        wanted = _IN_SETS.get(kind)
        if not isinstance(listed, list | tuple) or any(type(value) is not wanted for value in listed):
            return ()
        values = dict.fromkeys(listed)
        fits = _are_whole if wanted is str else _fit_64_bits
        return tuple(values) if len(values) > _MANY_VALUES and fits(values) else ()

    def refuse_iteration(self, node: tree.Expression, span: Span) -> None:
        """`a[i]` means "for each i"; its negation would be "for some i", which no edge can test."""
        iterated = [c.variable for c in self.components.values() if c.kind is ComponentKind.KLEENE]
        for part in tree.walk(node):
            if isinstance(part, tree.Attribute | tree.Events) and part.index in _ITERATING:
                name = part.variable
            elif isinstance(part, tree.Equivalence) and iterated:
                name = iterated[0]
            else:
                continue
            raise MisplacedIteration(
                f"NOT cannot stand before a condition on `{name}[i]`",
                span,
                hint=f"invert the comparison itself, or use `{name}[1]`, `{name}[{name}.LEN]` or an aggregate",
            )

    def equivalence(self, node: tree.Equivalence, *, negate: bool) -> Condition:
        from kleene.pattern.equivalence import expand

        parts = tuple(part for item in node.items for part in expand(self, item, negate=negate))
        return OneOf(parts) if negate else AllOf(parts)

    def truth(self, node: tree.Expression, *, negate: bool) -> Condition:
        """TRUE, FALSE, or a boolean value by itself."""
        if isinstance(node, tree.Literal) and isinstance(node.value, bool):
            return self.placed(Truth(node.value != negate), node.span)
        if isinstance(node, tree.Name) and node.name in {strategy.value for strategy in tree.SelectionStrategy}:
            raise SyntaxProblem("a strategy is followed by its conditions", node.span, hint=f"`{node.name} {{ … }}`")
        value = self.value(node)
        if value.type not in (ValueType.BOOL, ValueType.UNKNOWN) or isinstance(node, tree.Arithmetic | tree.Negative):
            raise NotACondition(
                f"`{format_expression(node)}` is no condition", node.span, hint="compare it with something: `a.x > 5`"
            )
        return self.placed(Comparison("=", value, Constant(not negate, ValueType.BOOL)), node.span)

    def compare(
        self, operator: str, left: tree.Expression, right: tree.Expression | Constant, span: Span, *, negate: bool
    ) -> Literal:
        bound_left, bound_right = self.compared_in_one_unit(self.value(left), self.value(right), span)
        self.check_comparable(operator, bound_left, bound_right, span)
        return self.placed(Comparison(INVERSE[operator] if negate else operator, bound_left, bound_right), span)

    def among(self, value: Value, items: tuple[tree.Expression, ...], span: Span, *, negate: bool) -> Condition:
        """The condition `value IN items`. There may be very many items, so each pair of types is checked once."""
        values = self.plain_values(items, value.type) if references(value) else ()
        if values:
            return self.placed(Among(value, values, negate), span)
        operator = INVERSE["="] if negate else "="
        tests, checked = [], set()
        for item in self.listed(items):
            left, right = self.compared_in_one_unit(value, self.value(item), span)
            if (left.type, right.type) not in checked:
                self.check_comparable("=", left, right, span)
                checked.add((left.type, right.type))
            tests.append(self.placed(Comparison(operator, left, right), span))
        return AllOf(tuple(tests)) if negate else OneOf(tuple(tests))

    def compared_in_one_unit(self, left: Value, right: Value, span: Span) -> tuple[Value, Value]:
        """Both sides of a comparison."""
        return self.in_one_unit(left, right, span)

    def in_one_unit(self, left: Value, right: Value, span: Span) -> tuple[Value, Value]:
        """A duration beside an integer counts ticks of the time column."""
        if left.type is ValueType.INT and right.type is ValueType.DURATION and isinstance(right, Constant):
            return left, with_value(right, in_ticks(right.value, self.clock, span), ValueType.INT)
        if right.type is ValueType.INT and left.type is ValueType.DURATION and isinstance(left, Constant):
            return with_value(left, in_ticks(left.value, self.clock, span), ValueType.INT), right
        return left, right

    def check_comparable(self, operator: str, left: Value, right: Value, span: Span) -> None:
        if comparable(left.type, right.type, operator):
            return
        hint = None
        if ValueType.STRING in (left.type, right.type) and {left.type, right.type} & {
            ValueType.TIMESTAMP,
            ValueType.ZONED,
        }:
            hint = "write a moment as `TIMESTAMP '2024-01-31T12:00:00'`"
        elif left.type is right.type is ValueType.BOOL:
            hint = "booleans have no order, only `=` and `!=`"
        elif {left.type, right.type} == {ValueType.TIMESTAMP, ValueType.ZONED}:
            hint = "one has a time zone and the other has none; `TIMESTAMP '2024-01-31T12:00:00Z'` has one"
        elif ValueType.STRING in (left.type, right.type) and {left.type, right.type} & NUMERIC:
            hint = "a number is written without quotes, a string with them"
        raise TypeMismatch(f"cannot compare {left.type.value} {operator} {right.type.value}", span, hint=hint)

    def contains(self, left: tree.Expression, right: tree.Expression, span: Span, *, negate: bool) -> Literal:
        sides = self.value(left), self.value(right)
        for side, node in zip(sides, (left, right), strict=True):
            if side.type not in (ValueType.STRING, ValueType.UNKNOWN, ValueType.NULL):
                raise TypeMismatch(
                    f"CONTAINS needs strings, not {side.type.value}", node.span, hint="compare numbers: `a.x = 5`"
                )
        return self.placed(Contains(*sides, negate), span)

    # Values

    def value(self, node: tree.Expression | Constant) -> Value:
        match node:
            case Constant():
                return node
            case tree.Literal(value):
                if value == 2**63 and isinstance(value, int):
                    raise BadLiteral("this integer does not fit 64 bits", node.span, hint="write it as a real: `1e20`")
                return Constant(value, _literal_type(value))
            case tree.Negative(tree.Literal(value)) if value == 2**63 and isinstance(value, int):
                return Constant(-(2**63), ValueType.INT)
            case tree.Parameter():
                return self.parameter(node)
            case tree.Percent(operand):
                return self.percent(self.value(operand), operand.span)
            case tree.Duration():
                ticks = all(term.unit == TICKS for term in node.terms)
                return Constant(duration_nanoseconds(node), ValueType.INT if ticks else ValueType.DURATION)
            case tree.Timestamp(text):
                moment, zoned = timestamp_nanoseconds(text, node.span)
                return Constant(moment, ValueType.ZONED if zoned else ValueType.TIMESTAMP)
            case tree.Negative(operand):
                return self.negative(self.value(operand), node.span)
            case tree.Arithmetic(operator, left, right):
                return self.arithmetic(operator, self.value(left), self.value(right), node.span)
            case tree.Name():
                return self.unqualified(node)
            case tree.Attribute():
                return self.attribute(node)
            case tree.Call():
                return self.aggregate(node)
            case tree.Events():
                raise NotAValue(
                    f"`{format_expression(node)}` is no value",
                    node.span,
                    hint="name an attribute, or count it: `count(a[..])`",
                )
        raise NotAValue(f"`{format_expression(node)}` is a condition, not a value", node.span)

    def parameter(self, node: tree.Parameter) -> Value:
        if node.name not in self.params:
            if self.open_parameters:
                return OpenParameter(node.name)
            raise BadParameter(
                f"parameter `:{node.name}` has no value",
                node.span,
                hint=did_you_mean(node.name, self.params) or f"pass params={{'{node.name}': …}}",
            )
        value = self.params[node.name]
        return value if isinstance(value, OpenParameter) else constant(value, node)

    def percent(self, operand: Value, span: Span) -> Value:
        if operand.type not in NUMERIC and operand.type not in (ValueType.UNKNOWN, ValueType.NULL):
            raise TypeMismatch(f"percent needs a number, not {operand.type.value}", span)
        if isinstance(operand, Constant) and operand.value is not None:
            return with_value(operand, float(operand.value) / 100, ValueType.FLOAT)
        return Arithmetic("/", operand, Constant(100, ValueType.INT), ValueType.FLOAT)

    def negative(self, operand: Value, span: Span) -> Value:
        if operand.type not in NUMERIC | {ValueType.DURATION, ValueType.UNKNOWN, ValueType.NULL}:
            raise TypeMismatch(f"cannot negate {operand.type.value}", span)
        if isinstance(operand, Constant) and operand.value is not None:
            return with_value(operand, -operand.value, operand.type)
        return Negative(operand, operand.type)

    def arithmetic(self, operator: str, left: Value, right: Value, span: Span) -> Value:
        left, right = self.in_one_unit(left, right, span)
        kind = arithmetic_type(operator, left.type, right.type)
        if kind is None:
            raise TypeMismatch(f"cannot compute {left.type.value} {operator} {right.type.value}", span)
        return Arithmetic(operator, left, right, kind)


def _plain(item: tree.Expression) -> object:
    """The value of an item of IN that is a literal; otherwise None."""
    match item:
        case tree.Literal(value):
            return value
        case tree.Negative(tree.Literal(value)) if type(value) is int:
            return -value
    return None


def _fit_64_bits(values: Iterable[int]) -> bool:
    return min(values) >= -(2**63) and max(values) < 2**63


def _are_whole(values: Iterable[str]) -> bool:
    return all(half_character(value) is None for value in values)


def _literal_type(value: object) -> ValueType:
    match value:
        case None:
            return ValueType.NULL
        case bool():
            return ValueType.BOOL
        case int():
            return ValueType.INT
        case float():
            return ValueType.FLOAT
    return ValueType.STRING


def with_value(constant: Constant, value: object, kind: ValueType) -> Constant:
    """A constant with another value; it is secret when the first one is."""
    return Secret(value, kind, constant.parameter) if isinstance(constant, Secret) else Constant(value, kind)


def constant(value: object, node: tree.Parameter) -> Constant:
    """A parameter's value as a constant; one of a secret name is never printed."""
    shown = _constant(value, node)
    return Secret(shown.value, shown.type, node.name) if is_secret(node.name) else shown


def _constant(value: object, node: tree.Parameter) -> Constant:
    if hasattr(value, "item") and type(value).__module__ == "numpy":
        value = value.item()
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if isinstance(value, datetime):
        return Constant(datetime_nanoseconds(value), ValueType.ZONED if value.tzinfo else ValueType.TIMESTAMP)
    if isinstance(value, timedelta):
        return Constant(value // timedelta(microseconds=1) * 1000, ValueType.DURATION)
    if isinstance(value, Decimal):
        return Constant(value, ValueType.DECIMAL)
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        raise BadParameter(f"parameter `:{node.name}` does not fit 64 bits", node.span)
    if isinstance(value, str) and half_character(value) is not None:
        raise BadParameter(
            f"parameter `:{node.name}` holds half a character at place {half_character(value)}",
            node.span,
            hint="it was cut from a pair, or read with the wrong encoding; give the whole character",
        )
    if value is None or isinstance(value, bool | int | float | str):
        return Constant(value, _literal_type(value))
    raise BadParameter(
        f"parameter `:{node.name}` is a {type(value).__name__}",
        node.span,
        hint="a number, a string, a boolean or a time",
    )
