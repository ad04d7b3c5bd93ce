"""Run a parser over a text: the tree that its builder makes, or one error that says where and what to write instead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lark import Lark
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from kleene.errors import QueryError, Span, SyntaxProblem
from kleene.lang.advice import Advice
from kleene.lang.characters import check_characters
from kleene.lang.expected import describe_expected


def no_advice(_: str, span: Span, expected: str) -> Advice:
    return Advice(span, f"expected {expected}")


def too_early(text: str, expected: str) -> tuple[str, Advice]:
    end = len(text.rstrip())
    return "the query ends too early", Advice(Span(max(0, end - 1), end), f"expected {expected}")


@dataclass(frozen=True, slots=True)
class Adviser:
    """What to say of a text that cannot be read.

    instead   what to write instead of the word or sign at a place, where something else was expected
    at_end    what is wrong with a text that ends too early, where, and what to write
    """

    instead: Callable[[str, Span, str], Advice] = no_advice
    at_end: Callable[[str, str], tuple[str, Advice]] = too_early


def read(parser: Lark, text: str, start: str, adviser: Adviser) -> Any:
    """What the parser's builder makes of a text, from this rule of the grammar on."""
    check_characters(text)
    try:
        return parser.parse(text, start=start)
    except QueryError as error:
        error.locate(text)
        raise
    except UnexpectedInput as problem:
        unreadable = _syntax_problem(text, problem, adviser)
        unreadable.locate(text)
        raise unreadable from None


def _syntax_problem(text: str, problem: UnexpectedInput, adviser: Adviser) -> QueryError:
    if isinstance(problem, UnexpectedToken):
        expected = describe_expected(problem.accepts or problem.expected)
        if problem.token.type == "$END":
            message, advice = adviser.at_end(text, expected)
            return SyntaxProblem(message, advice.span, hint=advice.hint)
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
    advice = adviser.instead(text, Span(start, start + len(shown)), expected)
    shown = text[advice.span.start : advice.span.end]
    return SyntaxProblem(f"unexpected `{_clip(shown)}`", advice.span, hint=advice.hint)


def _clip(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "…"
