"""The automaton of a linear-plus expression (CESAR §3.3–3.4, Fig. 3–6).

Every chain of unary operations is in normal form (Theorem 3), so that an edge is one condition and one value for each
attribute of its target. Fig. 5 does not draw the test on entering a fold: it stands on the edges that enter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from kleene.algebra.nodes import (
    AttributeName,
    Carried,
    Compute,
    Filter,
    Fold,
    Next,
    Node,
    Project,
    Rename,
    StreamSchema,
    StreamSource,
    StreamUnion,
    Unary,
    chain,
)
from kleene.algebra.query import BoundStreamQuery
from kleene.optimize.streams.deadlines import with_deadlines
from kleene.optimize.streams.keys import keys_of
from kleene.optimize.streams.normal_form import normal_form
from kleene.optimize.streams.substitution import all_substituted, assigned, substituted, typed
from kleene.pattern.expressions import Attribute, Clause, Elapsed, Value, Which, references
from kleene.pattern.expressions import Node as Expression
from kleene.pattern.rewriting import parts, rewritten
from kleene.plan.streams import FINAL, START, InputFormula, StreamEdge, StreamPlan, WaitingState


def plan_stream(query: BoundStreamQuery) -> StreamPlan:
    """The plan of a query whose expression is linear-plus (`algebra.cutting` makes such queries of others)."""
    builder = _Builder()
    builder.enter(FINAL, query.root.schema, builder.entering(normal_form(query.root)))
    return with_deadlines(builder.plan(query))


@dataclass(frozen=True)
class _Entering:
    """An edge on its way up: what it has tested, and the values of the attributes so far."""

    source: int
    formula: int
    values: Mapping[AttributeName, Value]
    condition: tuple[Clause, ...] = ()

    def filtered(self, condition: Iterable[Clause]) -> _Entering:
        tested = all_substituted(tuple(condition), self.values)
        return replace(self, condition=(*self.condition, *tested))

    def typed(self, schema: StreamSchema) -> _Entering:
        """With the attributes of a schema, of its types."""
        return replace(self, values={name: typed(self.values[name], kind) for name, kind in schema.attributes})

    def applied(self, node: Unary) -> _Entering:
        match node:
            case Filter(_, condition):
                return self.filtered(condition)
            case Project(_, schema):
                return self.typed(schema)
            case Rename(_, names):
                new = dict(names)
                return replace(self, values={new.get(name, name): value for name, value in self.values.items()})
            case Compute(_, assignments, schema):
                computed = {name: assigned(substituted(value, self.values)) for name, value in assignments}
                return replace(self, values={**self.values, **computed}).typed(schema)

    def entered(self, fold: Fold) -> _Entering:
        """As an event of S[0]: the attributes of the right with their first values, and the test on entering."""
        first = {name: assigned(substituted(value, self.values)) for name, value in fold.init}
        return replace(self, values={**self.values, **first}).typed(fold.schema).filtered(fold.entry)

    def stepped(self, step: Node) -> _Entering:
        """After a round of a fold."""
        operations, innermost = chain(step)
        assert isinstance(innermost, Carried), "a step is a chain of unary operations"
        return self.above(operations)

    def above(self, operations: Iterable[Unary]) -> _Entering:
        """After a chain of operations, outermost first."""
        entering = self
        for node in reversed(list(operations)):
            entering = entering.applied(node)
        return entering


class _Builder:
    def __init__(self) -> None:
        self.formulas: dict[InputFormula, int] = {}
        self.states: list[WaitingState] = []
        self.edges: list[StreamEdge] = []

    def plan(self, query: BoundStreamQuery) -> StreamPlan:
        """The plan, without formulas that became part of others."""
        used = sorted({state.formula for state in self.states} | {edge.formula for edge in self.edges})
        new = {old: number for number, old in enumerate(used)}
        formulas = list(self.formulas)
        return StreamPlan(
            tuple(formulas[number] for number in used),
            tuple(replace(state, formula=new[state.formula]) for state in self.states),
            tuple(replace(edge, formula=new[edge.formula]) for edge in self.edges),
            query.root.schema,
            query,
        )

    def entering(self, node: Node) -> list[_Entering]:
        """The edges that enter the last state of an expression."""
        operations, inner = chain(node)
        match inner:
            case StreamSource():
                formula, values = self._input(operations, inner)
                return [_Entering(START, formula, values)]
            case StreamUnion(parts, schema):
                united = [each.typed(schema) for part in parts for each in self.entering(part)]
                return [each.above(operations) for each in united]
            case Next(left, right, condition, schema):
                leaving = self._waiting(self.entering(left), left.schema, right, condition, schema)
                return [leaving.above(operations)]
            case Fold(left, right, _, _, condition, step, schema):
                entering = [each.entered(inner) for each in self.entering(left)]
                leaving = self._waiting(entering, schema, right, condition, schema).stepped(step)
                self.enter(leaving.source, schema, [leaving])
                return [leaving.above(operations)]
        raise TypeError(f"not linear-plus: {inner!r}")

    def _waiting(
        self,
        entering: Iterable[_Entering],
        schema: StreamSchema,
        right: Node,
        condition: tuple[Clause, ...],
        composite: StreamSchema,
    ) -> _Entering:
        """A new state, which these edges enter; what leaves it is an instance with the newest event."""
        operations, source = chain(right)
        assert isinstance(source, StreamSource), "the right of a linear-plus expression is a base stream"
        formula, brought = self._input(operations, source)
        own = {name: Attribute(*_overwritten(name), kind) for name, kind in schema.attributes}
        leaving = _Entering(len(self.states), formula, {**own, **brought}).typed(composite)
        tested = leaving.filtered(condition).condition
        alone = [clause for clause in tested if is_of_event(clause)]
        waited_for = tuple(clause for clause in tested if clause not in alone)
        formula = self._joined(formula, alone)
        leaving = replace(leaving, formula=formula)
        self.states.append(WaitingState(schema, formula, waited_for, keys_of(waited_for)))
        self.enter(leaving.source, schema, entering)
        return leaving

    def enter(self, target: int, schema: StreamSchema, entering: Iterable[_Entering]) -> None:
        """Let edges enter a state. What an edge from the start tests is a test of one event: it joins its formula."""
        for each in entering:
            formula, condition = each.formula, tuple(dict.fromkeys(each.condition))
            values = tuple(each.values[name] for name in schema.names)
            if each.source == START:
                formula, condition = self._joined(formula, map(_of_event, condition)), ()
                values = tuple(map(_of_event, values))
            self.edges.append(StreamEdge(each.source, target, formula, condition, values))

    def _input(self, operations: list[Unary], source: StreamSource) -> tuple[int, dict[AttributeName, Value]]:
        """The formula of a base stream below unary operations, and what its events bring."""
        own = {name: Attribute(name[0], Which.SINGLE, name[1], kind) for name, kind in source.schema.attributes}
        brought = _Entering(START, 0, own).above(operations)
        formula = InputFormula(source, tuple(map(_of_event, brought.condition)))
        return self._formula(formula), {name: _of_event(value) for name, value in brought.values.items()}

    def _joined(self, formula: int, condition: Iterable[Clause]) -> int:
        """A formula with further tests of its events."""
        known = list(self.formulas)[formula]
        return self._formula(replace(known, condition=tuple(dict.fromkeys((*known.condition, *condition)))))

    def _formula(self, formula: InputFormula) -> int:
        return self.formulas.setdefault(formula, len(self.formulas))


def is_of_event(clause: Clause) -> bool:
    """Whether a clause speaks of the newest event alone."""
    if any(isinstance(each, Elapsed) and not each.of_event for each in parts(clause)):
        return False
    return all(isinstance(each, Attribute) and each.which is Which.SINGLE for each in references(clause))


def _overwritten(name: AttributeName) -> tuple[str, Which, str]:
    return name[0], Which.OVERWRITTEN, name[1]


def columns_used(plan: StreamPlan) -> tuple[str, ...]:
    """The columns of events that edges and formulas read, in the order in which their sources have them."""
    named: dict[str, None] = {}
    for number, formula in enumerate(plan.formulas):
        column_of = dict(formula.source.columns)
        nodes: list[Expression] = [*formula.condition]
        nodes += [clause for state in plan.states if state.formula == number for clause in state.condition]
        for edge in plan.edges:
            if edge.formula == number:
                nodes += [*edge.condition, *edge.values]
        for node in nodes:
            for each in references(node):
                if isinstance(each, Attribute) and each.which is Which.SINGLE:
                    named[column_of[each.variable, each.attribute]] = None
        for clause in formula.source.event_class.predicate:
            named |= dict.fromkeys(each.attribute for each in references(clause) if isinstance(each, Attribute))
    return tuple(named)


N = TypeVar("N", bound=Expression)


def _of_event(node: N) -> N:
    """What an event is or brings by itself: DUR is its own."""
    return rewritten(node, lambda part: replace(part, of_event=True) if isinstance(part, Elapsed) else None)
