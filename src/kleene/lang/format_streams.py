"""Print a query of the stream algebra in CESAR's spelling; parsing what is printed gives the same tree again."""

from __future__ import annotations

from kleene.lang import stream_tree as streams
from kleene.lang import tree
from kleene.lang.format import format_declaration, format_expression, format_name, format_type


def format_stream_query(query: streams.StreamQuery) -> str:
    lines = [format_declaration(declaration) for declaration in query.declarations]
    publish = "" if query.publish is None else f" publish {format_type(query.publish)}"
    return "\n".join([*lines, format_stream(query.stream) + publish])


def format_stream(stream: streams.Stream) -> str:
    """`;` binds loosest, then `∪`; every other operation has its operands in parentheses."""
    match stream:
        case streams.StreamSource(kind, name):
            return format_type(kind.name) + ("" if name is None else f" {format_name(name)}")
        case streams.StreamUnion(parts):
            return " ∪ ".join(_nested(part, streams.StreamUnion, streams.Next) for part in parts)
        case streams.Next(left, right, condition):
            mark = ";" if condition is None else f";{{{format_expression(condition)}}}"
            return f"{format_stream(left)} {mark} {_nested(right, streams.Next)}"
        case streams.Fold(left, right, step, condition, init):
            below = [_chain(step)[0] or "ID"]
            below += [] if condition is None else [format_expression(condition)]
            below += [f"init {_assignment(each)}" for each in init]
            return f"μ{{{', '.join(below)}}}({format_stream(left)}, {format_stream(right)})"
    operations, operand = _chain(stream)
    return f"{operations}({format_stream(operand)})"


def _chain(stream: streams.Stream) -> tuple[str, streams.Stream]:
    """Unary operations from the outermost to the innermost, and what the innermost is applied to."""
    operations = []
    while isinstance(stream, streams.Unary):
        operations.append(_operation(stream))
        stream = stream.operand
    return " ∘ ".join(operations), stream


def _operation(stream: streams.Unary) -> str:
    match stream:
        case streams.Select(_, condition):
            return f"σ{{{format_expression(condition)}}}"
        case streams.Project(_, attributes):
            return f"π{{{', '.join(map(format_expression, attributes))}}}"
        case streams.Rename(_, renamings):
            pairs = (f"{format_expression(each.attribute)} ↦ {format_name(each.name)}" for each in renamings)
            return f"ρ{{{', '.join(pairs)}}}"
        case streams.Compute(_, assignments):
            return f"α{{{', '.join(map(_assignment, assignments))}}}"


def _assignment(assignment: streams.Assignment) -> str:
    return f"{format_expression(assignment.attribute)} ↦ {format_expression(assignment.value)}"


def _nested(stream: streams.Stream, *looser: type[tree.Node]) -> str:
    text = format_stream(stream)
    return f"({text})" if isinstance(stream, looser) else text
