"""Print the syntax tree of a pattern in the main spelling: one canonical text for all ways to write it.

Parsing what is printed gives the same tree again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction

from kleene.lang import tree
from kleene.lang.durations import TICKS

_PLAIN_NAME = re.compile(r"[^\W\d⁰¹²³⁴-⁹]\w*\Z")
_PLAIN_TYPE = re.compile(r"[^\W\d⁰¹²³⁴-⁹][^\W⁰¹²³⁴-⁹]*(?:-[^\W⁰¹²³⁴-⁹]+)*\Z")
_CLAUSES = frozenset(
    ["declare", "pattern", "event", "where", "within", "output", "timeouts", "return", "into", "as", "inclusive"]
)
_KEYWORDS = _CLAUSES | frozenset(
    ["seq", "any", "or", "and", "not", "in", "is", "between", "contains", "null", "true", "false"]
)


def format_pattern_query(query: tree.Query) -> str:
    """The query on as many lines as it has clauses."""
    lines = [format_declaration(declaration) for declaration in query.declarations]
    lines.append(f"PATTERN {format_pattern(query.pattern)}")
    if query.strategy is not None:
        body = "" if query.where is None else f" {format_expression(query.where)} "
        lines.append(f"WHERE {_strategy(query.strategy)} {{{body}}}")
    elif query.where is not None:
        lines.append(f"WHERE {format_expression(query.where)}")
    if query.within is not None:
        inclusive = " INCLUSIVE" if query.within.inclusive else ""
        lines.append(f"WITHIN {format_duration(query.within.duration)}{inclusive}")
    if query.output is not None:
        lines.append(f"OUTPUT {query.output.mode.value}")
    if query.timeouts is not None:
        lines.append(f"TIMEOUTS INTO {format_type(query.timeouts)}")
    if query.returns is not None:
        items = ", ".join(format_return_item(item) for item in query.returns.items)
        into = "" if query.returns.into is None else f" INTO {format_type(query.returns.into)}"
        lines.append(f"RETURN {items}{into}")
    return "\n".join(lines)


def format_declaration(declaration: tree.Declaration) -> str:
    match declaration:
        case tree.TypeDeclaration(name, attributes):
            return f"DECLARE TYPE {format_type(name)} ({_columns(attributes)})"
        case tree.SourceDeclaration(name, attributes):
            return f"DECLARE SOURCE {format_type(name)} ({_columns(attributes)})"
        case tree.SinkDeclaration(name, attributes):
            return f"DECLARE SINK {format_type(name)} ({_columns(attributes)})"
        case tree.ClassDeclaration(name, types, predicate):
            names = ", ".join(format_type(item.name) for item in types)
            test = f"ANY({names})" if len(types) > 1 else names
            where = "" if predicate is None else f" WHERE {format_expression(predicate)}"
            return f"DECLARE CLASS {format_type(name)} IS {test}{where}"
    items = []
    if declaration.type_column is not None:
        items.append(f"type {format_name(declaration.type_column)}")
    if declaration.constant_type is not None:
        items.append(f"type {_string(declaration.constant_type)}")
    if declaration.time is not None:
        kind = f" {format_name(declaration.time_type)}" if declaration.time_type else ""
        items.append(f"time {format_name(declaration.time)}{kind}")
    if declaration.start is not None:
        items.append(f"start {format_name(declaration.start)}")
    if declaration.tie_breaker is not None:
        items.append(f"tie {format_name(declaration.tie_breaker)}")
    if declaration.tick is not None:
        items.append(f"tick {format_duration(declaration.tick)}")
    return f"DECLARE STREAM ({', '.join(items)})"


def _columns(attributes: Iterable[tuple[str, str | None]]) -> str:
    return ", ".join(format_name(column) + (f" {format_name(kind)}" if kind else "") for column, kind in attributes)


def format_pattern(pattern: tree.Pattern) -> str:
    match pattern:
        case tree.Component():
            names = ", ".join(format_type(item.name) for item in pattern.types)
            test = f"ANY({names})" if pattern.any else names
            return test + _suffix(pattern.repetition, pattern.variable, pattern.brackets)
        case tree.Negation(operand):
            return f"!({format_pattern(operand)})"
        case tree.Sequence(parts):
            return f"SEQ({', '.join(format_pattern(part) for part in parts)})"
        case tree.Conjunction(parts):
            return " & ".join(_nested(part, tree.Conjunction, tree.Disjunction) for part in parts)
        case tree.Disjunction(parts):
            return " | ".join(_nested(part, tree.Disjunction) for part in parts)
        case tree.Group(inner, repetition, variable, brackets):
            return f"({format_pattern(inner)}){_suffix(repetition, variable, brackets)}"


def _nested(part: tree.Pattern, *looser: type[tree.Node]) -> str:
    text = format_pattern(part)
    return f"({text})" if isinstance(part, looser) else text


def _suffix(repetition: tree.Repetition | None, variable: str | None, brackets: bool) -> str:
    text = "" if repetition is None else _repetition(repetition)
    if variable is not None:
        text += f" {format_name(variable)}{'[]' if brackets else ''}"
    return text


def _repetition(repetition: tree.Repetition) -> str:
    match repetition.mark:
        case tree.Mark.POWER:
            return f"^{repetition.minimum}"
        case tree.Mark.BRACES:
            low, high = repetition.minimum, repetition.maximum
            return f"{{{low}}}" if low == high else f"{{{low},{'' if high is None else high}}}"
    return str(repetition.mark.value)


# How tightly an expression binds when it is printed; a looser operand gets parentheses.
_LOOSE, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _SIGN, _PERCENT, _ATOM = range(9)
_BINDING = {
    tree.Or: _LOOSE,
    tree.And: _AND,
    tree.Not: _NOT,
    tree.Comparison: _COMPARE,
    tree.EqualityChain: _COMPARE,
    tree.Contains: _COMPARE,
    tree.In: _COMPARE,
    tree.Between: _COMPARE,
    tree.IsNull: _COMPARE,
    tree.OccursWithin: _COMPARE,
    tree.Negative: _SIGN,
    tree.Percent: _PERCENT,
}


def _binding(expression: tree.Expression) -> int:
    if isinstance(expression, tree.Arithmetic):
        return _SUM if expression.operator in "+-" else _PRODUCT
    return _BINDING.get(type(expression), _ATOM)


def format_expression(expression: tree.Expression, at_least: int = _LOOSE) -> str:
    text = _expression(expression)
    return f"({text})" if _binding(expression) < at_least else text


def format_operands(expression: tree.Expression) -> list[str]:
    """The operands of AND or OR, each after the first with its word; one text for anything else."""
    match expression:
        case tree.And(operands):
            word, at_least = "AND", _NOT
        case tree.Or(operands):
            word, at_least = "OR", _AND
        case _:
            return [format_expression(expression)]
    first, *others = (format_expression(operand, at_least) for operand in operands)
    return [first, *(f"{word} {other}" for other in others)]


def _expression(expression: tree.Expression) -> str:
    match expression:
        case tree.Or(operands):
            return _joined(" OR ", operands, _AND)
        case tree.And(operands):
            return _joined(" AND ", operands, _NOT)
        case tree.Not(operand):
            return f"NOT {format_expression(operand, _NOT)}"
        case tree.Comparison(operator, left, right):
            return f"{format_expression(left, _SUM)} {operator} {format_expression(right, _SUM)}"
        case tree.EqualityChain(operands):
            return _joined(" = ", operands, _SUM)
        case tree.Contains(left, right):
            return f"{format_expression(left, _SUM)} CONTAINS {format_expression(right, _SUM)}"
        case tree.In(operand, items, negated):
            return f"{format_expression(operand, _SUM)}{' NOT' if negated else ''} IN ({_joined(', ', items, _LOOSE)})"
        case tree.Between(operand, low, high, negated):
            bounds = f"{format_expression(low, _SUM)} AND {format_expression(high, _SUM)}"
            return f"{format_expression(operand, _SUM)}{' NOT' if negated else ''} BETWEEN {bounds}"
        case tree.IsNull(operand, negated):
            return f"{format_expression(operand, _SUM)} IS {'NOT ' if negated else ''}NULL"
        case tree.OccursWithin(names, duration):
            return f"({_joined(', ', names, _LOOSE)}) OCCURS WITHIN {format_duration(duration)}"
        case tree.Arithmetic(operator, left, right):
            tight = _binding(expression)
            after = format_expression(right, tight + 1)
            if operator == "%" and after.startswith("-"):
                after = f"({after})"  # a sign after `%` would make it a percent sign
            return f"{format_expression(left, tight)} {operator} {after}"
        case tree.Negative(operand):
            # A space keeps `- -x` from opening a comment.
            return f"- {format_expression(operand, _SIGN)}"
        case tree.Percent(operand):
            return f"{format_expression(operand, _ATOM)}%"
        case tree.Call(function, arguments):
            return f"{format_name(function)}({_joined(', ', arguments, _LOOSE)})"
        case tree.Equivalence(items):
            return f"[{', '.join(_equivalence_item(item) for item in items)}]"
    return _atom(expression)


def _atom(expression: tree.Expression) -> str:
    match expression:
        case tree.Literal(value):
            return _literal(value)
        case tree.Duration():
            text = format_duration(expression)
            return f"{text} {TICKS}" if text.isdigit() else text
        case tree.Timestamp(text):
            return f"TIMESTAMP {_string(text)}"
        case tree.Parameter(name):
            return f":{name}"
        case tree.Name(name):
            return format_name(name)
        case tree.Attribute(variable, index, attribute):
            return f"{format_name(variable)}{_index(variable, index)}.{format_name(attribute, after_dot=True)}"
        case tree.LastValue(attribute):
            return f"{_atom(attribute)}.last"
        case tree.Events(variable, index):
            return f"{format_name(variable)}{_index(variable, index) or '[]'}"
    raise TypeError(f"not an expression: {expression!r}")


def _joined(separator: str, operands: Iterable[tree.Expression], at_least: int) -> str:
    return separator.join(format_expression(operand, at_least) for operand in operands)


def _equivalence_item(item: tree.EquivalenceItem) -> str:
    value = "" if item.value is None else f" = {format_expression(item.value, _SUM)}"
    return format_name(item.attribute) + value


def _index(variable: str, index: tree.Index | tree.Nth | None) -> str:
    if index is None:
        return ""
    return f"[{format_name(variable)}.LEN]" if index is tree.Index.LAST else f"[{index.value}]"


def _literal(value: int | float | str | bool | None) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return _string(value)
    return repr(value)


def _string(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def format_duration(duration: tree.Duration) -> str:
    return " ".join(_quantity(term) for term in duration.terms)


def _quantity(term: tree.Quantity) -> str:
    amount = f":{term.amount.name}" if isinstance(term.amount, tree.Parameter) else _decimal(term.amount)
    if term.unit == TICKS:
        return amount
    return f"{amount} {term.unit[:-1] if amount == '1' else term.unit}"


def _decimal(value: Fraction) -> str:
    """A fraction that was written as a decimal, written as a decimal again, without rounding."""
    if value.denominator == 1:
        return str(value.numerator)
    places = 0
    while (value * 10**places).denominator != 1:
        places += 1
    digits = str((value * 10**places).numerator).rjust(places + 1, "0")
    return f"{digits[:-places]}.{digits[-places:]}"


def _strategy(strategy: tree.Strategy) -> str:
    if strategy.variables is None:
        return strategy.kind.value
    names = (format_name(item.name) + ("[]" if item.brackets else "") for item in strategy.variables)
    return f"{strategy.kind.value}({', '.join(names)})"


def format_return_item(item: tree.ReturnItem) -> str:
    return format_expression(item.value) + ("" if item.alias is None else f" AS {format_name(item.alias)}")


def format_name(name: str, *, after_dot: bool = False) -> str:
    plain = _PLAIN_NAME.match(name) and (after_dot or name.casefold() not in _KEYWORDS)
    return name if plain else f"`{name}`"


def format_type(name: str) -> str:
    return name if _PLAIN_TYPE.match(name) and name.casefold() not in _KEYWORDS else f"`{name}`"
