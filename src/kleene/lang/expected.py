"""What the parser would have accepted, in words for a person."""

from __future__ import annotations

from collections.abc import Iterable

_WORDS = {
    "$END": "the end of the query",
    "_PATTERN": "PATTERN",
    "_DECLARE": "DECLARE",
    "_WHERE": "WHERE",
    "_WITHIN": "WITHIN",
    "_OUTPUT": "OUTPUT",
    "TIMEOUTS": "TIMEOUTS",
    "_RETURN": "RETURN",
    "_INTO": "INTO",
    "INTO": "INTO",
    "_SELECT": "SELECT",
    "_FROM": "FROM",
    "_OCCURS": "OCCURS",
    "OPEN_NAMES": "`(`",
    "EXCEPT": "`\\`",
    "_AS": "AS",
    "INCLUSIVE": "INCLUSIVE",
    "SEQ": "SEQ(",
    "ANY": "ANY(",
    "NAME": "a name",
    "QUOTED": "a name",
    "TYPE_NAME": "an event type",
    "NEGATE": "`!`",
    "INT": "a number",
    "FLOAT": "a number",
    "STRING": "a string",
    "PARAMETER": "a parameter",
    "PLAIN_LIST": "`(`",
    "COMPARE": "a comparison",
    "PLUS": "an operator",
    "MINUS": "an operator",
    "STAR": "an operator",
    "SLASH": "an operator",
    "MODULO": "an operator",
    "PERCENT": "`%`",
    "_AND": "AND",
    "_OR": "OR",
    "NOT": "NOT",
    "_IN": "IN",
    "_IS": "IS NULL",
    "_BETWEEN": "BETWEEN",
    "_CONTAINS": "CONTAINS",
    "NULL": "NULL",
    "TRUE": "TRUE",
    "FALSE": "FALSE",
    "COMMA": "`,`",
    "LPAR": "`(`",
    "RPAR": "`)`",
    "LSQB": "`[`",
    "RSQB": "`]`",
    "LBRACE": "`{`",
    "RBRACE": "`}`",
    "BRACKETS": "`[]`",
    "SEMICOLON": "`;`",
    "NEXT": "`;`",
    "_UNION": "`∪`",
    "_OF": "`∘`",
    "_ARROW": "`↦`",
    "_PUBLISH": "publish",
    "_INIT": "init",
    "IDENTITY": "ID",
    "SELECT": "`σ{`",
    "PROJECT": "`π{`",
    "RENAME": "`ρ{`",
    "COMPUTE": "`α{`",
    "FOLD": "`μ{`",
    "VBAR": "`|`",
    "AMPERSAND": "`&`",
    "QMARK": "`?`",
    "CIRCUMFLEX": "`^`",
    "RAISED_INT": "`^`",
    "RAISED_PLUS": "an operator",
    "DOT": "`.`",
    "STREAM": "STREAM",
    "TYPE": "TYPE",
    "CLASS": "CLASS",
    "SOURCE": "SOURCE",
    "SINK": "SINK",
}

# `@` is for queries that are built in Python.
_UNSAID = {"AT"}
_STREAM = {"TYPE_NAME", "SELECT", "FOLD"}
_OPERAND = {"INT", "FLOAT", "STRING", "PARAMETER", "LPAR", "NAME"}


def describe_expected(terminals: Iterable[str]) -> str:
    """One short list: operands are named once, and operators are not listed one by one."""
    names = set(terminals) - _UNSAID
    words: list[str] = []
    if names >= _STREAM:
        words.append("a stream")
        names -= _STREAM | {"QUOTED", "PROJECT", "RENAME", "COMPUTE", "LPAR"}
    if names >= _OPERAND:
        words.append("a value or a condition")
        names -= _OPERAND | {"OPEN_NAMES", "QUOTED", "LSQB", "MINUS", "NOT", "NULL", "TRUE", "FALSE"}
    words += sorted({_WORDS.get(name, name.strip("_").lower()) for name in names})
    if len(words) > 8:
        words = [word for word in words if word not in {"an operator", "`%`", "IN", "IS NULL", "BETWEEN", "CONTAINS"}]
    return " or ".join(words) if len(words) < 3 else ", ".join(words[:-1]) + " or " + words[-1]
