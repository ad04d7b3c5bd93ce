"""Where the declarations of a text end and its query begins, whatever the query's spelling."""

from __future__ import annotations

import re

from kleene.lang.durations import unit_named

# Strings, quoted names and comments are one token each, so that nothing inside them is taken for a word or a sign.
_TOKEN = re.compile(
    r"(?P<skip>[\s\ufeff]+|/\*.*?\*/|--[^\n]*)"
    r"|(?P<string>'[^']*(?:''[^']*)*'|\"[^\"]*(?:\"\"[^\"]*)*\"|‘[^’]*’|“[^”]*”)"
    r"|(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)"
    r"|(?P<word>`[^`\n]+`|:?[^\W\d]\w*)"
    r"|(?P<sign>.)",
    re.DOTALL,
)
_BETWEEN_OPERANDS = frozenset(["and", "or", "not", "in", "is", "between", "contains"])
_CONSTANTS = frozenset(["null", "true", "false"])
_QUERY = frozenset(["pattern", "event"])


def query_start(text: str) -> int:
    """The offset of the query's first word or sign, after the declarations; the length of a text without a query.

    >>> text = "DECLARE TYPE A (x int) DECLARE CLASS B IS A WHERE x > 5 and y = 'PATTERN' PATTERN B b"
    >>> text[query_start(text):]
    'PATTERN B b'
    """
    tokens = [match for match in _TOKEN.finditer(text) if match.lastgroup != "skip"]
    place = 0
    while place < len(tokens) and tokens[place][0].casefold() == "declare":
        place = _after_declaration(tokens, place + 1)
    return tokens[place].start() if place < len(tokens) else len(text)


def declares(text: str) -> bool:
    """Whether a text begins with a declaration."""
    first = next((match for match in _TOKEN.finditer(text) if match.lastgroup != "skip"), None)
    return first is not None and first[0].casefold() == "declare"


def _after_declaration(tokens: list[re.Match[str]], place: int) -> int:
    kind = tokens[place][0].casefold() if place < len(tokens) else ""
    if kind != "class":
        while place < len(tokens) and tokens[place][0] != "(":
            place += 1
        return _after_parentheses(tokens, place)
    # `CLASS name IS type`, or `CLASS name IS ANY (…)`.
    place += 3
    any_of = place + 1 < len(tokens) and tokens[place][0].casefold() == "any" and tokens[place + 1][0] == "("
    place = _after_parentheses(tokens, place + 1) if any_of else place + 1
    if place >= len(tokens) or tokens[place][0].casefold() != "where":
        # Parts of a hyphenated type.
        while place + 1 < len(tokens) and tokens[place][0] == "-":
            place += 2
        if place >= len(tokens) or tokens[place][0].casefold() != "where":
            return place
    return _after_condition(tokens, place + 1)


def _after_condition(tokens: list[re.Match[str]], place: int) -> int:
    """The first token that no condition can go on with: an operand beside another one."""
    depth, operand = 0, ""
    while place < len(tokens):
        text, kind = tokens[place][0], tokens[place].lastgroup
        word = text.casefold()
        unit = operand == "number" and kind == "word" and unit_named(word) is not None
        if depth == 0 and kind == "word":
            follows = bool(operand) and word not in _BETWEEN_OPERANDS and not unit
            if word in _QUERY or word == "declare" or follows:
                return place
        elif depth == 0 and text == "(" and operand in ("string", "number", ")"):
            return place
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(text, 0)
        after_dot = place > 0 and tokens[place - 1][0] == "."
        operand = "" if kind == "sign" or (word in _BETWEEN_OPERANDS and not after_dot) else str(kind)
        # No parenthesis after these is that of a call.
        operand = ")" if text in ")]%" or unit or word in _CONSTANTS else operand
        place += 1
    return place


def _after_parentheses(tokens: list[re.Match[str]], place: int) -> int:
    depth = 0
    while place < len(tokens):
        depth += {"(": 1, ")": -1}.get(tokens[place][0], 0)
        place += 1
        if depth == 0:
            break
    return place
