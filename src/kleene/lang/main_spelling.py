"""The main spelling: `PATTERN … WHERE … WITHIN … RETURN …` to the syntax tree.

`kleene.lark` is the grammar; the builders turn its reductions into nodes of `tree` while the parser runs, so that no
second walk over a parse tree is needed.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any, cast

from lark import Lark, Token, Transformer

from kleene.lang import parser_tables, tree
from kleene.lang.advice import advice
from kleene.lang.build_clauses import Clauses
from kleene.lang.build_expressions import Expressions
from kleene.lang.build_patterns import Patterns
from kleene.lang.reading import Adviser, read

# What a text can be.
STARTS = ("start", "declarations", "duration", "class_body")
_ADVISER = Adviser(advice)
_FIRST_WORD = re.compile(r"(?:[\s\ufeff]|/\*.*?\*/|--[^\n]*)*([^\W\d]\w*)", re.DOTALL)


class Builder(Clauses, Patterns, Expressions, Transformer[Token, Any]):
    """Builds the tree bottom up."""


def recognises(text: str) -> bool:
    """The main spelling opens with PATTERN or EVENT, or with a declaration that no other spelling goes on from."""
    word = _FIRST_WORD.match(text)
    return word is not None and word[1].casefold() in {"pattern", "event", "declare"}


def parse(text: str) -> tree.Query:
    """The tree of a query, or one error with its place."""
    return cast(tree.Query, _run(text, "start"))


def parse_declarations(text: str) -> tuple[tree.Declaration, ...]:
    """The declarations of a schema file: `DECLARE …` and no query."""
    return cast("tuple[tree.Declaration, ...]", _run(text, "declarations"))


def parse_duration(text: str) -> tree.Duration:
    """`12 hours`, `1 hour 30 minutes`, `200`."""
    return cast(tree.Duration, _run(text, "duration"))


def parse_class(text: str) -> tuple[tuple[tree.TypeName, ...], tree.Expression | None]:
    """The right side of a class declaration: `Stock WHERE name = 'Google'`."""
    return cast("tuple[tuple[tree.TypeName, ...], tree.Expression | None]", _run(text, "class_body"))


def _run(text: str, start: str) -> Any:
    return read(_parser(), text, start, _ADVISER)


@cache
def _parser() -> Lark:
    grammar = Path(__file__).with_name("kleene.lark")
    return parser_tables.parser(grammar, start=STARTS, builder=Builder())
