"""What names mean in a query: variables, attributes with and without a variable, aggregates over closures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from kleene.errors import (
    AggregateMisuse,
    AmbiguousAttribute,
    AmbiguousVariable,
    BareKleene,
    NotAValue,
    NotKleene,
    Span,
    TypeMismatch,
    UnknownAttribute,
    UnknownVariable,
    did_you_mean,
)
from kleene.lang import tree
from kleene.lang.aggregates import aggregate_named
from kleene.pattern.expressions import Aggregate, Attribute, Literal, Nth, Scope, Value, Which
from kleene.pattern.nodes import Component, ComponentKind, Pattern
from kleene.pattern.schema import Schema
from kleene.pattern.types import NUMERIC, ValueType, aggregate_type

N = TypeVar("N", bound=Literal | Value)

_WHICH = {
    tree.Index.FIRST: Which.FIRST,
    tree.Index.CURRENT: Which.CURRENT,
    tree.Index.PREVIOUS: Which.PREVIOUS,
    tree.Index.LAST: Which.LAST,
}


@dataclass(slots=True)
class Names:
    """The variables of a query, its schema, and where each thing stands in its text."""

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
    # The union that the pattern stands for: which variables are present together.
    alternatives: tuple[Pattern, ...] = ()

    def placed(self, node: N, span: Span) -> N:
        self.places.setdefault(node, span)
        return node

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
        self,
        component: Component,
        index: tree.Index | tree.Nth | None,
        attribute: str,
        span: Span,
        attribute_span: Span,
    ) -> Value:
        if component.kind is not ComponentKind.SINGLE and index is None and attribute.casefold() == "len":
            return Aggregate("count", component.variable, Scope.ALL, None, ValueType.INT)
        if index is not None:
            self.check_index(component, index, span)
        kind = self.typed_attribute(component, attribute, attribute_span)
        if component.kind is ComponentKind.KLEENE:
            if index is None:
                name = component.variable
                raise BareKleene(
                    f"`{name}` has many events; which `{attribute}` is meant?",
                    span,
                    hint=f"`{name}[1].{attribute}`, `{name}[{name}.LEN].{attribute}` or `avg({name}.{attribute})`",
                )
            if isinstance(index, tree.Nth):
                nth = Nth("nth", component.variable, Scope.ALL, attribute, kind, index.position)
                return self.placed(nth, span)
            return self.placed(Attribute(component.variable, _WHICH[index], attribute, kind), span)
        which = Which.MEMBER if component.kind is ComponentKind.CLOSURE else Which.SINGLE
        return self.placed(Attribute(component.variable, which, attribute, kind), span)

    def check_index(self, component: Component, index: tree.Index | tree.Nth, span: Span) -> None:
        if component.kind is not ComponentKind.KLEENE:
            hint = f"declare it as `…+ {component.variable}[]`, or drop the index"
            raise NotKleene(f"`{component.variable}` is not a Kleene variable", span, hint=hint)
        if not isinstance(index, tree.Nth) and index not in _WHICH:
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
        if component.kind is ComponentKind.SINGLE:
            raise AggregateMisuse(
                f"`{name}` is one event, there is nothing to aggregate", call.span, hint=f"`{name}.x`"
            )
        if index not in (None, tree.Index.ALL, tree.Index.SO_FAR):
            raise AggregateMisuse(
                "an aggregate covers a range of events, not one", argument.span, hint=f"`{name}[..i-1]` or `{name}[..]`"
            )
        if component.kind is ComponentKind.CLOSURE and index is not None:
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
