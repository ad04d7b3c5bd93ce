"""What names mean in EQL: fields of aliases, PREV and ALL of iterated ones, and how long aliases take together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from kleene.algebra.detections import FIRST_MOMENT, LAST_MOMENT
from kleene.errors import (
    AggregateMisuse,
    BadDuration,
    BareKleene,
    MisplacedIteration,
    Span,
    SyntaxProblem,
    UnknownVariable,
    did_you_mean,
)
from kleene.lang import tree
from kleene.lang.format import format_expression
from kleene.pattern.bind_expression import Scopes
from kleene.pattern.clock import bind_window
from kleene.pattern.expressions import Arithmetic, Attribute, Comparison, Constant, Literal, Value, Which, references
from kleene.pattern.names import Names
from kleene.pattern.nodes import Component, ComponentKind
from kleene.pattern.normal_form import AllOf, Condition, OneOf
from kleene.pattern.types import ValueType

PREV, ALL = "prev", "all"
_WHICH = {PREV: Which.PREVIOUS, ALL: Which.MEMBER}


@dataclass(slots=True)
class EqlScopes(Scopes):
    """All that a condition of EQL is bound with."""

    def condition(self, node: tree.Expression, *, negate: bool = False) -> Condition:
        if isinstance(node, tree.OccursWithin):
            return self.occurs_within(node, negate=negate)
        return Scopes.condition(self, node, negate=negate)

    def occurs_within(self, node: tree.OccursWithin, *, negate: bool) -> Condition:
        """Largest end − smallest start ≤ T: of every two of them, whatever their order."""
        named = dict.fromkeys(self.component(name.name, name.span) for name in node.names)
        most = Constant(self.steps(node), ValueType.INT)
        tests = []
        for first in named:
            for last in named:
                began = self._moment(first, FIRST_MOMENT)
                ended = self._moment(last, LAST_MOMENT)
                taken = Arithmetic("-", ended, began, ValueType.INT)
                tests.append(self.placed(Comparison(">" if negate else "<=", taken, most), node.span))
        return OneOf(tuple(tests)) if negate else AllOf(tuple(tests))

    def steps(self, node: tree.OccursWithin) -> int:
        """The time of OCCURS WITHIN in steps of the clock."""
        amounts = [term.amount for term in node.duration.terms]
        if self.open_parameters and any(isinstance(each, tree.Parameter) for each in amounts):
            return 1
        window = bind_window(tree.Within(node.duration, True, span=node.span), self.clock, dict(self.params))
        if window.events:
            raise BadDuration(
                "OCCURS WITHIN counts time, not events", node.duration.span, hint="`(a, b) OCCURS WITHIN 5 min`"
            )
        return window.size

    @staticmethod
    def _moment(component: Component, moment: str) -> Attribute:
        which = Which.SINGLE
        if component.kind is ComponentKind.KLEENE:
            which = Which.FIRST if moment == FIRST_MOMENT else Which.LAST
        return Attribute(component.variable, which, moment, ValueType.INT)

    def component(self, name: str, span: Span) -> Component:
        if name not in self.components:
            raise UnknownVariable(f"no source is called `{name}`", span, hint=did_you_mean(name, self.components))
        return self.components[name]

    def refuse_iteration(self, node: tree.Expression, span: Span) -> None:
        """ALL means "each of them"; its negation would be "one of them"."""
        for part in tree.walk(node):
            if isinstance(part, tree.Call) and part.function.casefold() == ALL:
                raise MisplacedIteration(
                    "NOT cannot stand before a condition on ALL(…)", span, hint="invert the comparison itself"
                )

    def among(self, value: Value, items: tuple[tree.Expression, ...], span: Span, *, negate: bool) -> Condition:
        if _of_all(value):
            raise MisplacedIteration(
                "IN cannot be asked of ALL(…)", span, hint="compare it with one value: `ALL(T.x) = 1`"
            )
        return Scopes.among(self, value, items, span, negate=negate)

    def compare(
        self, operator: str, left: tree.Expression, right: tree.Expression | Constant, span: Span, *, negate: bool
    ) -> Literal:
        literal = Scopes.compare(self, operator, left, right, span, negate=negate)
        if len(_of_all(literal)) > 1:
            raise MisplacedIteration(
                "ALL can stand in a comparison once", span, hint="compare each with one value: `ALL(T.x) < PREV(T.y)`"
            )
        return literal

    def reference(
        self,
        component: Component,
        index: tree.Index | tree.Nth | None,
        attribute: str,
        span: Span,
        attribute_span: Span,
    ) -> Value:
        name = component.variable
        if index is not None:
            raise SyntaxProblem(
                "EQL does not number events", span, hint=f"`PREV({name}.{attribute})` or `ALL({name}.{attribute})`"
            )
        if component.kind is ComponentKind.KLEENE:
            raise BareKleene(
                f"`{name}` is repeated; of which of its events is `{attribute}` meant?",
                span,
                hint=f"`PREV({name}.{attribute})` is that of the last one before, `ALL({name}.{attribute})` of each",
            )
        return Names.reference(self, component, index, attribute, span, attribute_span)

    def aggregate(self, call: tree.Call) -> Value:
        which = _WHICH.get(call.function.casefold())
        if which is None or len(call.arguments) != 1 or not isinstance(call.arguments[0], tree.Attribute):
            self.refuse_call(call)
        field = call.arguments[0]
        assert isinstance(field, tree.Attribute)
        component = self.component(field.variable, field.variable_span)
        kind = self.typed_attribute(component, field.attribute, field.attribute_span)
        return self.placed(Attribute(component.variable, which, field.attribute, kind), call.span)

    @staticmethod
    def refuse_call(call: tree.Call) -> NoReturn:
        if call.function.casefold() in _WHICH:
            raise AggregateMisuse(
                f"`{call.function}` takes one field of an alias",
                call.span,
                hint=f"`{call.function.upper()}(T.amount)`",
            )
        raise AggregateMisuse(
            f"EQL has no `{call.function}` in conditions",
            call.span,
            hint=f"PREV(T.x) and ALL(T.x) read earlier events; `{format_expression(call)}` may stand in SELECT",
        )

    def equivalence(self, node: tree.Equivalence, *, negate: bool) -> Condition:
        raise SyntaxProblem(
            "`[…]` compares the components of a pattern", node.span, hint="compare fields: `FILTER(S1.acc = S2.acc)`"
        )


def _of_all(node: Literal | Value) -> set[Attribute]:
    """The fields that ALL is asked of."""
    return {each for each in references(node) if isinstance(each, Attribute) and each.which is Which.MEMBER}


@dataclass(slots=True)
class SelectScopes(Scopes):
    """What SELECT may name: fields of aliases, aliases as a whole, and aggregates of iterated ones."""

    def reference(
        self,
        component: Component,
        index: tree.Index | tree.Nth | None,
        attribute: str,
        span: Span,
        attribute_span: Span,
    ) -> Value:
        if component.kind is ComponentKind.KLEENE and index is None and attribute.casefold() != "len":
            name = component.variable
            raise BareKleene(
                f"`{name}` is repeated; of which of its events is `{attribute}` meant?",
                span,
                hint=f"`{name}` is all of them; `last({name}.{attribute})` or `sum({name}.{attribute})` one value",
            )
        return Names.reference(self, component, index, attribute, span, attribute_span)
