"""Print a query of the stream algebra in CESAR's spelling; parsing what is printed gives the same tree again.

A short expression is one line. A long one has an operation or an operand a line, with operands indented.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from kleene.lang import stream_tree as streams
from kleene.lang import tree
from kleene.lang.format import format_declaration, format_expression, format_name, format_operands, format_type

WIDTH = 100
_INDENT = "  "
# What may follow a line that was said to fit: `(`, `,` or ` ∘`.
_CLOSING = 2
# An id that is one of these would be taken for what follows a stream.
_AFTER_A_STREAM = frozenset(["next", "union", "publish"])

# Something in braces: the lines that it takes when there is room for so many columns.
Layout = Callable[[int], list[str]]


def format_stream_query(query: streams.StreamQuery, width: int | None = WIDTH) -> str:
    """The query with a line for each declaration; without a width the expression is one line, however long."""
    lines = [format_declaration(declaration) for declaration in query.declarations]
    publish = "" if query.publish is None else f"publish {format_type(query.publish)}"
    whole = f"{format_stream(query.stream)} {publish}".rstrip()
    if isinstance(query.stream, streams.StreamSource) and not publish:
        # A name alone would be a text of no spelling.
        whole = f"({whole})"
    if width is None or len(whole) <= width:
        return "\n".join([*lines, whole])
    lines += _lines(query.stream, width)
    return "\n".join([*lines, publish] if publish else lines)


# On one line ---------------------------------------------------------------------------------------------------------


def format_stream(stream: streams.Stream) -> str:
    """`;` binds loosest, then `∪`; every other operation has its operands in parentheses."""
    match stream:
        case streams.StreamSource(kind, name):
            return format_type(kind.name) + ("" if name is None else f" {_id(name)}")
        case streams.StreamUnion(parts):
            return " ∪ ".join(_nested(part, streams.StreamUnion, streams.Next) for part in parts)
        case streams.Next(left, right, condition):
            mark = ";" if condition is None else _flat(";", [partial(_condition, condition)])
            return f"{format_stream(left)} {mark} {_nested(right, streams.Next)}"
        case streams.Fold(left, right):
            return f"{_flat('μ', _fold_parts(stream))}({format_stream(left)}, {format_stream(right)})"
        case streams.Carried():
            return ""
    operations, operand = _chain(stream)
    return f"{format_step(stream)}({format_stream(operand)})" if operations else format_stream(operand)


def format_step(stream: streams.Stream) -> str:
    """A chain of unary operations without what it is applied to; `ID` for none."""
    return " ∘ ".join(_flat(*_operation(each)) for each in _chain(stream)[0]) or "ID"


def _nested(stream: streams.Stream, *looser: type[tree.Node]) -> str:
    text = format_stream(stream)
    return f"({text})" if isinstance(stream, looser) else text


def _flat(sign: str, parts: Iterable[Layout]) -> str:
    return f"{sign}{{{', '.join(_one_line(part) for part in parts)}}}"


def _one_line(part: Layout) -> str:
    (line,) = part(10**9)
    return line


# Parts ---------------------------------------------------------------------------------------------------------------


def _chain(stream: streams.Stream) -> tuple[list[streams.Unary], streams.Stream]:
    """Unary operations from the outermost to the innermost, and what the innermost is applied to."""
    operations = []
    while isinstance(stream, streams.Unary):
        operations.append(stream)
        stream = stream.operand
    return operations, stream


def _operation(stream: streams.Unary) -> tuple[str, list[Layout]]:
    """The sign of an operation, and what stands in its braces."""
    match stream:
        case streams.Select(_, condition):
            return "σ", [partial(_condition, condition)]
        case streams.Project(_, attributes):
            return "π", [partial(_text, format_expression(each)) for each in attributes]
        case streams.Rename(_, renamings):
            pairs = (f"{format_expression(each.attribute)} ↦ {format_name(each.name)}" for each in renamings)
            return "ρ", [partial(_text, pair) for pair in pairs]
        case streams.Compute(_, assignments):
            return "α", [partial(_text, _assignment(each)) for each in assignments]


def _fold_parts(fold: streams.Fold) -> list[Layout]:
    parts: list[Layout] = [partial(_step, fold.step)]
    if isinstance(fold.condition, tree.Name) and fold.condition.name.casefold() == "id":
        # By itself it would be the identity.
        parts.append(partial(_text, f"`{fold.condition.name}`"))
    elif fold.condition is not None:
        parts.append(partial(_condition, fold.condition))
    return parts + [partial(_text, f"init {_assignment(each)}") for each in fold.init]


def _text(text: str, room: int) -> list[str]:
    return [text]


def _condition(condition: tree.Expression, room: int) -> list[str]:
    """A condition, with an operand of AND or OR a line where it is too long for one."""
    text = format_expression(condition)
    return [text] if len(text) <= room else format_operands(condition)


def _step(step: streams.Stream, room: int) -> list[str]:
    text, operations = format_step(step), _chain(step)[0]
    return [text] if len(text) <= room or not operations else _operations(operations, room)


def _assignment(assignment: streams.Assignment) -> str:
    return f"{format_expression(assignment.attribute)} ↦ {format_expression(assignment.value)}"


def _id(name: str) -> str:
    return f"`{name}`" if name.casefold() in _AFTER_A_STREAM else format_name(name)


# On several lines ----------------------------------------------------------------------------------------------------


def _lines(stream: streams.Stream, room: int) -> list[str]:
    """The lines of a stream, of which the last may be followed by a sign."""
    whole = format_stream(stream)
    if len(whole) <= room - _CLOSING or isinstance(stream, streams.StreamSource | streams.Carried):
        return [whole]
    match stream:
        case streams.StreamUnion(parts):
            first, *others = parts
            return _part([], first, room) + [line for part in others for line in _part(["∪"], part, room)]
        case streams.Next():
            return _steps(stream, room)
        case streams.Fold(left, right):
            return _applied(partial(_braced, "μ", _fold_parts(stream)), [left, right], room)
    operations, operand = _chain(stream)
    return _applied(partial(_operations, operations), [operand], room)


def _steps(stream: streams.Next, room: int) -> list[str]:
    """Each `;` begins a line, from the left on."""
    right: list[streams.Next] = []
    first: streams.Stream = stream
    while isinstance(first, streams.Next):
        right.append(first)
        first = first.left
    lines = _part([], first, room)
    for each in reversed(right):
        mark = [";"] if each.condition is None else _braced(";", [partial(_condition, each.condition)], room)
        lines += _part(mark, each.right, room)
    return lines


def _part(mark: list[str], stream: streams.Stream, room: int) -> list[str]:
    """An operand of `;` or `∪` behind its mark, if it has one; what binds looser stands in parentheses."""
    nested = isinstance(stream, streams.Next)
    whole = " ".join([*mark[-1:], f"({format_stream(stream)})" if nested else format_stream(stream)])
    if len(whole) <= room - _CLOSING:
        return [*mark[:-1], whole]
    if not mark and not isinstance(stream, streams.Next | streams.StreamUnion):
        return _lines(stream, room)
    first, *others = _lines(stream, room - len(_INDENT))
    if nested:
        return [*mark[:-1], " ".join([*mark[-1:], "("]), *_indented([first, *others]), ")"]
    if mark in ([], [";"], ["∪"]):
        # A mark of one sign takes as much room as the lines below it are indented.
        return [" ".join([*mark, first]), *_indented(others)]
    return [*mark, *_indented([first, *others])]


def _applied(head: Callable[[int, int], list[str]], operands: list[streams.Stream], room: int) -> list[str]:
    """An operation with its operands: base streams on its last line, others each on lines of its own."""
    if all(isinstance(operand, streams.StreamSource) for operand in operands):
        attached = f"({', '.join(map(format_stream, operands))})"
        *lines, last = head(room, len(attached))
        return [*lines, last + attached]
    *lines, last = head(room, 0)
    lines.append(f"{last}(")
    for number, operand in enumerate(operands, 1):
        inner = _indented(_lines(operand, room - len(_INDENT)))
        lines += inner if number == len(operands) else [*inner[:-1], f"{inner[-1]},"]
    return [*lines, ")"]


def _operations(operations: list[streams.Unary], room: int, attached: int = 0) -> list[str]:
    """An operation a line, the outermost first; so many columns follow the last."""
    lines: list[str] = []
    for each in operations[:-1]:
        lines += _braced(*_operation(each), room)
        lines[-1] += " ∘"
    return lines + _braced(*_operation(operations[-1]), room, attached)


def _braced(sign: str, parts: list[Layout], room: int, attached: int = 0) -> list[str]:
    """A sign with what stands in its braces: on one line, which so many columns follow, or a part a line."""
    whole = _flat(sign, parts)
    if len(whole) + attached <= room - _CLOSING:
        return [whole]
    lines = [f"{sign}{{"]
    for number, part in enumerate(parts, 1):
        inner = _indented(part(room - len(_INDENT) - _CLOSING))
        lines += inner if number == len(parts) else [*inner[:-1], f"{inner[-1]},"]
    return [*lines, "}"]


def _indented(lines: Iterable[str]) -> list[str]:
    return [_INDENT + line for line in lines]
