"""Print a query of EQL; parsing what is printed gives the same tree again.

Each clause begins a line, as in NEXT's print; FROM goes on behind a short SELECT. Without a width all is one line.
"""

from __future__ import annotations

from collections.abc import Iterable

from kleene.lang import eql_tree as eql
from kleene.lang import tree
from kleene.lang.format import (
    format_declaration,
    format_duration,
    format_expression,
    format_name,
    format_operands,
    format_return_item,
    format_type,
)

WIDTH = 100


def format_eql_query(query: eql.EqlQuery, width: int | None = WIDTH) -> str:
    """The query with a line for each declaration; without a width its clauses are one line, however long."""
    declarations = [format_declaration(declaration) for declaration in query.declarations]
    select = f"SELECT {_selection(query.returns)}"
    source = f"FROM {format_event_pattern(query.pattern)}"
    conditions = [_qualification(each) for each in query.qualifications]
    into = [f"INTO {format_type(name)}" for name in query.makes]
    if width is None:
        where = [f"WHERE {', '.join(conditions)}"] if conditions else []
        return "\n".join([*declarations, " ".join([select, source, *where, *into])])
    lines = [f"{select} {source}"]
    if len(lines[0]) > width:
        lines = [*_select(query.returns, width), *_from(query.pattern, width)]
    return "\n".join([*declarations, *lines, *_where(query.qualifications, width), *into])


def format_event_pattern(pattern: eql.EventPattern) -> str:
    r"""`\` binds loosest, then `;`, then `|`; `+` and `@` stand behind their operand."""
    match pattern:
        case eql.EventSource(kind, alias):
            return format_type(kind.name) + ("" if alias is None else f" {format_name(alias)}")
        case eql.NextChain(parts):
            return " ; ".join(_nested(part, eql.NextChain, eql.Excepted) for part in parts)
        case eql.EitherPattern(parts):
            return " | ".join(_nested(part, eql.EitherPattern, eql.NextChain, eql.Excepted) for part in parts)
        case eql.Iterated(operand):
            return f"{_operand(operand)}+"
        case eql.Delayed(operand, delay):
            return f"{_operand(operand)} @ {format_duration(delay)}"
        case eql.Excepted(operand, exception):
            return rf"{_of_exception(operand)} \ {_of_exception(exception)}"


def _nested(part: eql.EventPattern, *looser: type[tree.Node]) -> str:
    text = format_event_pattern(part)
    return f"({text})" if isinstance(part, looser) else text


def _operand(part: eql.EventPattern) -> str:
    return _nested(part, eql.NextChain, eql.EitherPattern, eql.Excepted, eql.Delayed)


def _of_exception(part: eql.EventPattern) -> str:
    return _nested(part, eql.NextChain, eql.EitherPattern, eql.Excepted)


# Clauses -------------------------------------------------------------------------------------------------------------


def _selection(returns: tree.Return | None) -> str:
    return "*" if returns is None else ", ".join(_items(returns))


def _items(returns: tree.Return) -> list[str]:
    items = [format_return_item(item) for item in returns.items]
    if items[-1].endswith("%"):
        # Before FROM it would be the modulo.
        items[-1] = f"({items[-1]})"
    return items


def _select(returns: tree.Return | None, width: int) -> list[str]:
    items = ["*"] if returns is None else _items(returns)
    return _filled("SELECT ", [[item] for item in items], width)


def _from(pattern: eql.EventPattern, width: int) -> list[str]:
    whole = f"FROM {format_event_pattern(pattern)}"
    if len(whole) <= width or not isinstance(pattern, eql.NextChain | eql.EitherPattern):
        return [whole]
    sign, looser = (";", ()) if isinstance(pattern, eql.NextChain) else ("|", (eql.NextChain,))
    first, *others = (_nested(part, type(pattern), *looser, eql.Excepted) for part in pattern.parts)
    return [f"FROM {first}", *(f"   {sign} {other}" for other in others)]


def _where(qualifications: Iterable[eql.Qualification], width: int) -> list[str]:
    """Qualifications in lines that are filled; one that is too long for a line has an operand a line."""
    laid_out = []
    for each in qualifications:
        whole = _qualification(each)
        long = len("WHERE ") + len(whole) + 1 > width and not each.filters
        laid_out.append(format_operands(each.condition) if long else [whole])
    return _filled("WHERE ", laid_out, width) if laid_out else []


def _qualification(qualification: eql.Qualification) -> str:
    text = format_expression(qualification.condition)
    return f"FILTER({text})" if qualification.filters else text


def _filled(head: str, items: list[list[str]], width: int) -> list[str]:
    """Items with commas between them in lines as long as they may be; an item of several lines has them for itself."""
    lines: list[str] = []
    goes_on = False
    for number, item in enumerate(items, 1):
        *firsts, last = item
        texts = [*firsts, last if number == len(items) else f"{last},"]
        if goes_on and len(texts) == 1 and len(head) + len(lines[-1]) + 1 + len(last) + 1 <= width:
            lines[-1] += f" {texts[0]}"
        else:
            lines += texts
        goes_on = len(texts) == 1
    return [(head if number == 0 else " " * len(head)) + line for number, line in enumerate(lines)]
