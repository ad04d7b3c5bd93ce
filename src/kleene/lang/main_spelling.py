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
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from kleene.errors import QueryError, Span, SyntaxProblem
from kleene.lang import parser_tables, tree
from kleene.lang.advice import advice
from kleene.lang.build_clauses import Clauses
from kleene.lang.build_expressions import Expressions
from kleene.lang.build_patterns import Patterns
from kleene.lang.characters import check_characters
from kleene.lang.expected import describe_expected

# What a text can be.
STARTS = ("start", "declarations", "duration", "class_body")
_FIRST_WORD = re.compile(r"(?:[\s\ufeff]|/\*.*?\*/|--[^\n]*)*([^\W\d]\w*)", re.DOTALL)


class Builder(Clauses, Patterns, Expressions, Transformer[Token, Any]):
    """Builds the tree bottom up."""


def recognises(text: str) -> bool:
    """The main spelling opens with PATTERN, EVENT or a declaration."""
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
    check_characters(text)
    try:
        return _parser().parse(text, start=start)
    except QueryError as error:
        error.locate(text)
        raise
    except UnexpectedInput as problem:
        unreadable = _syntax_problem(text, problem)
        unreadable.locate(text)
        raise unreadable from None


@cache
def _parser() -> Lark:
    grammar = Path(__file__).with_name("kleene.lark")
    return parser_tables.parser(grammar, start=STARTS, builder=Builder())


def _syntax_problem(text: str, problem: UnexpectedInput) -> QueryError:
    if isinstance(problem, UnexpectedToken):
        expected = describe_expected(problem.accepts or problem.expected)
        if problem.token.type == "$END":
            end = len(text.rstrip())
            return SyntaxProblem("the query ends too early", Span(max(0, end - 1), end), hint=f"expected {expected}")
        start, shown = problem.token.start_pos or 0, str(problem.token)
    else:
        assert isinstance(problem, UnexpectedCharacters)
        expected = describe_expected(problem.allowed or set())
        start = problem.pos_in_stream or 0
        shown = text[start]
    for opening in (start, start - 1):
        if opening >= 0 and text.startswith("/*", opening):
            place = Span(opening, opening + 2)
            return SyntaxProblem("this comment is never closed", place, hint="end it with `*/`")
    if text[start] in "'\"‘“`" and len(shown) == 1:
        return SyntaxProblem(
            "this quotation is never closed", Span(start, start + 1), hint="write the quote again at its end"
        )
    suggestion = advice(text, Span(start, start + len(shown)), expected)
    shown = text[suggestion.span.start : suggestion.span.end]
    return SyntaxProblem(f"unexpected `{_clip(shown)}`", suggestion.span, hint=suggestion.hint)


def _clip(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "…"
