"""Bind the RETURN clause: what each column of the result is called and holds."""

from __future__ import annotations

from dataclasses import dataclass

from kleene.errors import (
    AggregateMisuse,
    DuplicateColumn,
    MisplacedIteration,
    NegatedInReturn,
    NotAValue,
    ReservedName,
)
from kleene.lang import tree
from kleene.lang.format import format_expression
from kleene.pattern.bind_expression import Scopes
from kleene.pattern.bind_pattern import RESULT_COLUMNS
from kleene.pattern.expressions import Aggregate, Attribute, Scope, Value, Which, Whole, references


@dataclass(frozen=True, slots=True)
class ReturnColumn:
    name: str
    value: Value


def bind_returns(returns: tree.Return, scopes: Scopes) -> tuple[ReturnColumn, ...]:
    columns: dict[str, ReturnColumn] = {}
    for place, item in enumerate(returns.items):
        name = item.alias or _default_name(item.value, place)
        if name in columns:
            raise DuplicateColumn(f"two columns are called `{name}`", item.span, hint="name one with `AS`")
        if name in RESULT_COLUMNS or (returns.into is not None and name in scopes.schema.own_columns):
            raise ReservedName(f"`{name}` is a column of every result", item.span, hint=f"`… AS {name}_`")
        columns[name] = ReturnColumn(name, _value(item.value, scopes))
    return tuple(columns.values())


def _value(node: tree.Expression, scopes: Scopes) -> Value:
    value = _whole(node, scopes) or scopes.value(node)
    for reference in references(value):
        if scopes.components[reference.variable].negated:
            raise NegatedInReturn(
                f"`{reference.variable}` must not occur, so there is nothing to return",
                node.span,
                hint="return what does occur",
            )
        iterating = isinstance(reference, Attribute) and reference.which in (Which.CURRENT, Which.PREVIOUS)
        if iterating or (isinstance(reference, Aggregate) and reference.scope is Scope.SO_FAR):
            name = reference.variable
            raise MisplacedIteration(
                f"`{name}[i]` is one of many when a match is returned",
                node.span,
                hint=f"`{name}`, `{name}[1].x`, `{name}[{name}.LEN].x` or an aggregate",
            )
        if isinstance(reference, Attribute) and reference.which is Which.MEMBER:
            raise AggregateMisuse(
                f"`{reference.variable}` is a group",
                node.span,
                hint=f"return `{reference.variable}` or an aggregate of it",
            )
    return value


def _whole(node: tree.Expression, scopes: Scopes) -> Whole | None:
    """`RETURN a`: the event, or all events of a Kleene variable."""
    if isinstance(node, tree.Name) and (node.name in scopes.components or node.name in scopes.ambiguous):
        return Whole(scopes.component(node.name, node.span).variable)
    if isinstance(node, tree.Events) and node.index in (None, tree.Index.ALL):
        return Whole(scopes.component(node.variable, node.span).variable)
    if isinstance(node, tree.Events):
        raise NotAValue(f"`{format_expression(node)}` cannot be returned", node.span, hint="name an attribute")
    return None


def _default_name(node: tree.Expression, place: int) -> str:
    index = {tree.Index.FIRST: "_1", tree.Index.LAST: "_LEN"}
    match node:
        case tree.Name(name):
            return name
        case tree.Events(variable, _):
            return variable
        case tree.Attribute(variable, at, attribute):
            number = f"_{at.position}" if isinstance(at, tree.Nth) else "" if at is None else index.get(at, "")
            return f"{variable}{number}_{attribute}"
        case tree.Call(function, (argument,)):
            return f"{function.casefold()}_{_default_name(argument, place)}"
    return f"column_{place + 1}"
