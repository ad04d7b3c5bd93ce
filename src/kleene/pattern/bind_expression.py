"""Bind expressions: names to variables and attributes, types checked, NOT pushed down to the comparisons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import TypeVar

from kleene.errors import (
    AggregateMisuse,
    AmbiguousAttribute,
    AmbiguousVariable,
    BadLiteral,
    BadParameter,
    BareKleene,
    MisplacedIteration,
    NotACondition,
    NotAValue,
    NotKleene,
    Span,
    SyntaxProblem,
    TooComplex,
    TypeMismatch,
    UnknownAttribute,
    UnknownVariable,
    did_you_mean,
)
from kleene.lang import tree
from kleene.lang.aggregates import aggregate_named
from kleene.lang.durations import TICKS
from kleene.lang.format import format_expression
from kleene.pattern.clock import Clock, datetime_nanoseconds, duration_nanoseconds, in_ticks, timestamp_nanoseconds
from kleene.pattern.expressions import (
    INVERSE,
    Aggregate,
    Arithmetic,
    Attribute,
    Comparison,
    Constant,
    Contains,
    IsNull,
    Literal,
    Negative,
    OpenParameter,
    Scope,
    Truth,
    Value,
    Which,
)
from kleene.pattern.nodes import Component, Kind
from kleene.pattern.normal_form import AllOf, Condition, OneOf
from kleene.pattern.schema import Schema
from kleene.pattern.types import NUMERIC, ValueType, aggregate_type, arithmetic_type, comparable

N = TypeVar("N", bound=Literal | Value)

_ITERATING = (tree.Index.CURRENT, tree.Index.PREVIOUS, tree.Index.SO_FAR)
# A chain means all pairs, so its length counts twice.
_MAX_CHAIN = 200
_WHICH = {
    tree.Index.FIRST: Which.FIRST,
    tree.Index.CURRENT: Which.CURRENT,
    tree.Index.PREVIOUS: Which.PREVIOUS,
    tree.Index.LAST: Which.LAST,
}


@dataclass(slots=True)
class Scopes:
    """What names mean in a query: its variables, its schema, its parameters."""

    schema: Schema
    components: Mapping[str, Component]
    # Names that stand for several bare components.
    ambiguous: frozenset[str] = frozenset()
    # Variables that some matches do not have: optional ones, and those under a disjunction.
    sometimes_absent: frozenset[str] = frozenset()
    params: Mapping[str, object] = field(default_factory=dict)
    # A query that is only checked may leave parameters open.
    open_parameters: bool = False
    # Where each literal and each reference stands in the text, for errors that are found later.
    places: dict[Literal | Value, Span] = field(default_factory=dict)

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
                listed = self.listed(items)
                tests = tuple(self.compare("=", operand, item, node.span, negate=negate != negated) for item in listed)
                return AllOf(tests) if negate != negated else OneOf(tests)
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
            values = self.params.get(items[0].name)
            if isinstance(values, list | tuple | set | frozenset):
                return tuple(constant(value, items[0]) for value in values)
        return items

    def refuse_iteration(self, node: tree.Expression, span: Span) -> None:
        """`a[i]` means "for each i"; its negation would be "for some i", which no edge can test."""
        iterated = [c.variable for c in self.components.values() if c.kind is Kind.KLEENE]
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
        bound_left, bound_right = self.in_one_unit(self.value(left), self.value(right), span)
        self.check_comparable(operator, bound_left, bound_right, span)
        return self.placed(Comparison(INVERSE[operator] if negate else operator, bound_left, bound_right), span)

    def in_one_unit(self, left: Value, right: Value, span: Span) -> tuple[Value, Value]:
        """A duration beside an integer counts ticks of the time column."""
        if left.type is ValueType.INT and right.type is ValueType.DURATION and isinstance(right, Constant):
            return left, Constant(in_ticks(right.value, self.clock, span), ValueType.INT)
        if right.type is ValueType.INT and left.type is ValueType.DURATION and isinstance(left, Constant):
            return Constant(in_ticks(left.value, self.clock, span), ValueType.INT), right
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
                raise TypeMismatch(f"CONTAINS needs strings, not {side.type.value}", node.span)
        return self.placed(Contains(*sides, negate), span)

    def placed(self, node: N, span: Span) -> N:
        self.places.setdefault(node, span)
        return node

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
        return constant(self.params[node.name], node)

    def percent(self, operand: Value, span: Span) -> Value:
        if operand.type not in NUMERIC and operand.type not in (ValueType.UNKNOWN, ValueType.NULL):
            raise TypeMismatch(f"percent needs a number, not {operand.type.value}", span)
        if isinstance(operand, Constant) and operand.value is not None:
            return Constant(float(operand.value) / 100, ValueType.FLOAT)
        return Arithmetic("/", operand, Constant(100, ValueType.INT), ValueType.FLOAT)

    def negative(self, operand: Value, span: Span) -> Value:
        if operand.type not in NUMERIC | {ValueType.DURATION, ValueType.UNKNOWN, ValueType.NULL}:
            raise TypeMismatch(f"cannot negate {operand.type.value}", span)
        if isinstance(operand, Constant) and operand.value is not None:
            return Constant(-operand.value, operand.type)
        return Negative(operand, operand.type)

    def arithmetic(self, operator: str, left: Value, right: Value, span: Span) -> Value:
        left, right = self.in_one_unit(left, right, span)
        kind = arithmetic_type(operator, left.type, right.type)
        if kind is None:
            raise TypeMismatch(f"cannot compute {left.type.value} {operator} {right.type.value}", span)
        return Arithmetic(operator, left, right, kind)

    # Names

    def component(self, name: str, span: Span) -> Component:
        if name in self.ambiguous:
            raise AmbiguousVariable(
                f"`{name}` stands at several places of the pattern",
                span,
                hint=f"give each a variable: `{name} x ; {name} y`",
            )
        if name not in self.components:
            raise UnknownVariable(f"unknown variable `{name}`", span, hint=did_you_mean(name, self.components))
        return self.components[name]

    def unqualified(self, node: tree.Name) -> Value:
        """An attribute without a variable: the one component that has it (SASE's Q1)."""
        if node.name in self.components or node.name in self.ambiguous:
            component = self.component(node.name, node.span)
            raise NotAValue(
                f"`{node.name}` is an event, not a value",
                node.span,
                hint=f"name an attribute: `{component.variable}.x`",
            )
        owners = [c for c in self.components.values() if self.attribute_type(c, node.name) is not None]
        if not owners:
            self.refuse_hyphen(node)
            known = {name for c in self.components.values() for name in self.known_attributes(c)}
            raise UnknownAttribute(
                f"`{node.name}` is neither a variable nor an attribute",
                node.span,
                hint=did_you_mean(node.name, known | set(self.components)),
            )
        if len(owners) > 1:
            self.refuse_hyphen(node)
            names = ", ".join(f"`{owner.variable}.{node.name}`" for owner in owners[:4])
            raise AmbiguousAttribute(f"`{node.name}` could be {names}", node.span, hint="say which variable is meant")
        return self.reference(owners[0], None, node.name, node.span, node.span)

    def refuse_hyphen(self, node: tree.Name) -> None:
        """`SHELF-READING.tag` subtracts in a condition; the name needs backquotes there."""
        for variable in self.components:
            if variable.startswith(f"{node.name}-"):
                raise UnknownVariable(
                    f"`{node.name}` is no variable", node.span, hint=f"quote the whole name: `` `{variable}` ``"
                )

    def attribute(self, node: tree.Attribute) -> Value:
        component = self.component(node.variable, node.variable_span)
        return self.reference(component, node.index, node.attribute, node.span, node.attribute_span)

    def reference(
        self, component: Component, index: tree.Index | None, attribute: str, span: Span, attribute_span: Span
    ) -> Value:
        if component.kind is not Kind.SINGLE and index is None and attribute.casefold() == "len":
            return Aggregate("count", component.variable, Scope.ALL, None, ValueType.INT)
        if index is not None:
            self.check_index(component, index, span)
        kind = self.typed_attribute(component, attribute, attribute_span)
        if component.kind is Kind.KLEENE:
            if index is None:
                name = component.variable
                raise BareKleene(
                    f"`{name}` has many events; which `{attribute}` is meant?",
                    span,
                    hint=f"`{name}[1].{attribute}`, `{name}[{name}.LEN].{attribute}` or `avg({name}.{attribute})`",
                )
            return self.placed(Attribute(component.variable, _WHICH[index], attribute, kind), span)
        which = Which.MEMBER if component.kind is Kind.CLOSURE else Which.SINGLE
        return self.placed(Attribute(component.variable, which, attribute, kind), span)

    def check_index(self, component: Component, index: tree.Index, span: Span) -> None:
        if component.kind is not Kind.KLEENE:
            hint = f"declare it as `…+ {component.variable}[]`, or drop the index"
            raise NotKleene(f"`{component.variable}` is not a Kleene variable", span, hint=hint)
        if index not in _WHICH:
            raise AggregateMisuse(
                "a range of events needs an aggregate", span, hint=f"`avg({component.variable}[{index.value}].x)`"
            )

    def typed_attribute(self, component: Component, attribute: str, span: Span) -> ValueType:
        kind = self.attribute_type(component, attribute)
        if kind is None:
            names = " or ".join(component.types)
            raise UnknownAttribute(
                f"{names} has no attribute `{attribute}`",
                span,
                hint=did_you_mean(attribute, self.known_attributes(component)),
            )
        return kind

    def attribute_type(self, component: Component, attribute: str) -> ValueType | None:
        """The attribute's type in the component's types; None when none of them has it."""
        kinds = set()
        for name in component.types:
            attributes = self.schema.attributes_of(name)
            if attributes is None:
                kinds.add(ValueType.UNKNOWN)
            elif attribute in attributes:
                kinds.add(attributes[attribute])
        if not kinds:
            return None
        return kinds.pop() if len(kinds) == 1 else _joined(kinds)

    def always_has(self, component: Component, attribute: str) -> bool:
        """Whether every type of the component has the attribute."""
        every = (self.schema.attributes_of(name) for name in component.types)
        return all(attributes is None or attribute in attributes for attributes in every)

    def known_attributes(self, component: Component) -> set[str]:
        return {attribute for name in component.types for attribute in self.schema.attributes_of(name) or ()}

    # Aggregates

    def aggregate(self, call: tree.Call) -> Value:
        function = aggregate_named(call)
        if len(call.arguments) != 1:
            raise AggregateMisuse(f"{function} takes one argument", call.span, hint=f"`{function}(a.x)`")
        argument = call.arguments[0]
        if isinstance(argument, tree.Attribute):
            name, index, attribute = argument.variable, argument.index, argument.attribute
            name_span = argument.variable_span
        elif isinstance(argument, tree.Events | tree.Name) and function == "count":
            name = argument.variable if isinstance(argument, tree.Events) else argument.name
            index = argument.index if isinstance(argument, tree.Events) else None
            attribute, name_span = None, argument.span
        else:
            raise AggregateMisuse(
                f"{function} takes an attribute of a Kleene variable", argument.span, hint=f"`{function}(a[..].x)`"
            )
        component = self.component(name, name_span)
        if component.kind is Kind.SINGLE:
            raise AggregateMisuse(
                f"`{name}` is one event, there is nothing to aggregate", call.span, hint=f"`{name}.x`"
            )
        if index not in (None, tree.Index.ALL, tree.Index.SO_FAR):
            raise AggregateMisuse(
                "an aggregate covers a range of events, not one", argument.span, hint=f"`{name}[..i-1]` or `{name}[..]`"
            )
        if component.kind is Kind.CLOSURE and index is not None:
            raise NotKleene(f"`{name}` has no index", argument.span, hint=f"write `{function}({name}.x)`")
        scope = Scope.SO_FAR if index is tree.Index.SO_FAR else Scope.ALL
        return self.typed_aggregate(function, component, scope, attribute, argument)

    def typed_aggregate(
        self, function: str, component: Component, scope: Scope, attribute: str | None, node: tree.Expression
    ) -> Aggregate:
        span = node.span
        if attribute is None or (attribute.casefold() == "len" and function == "count"):
            return self.placed(Aggregate("count", component.variable, scope, None, ValueType.INT), span)
        attribute_span = node.attribute_span if isinstance(node, tree.Attribute) else span
        argument = self.typed_attribute(component, attribute, attribute_span)
        kind = aggregate_type(function, argument)
        if kind is None:
            raise TypeMismatch(f"{function} of {argument.value} has no meaning", span)
        return self.placed(Aggregate(function, component.variable, scope, attribute, kind), span)


def _joined(kinds: set[ValueType]) -> ValueType:
    """The type of an attribute that several types of events have."""
    if kinds <= NUMERIC:
        return ValueType.FLOAT if ValueType.FLOAT in kinds else ValueType.DECIMAL
    return ValueType.UNKNOWN


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


def constant(value: object, node: tree.Parameter) -> Constant:
    """A parameter's value as a constant."""
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
    if value is None or isinstance(value, bool | int | float | str):
        return Constant(value, _literal_type(value))
    raise BadParameter(
        f"parameter `:{node.name}` is a {type(value).__name__}",
        node.span,
        hint="a number, a string, a boolean or a time",
    )
