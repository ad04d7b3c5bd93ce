"""Numbers and strings lifted out of a text, so that texts which differ in nothing else are seen to be alike.

One regular expression finds them, without parsing; which of them are constants of conditions is asked of the parsed
text, once for all texts that are alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kleene.lang import tree
from kleene.lang.building import text_of

# As the grammar has them; comments and quoted names are found, too, since what they hold is no literal.
_LITERAL = re.compile(
    r"""(/\*[^*]*(?:\*(?!/)[^*]*)*\*/|--[^\n]*|`[^`\n]+`"""
    r"""|'[^']*(?:''[^']*)*'|"[^"]*(?:""[^"]*)*"|‘[^’]*’|“[^”]*”"""
    r"""|(?<![\w.:])\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?!\w))"""
)
_STRING = frozenset("'\"‘“")
# Stands where a literal was.
_HOLE = "\0"

Plain = int | float | str


@dataclass(frozen=True, slots=True)
class Liftable:
    """A literal of a text that is a constant of a condition.

    place      its number among the literals of the text
    start      where it begins in the text, with its sign, and where it ends
    negative   whether a minus stands before it
    """

    place: int
    start: int
    end: int
    negative: bool


def lifted(text: str) -> tuple[str, list[str]]:
    """A text without its literals, and the literals as they are written.

    >>> lifted("σ{price > 10.5 and name = 'IBM'}(Stock S1)")
    ('σ{price > \\x00 and name = \\x00}(Stock S1)', ['10.5', "'IBM'"])
    """
    parts = _LITERAL.split(text)
    return _HOLE.join(parts[::2]), parts[1::2]


def value_of(literal: str, *, negative: bool = False) -> Plain:
    """The value of a literal as the parser reads it.

    >>> value_of("'it''s'"), value_of("10"), value_of("10.0", negative=True)
    ("it's", 10, -10.0)
    """
    if literal[0] in _STRING:
        return text_of(literal)
    number: int | float = int(literal) if literal.isdigit() else float(literal)
    return -number if negative else number


def liftable(text: str, parsed: object) -> list[Liftable]:
    """The literals of a text that are compared with something, of IN and BETWEEN too, in their order."""
    places: dict[int, tuple[int, int]] = {}
    for number, match in enumerate(_LITERAL.finditer(text)):
        places[match.start()] = number, match.end()
    found: dict[int, Liftable] = {}
    for node, negative in _compared(parsed):
        at = places.get(node.span.start if not negative else _after_sign(text, node.span.start))
        if at is not None and node.span.end == at[1]:
            found[at[0]] = Liftable(at[0], node.span.start, at[1], negative)
    return [found[number] for number in sorted(found)]


def _after_sign(text: str, start: int) -> int:
    start += 1
    while start < len(text) and text[start].isspace():
        start += 1
    return start


def _compared(parsed: object) -> Iterator[tuple[tree.Literal | tree.Negative, bool]]:
    """Numbers and strings that conditions compare values with, and whether they have a sign."""
    for node in tree.walk(parsed):
        operands: tuple[tree.Expression, ...] = ()
        match node:
            case tree.Comparison(_, left, right):
                operands = left, right
            case tree.In(_, items):
                operands = items
            case tree.Between(_, low, high):
                operands = low, high
        for operand in operands:
            match operand:
                case tree.Literal(value) if _is_plain(value):
                    yield operand, False
                case tree.Negative(tree.Literal(value)) if _is_plain(value) and not isinstance(value, str):
                    yield operand, True


def _is_plain(value: object) -> bool:
    return isinstance(value, int | float | str) and not isinstance(value, bool)
