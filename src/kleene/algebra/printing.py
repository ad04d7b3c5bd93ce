"""Bound streams in CESAR's spelling, for people and for tests: parsed and bound again, they are the same streams."""

from __future__ import annotations

from kleene.algebra.names import show
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
    StreamSource,
    StreamUnion,
    Unary,
    chain,
)
from kleene.lang.format import format_name, format_type
from kleene.pattern.expressions import Value
from kleene.pattern.printing import print_clauses, print_value


def print_stream(node: Node) -> str:
    operations, inner = chain(node)
    written = " ∘ ".join(map(_operation, operations))
    if isinstance(inner, Carried):
        return written or "ID"
    return f"{written}({_inner(inner)})" if written else _inner(inner)


def _inner(node: Node) -> str:
    match node:
        case StreamSource(event_class, name):
            return format_type(event_class.name) + ("" if name == event_class.name else f" {format_name(name)}")
        case StreamUnion(parts):
            return " ∪ ".join(f"({print_stream(part)})" for part in parts)
        case Next(left, right, condition):
            mark = f";{{{print_clauses(condition)}}}" if condition else ";"
            return f"({print_stream(left)}) {mark} ({print_stream(right)})"
        case Fold(left, right, init, _, condition, step):
            # Binding brings a step back to the attributes that its fold has.
            below = [print_stream(step.operand if isinstance(step, Project) else step)]
            below += [print_clauses(condition)] if condition else []
            below += [f"init {_assigned(name, value)}" for name, value in init]
            return f"μ{{{', '.join(below)}}}({print_stream(left)}, {print_stream(right)})"
    raise TypeError(f"not a stream: {node!r}")


def _operation(node: Unary) -> str:
    match node:
        case Filter(_, condition):
            return f"σ{{{print_clauses(condition)}}}"
        case Project(_, schema):
            return f"π{{{', '.join(map(show, schema.names))}}}"
        case Rename(_, names):
            return f"ρ{{{', '.join(f'{show(old)} ↦ {show(new)}' for old, new in names)}}}"
        case Compute(_, assignments):
            return f"α{{{', '.join(_assigned(name, value) for name, value in assignments)}}}"


def _assigned(name: AttributeName, value: Value) -> str:
    return f"{show(name)} ↦ {print_value(value)}"
