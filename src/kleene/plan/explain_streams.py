"""An event automaton for people: what each state waits for, and what becomes of an instance that an event serves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from kleene.algebra.names import show
from kleene.algebra.nodes import AttributeName, StreamSource
from kleene.pattern.expressions import Attribute, Clause, Node, Value, Which
from kleene.pattern.printing import print_clauses, print_value
from kleene.pattern.rewriting import rewritten
from kleene.pattern.schema import is_private
from kleene.plan.streams import FINAL, START, InputFormula, StreamEdge, StreamPlan, WaitingState

AUTOMATON = "event automaton (CESAR §3)"

Row = tuple[str, str]
N = TypeVar("N", bound=Node)


def stream_rows(plan: StreamPlan, names: Sequence[str] = ()) -> Iterator[Row]:
    """The states and edges of an automaton.

    names   what parts of a query are called, by their streams
    """
    number = len(plan.states)
    yield "executor", f"{AUTOMATON}: {number} {'state' if number == 1 else 'states'}"
    for edge in plan.edges:
        if edge.source == START:
            formula = plan.formulas[edge.formula]
            yield (
                "begin",
                f"{source_text(formula.source, names)}{_where(formula, formula.condition)} → {_target(edge.target)}",
            )
    for place, state in enumerate(plan.states):
        yield f"state {place + 1}", _waits(plan, state, names)
        for edge in plan.leaving(place):
            kind = "rebind" if edge.target == place else "forward"
            tested = _where(plan.formulas[edge.formula], edge.condition)
            yield f"  {kind}", f"→ {_target(edge.target)}{tested}{_computed(plan, edge)}"


def source_text(source: StreamSource, names: Sequence[str] = ()) -> str:
    """A stream as a query names it; a part of the query by its number."""
    if is_private(source.id):
        return f"part {names.index(source.id) + 1}" if source.id in names else "a part"
    kind = source.event_class.name
    return kind if source.id == kind else f"{kind} {source.id}"


def _waits(plan: StreamPlan, state: WaitingState, names: Sequence[str]) -> str:
    formula = plan.formulas[state.formula]
    text = f"waits for {source_text(formula.source, names)}{_where(formula, (*formula.condition, *state.condition))}"
    if state.keys:
        text += f"; looked up by {', '.join(show(_name(each)) for _, each in state.keys)}"
    if state.most is None:
        return text
    return f"{text}; for {state.most:,} {'step' if state.most == 1 else 'steps'} of time from its start at most"


def _name(attribute: Attribute) -> AttributeName:
    return attribute.variable, attribute.attribute


def _target(state: int) -> str:
    return "result" if state == FINAL else f"state {state + 1}"


def _where(formula: InputFormula, condition: tuple[Clause, ...]) -> str:
    return f" where {print_clauses(tuple(shown(formula, clause) for clause in condition))}" if condition else ""


def shown(formula: InputFormula, node: N) -> N:
    """An expression as a query would write it: `x.last` only where the newest event has an x of its own."""

    def plain(part: Node) -> Node | None:
        if not isinstance(part, Attribute) or part.which is not Which.OVERWRITTEN:
            return None
        return None if _name(part) in formula.source.schema.names else replace(part, which=Which.SINGLE)

    return rewritten(node, plain)


def _computed(plan: StreamPlan, edge: StreamEdge) -> str:
    """The values that are neither kept nor taken as they are."""
    names = plan.attributes(edge.target).names
    listed = [
        f"{show(name)} ↦ {print_value(shown(plan.formulas[edge.formula], value))}"
        for name, value in zip(names, edge.values, strict=True)
        if not _is_plain(name, value)
    ]
    return f", with {', '.join(listed)}" if listed else ""


def _is_plain(name: AttributeName, value: Value) -> bool:
    return isinstance(value, Attribute) and (_name(value) == name or value.which is Which.SINGLE)
