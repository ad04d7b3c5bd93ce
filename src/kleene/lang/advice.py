"""Advice for queries that cannot be parsed: habits of other languages, and what to write instead."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from kleene.errors import Span
from kleene.lang import tree

CLAUSES = ("PATTERN", "WHERE", "WITHIN", "OUTPUT", "TIMEOUTS", "RETURN")
_CLAUSE = re.compile(rf"\b({'|'.join((*CLAUSES, 'EVENT', 'DECLARE'))})\b", re.IGNORECASE)
_STRATEGIES = "|".join(strategy.value for strategy in tree.SelectionStrategy)
_AFTER_STRATEGY = re.compile(rf"\bWHERE\s+((?:{_STRATEGIES})\s*(?:\([^()]*\))?)\s*(?:\[[^\]]*)?\Z", re.IGNORECASE)
_NAME = re.compile(r"[^\W\d][\w-]*\Z")
_LIKE = ("LIKE", "ILIKE", "RLIKE", "MATCHES", "REGEXP")


@dataclass(frozen=True, slots=True)
class ErrorContext:
    """Where the parser gave up: the text, the word or sign that it could not use, and what it would have taken."""

    text: str
    span: Span
    expected: str

    @property
    def word(self) -> str:
        return self.text[self.span.start : self.span.end]

    @property
    def before(self) -> str:
        return self.text[: self.span.start]

    @property
    def clause(self) -> str:
        """The clause that the place stands in; EVENT is PATTERN."""
        keywords = _CLAUSE.findall(self.before)
        return keywords[-1].upper().replace("EVENT", "PATTERN") if keywords else ""

    @property
    def rest_of_clause(self) -> str:
        """From the place to the next clause."""
        rest = self.text[self.span.start :]
        following = _CLAUSE.search(rest)
        return " ".join(rest[: following.start() if following else None].split())


@dataclass(frozen=True, slots=True)
class Advice:
    span: Span
    hint: str


def advice(text: str, span: Span, expected: str) -> Advice:
    """Advice on the usual mistake at this place, or else the words that the parser would have accepted."""
    place = ErrorContext(text, span, expected)
    for rule in _RULES:
        suggestion = rule(place)
        if suggestion is not None:
            return suggestion
    return Advice(span, f"expected {expected}")


def _quoted_duration(place: ErrorContext) -> Advice | None:
    """`WITHIN '10 minutes'`."""
    if not re.search(r"\bWITHIN\s*\Z", place.before, re.IGNORECASE) or place.word[0] not in "'\"‘“":
        return None
    return Advice(place.span, f"a length of time has no quotes: `WITHIN {place.word[1:-1].strip() or '10 minutes'}`")


def _clause_order(place: ErrorContext) -> Advice | None:
    words = place.before.split()
    misplaced = place.word.upper() in CLAUSES and "`)`" not in place.expected
    if misplaced or (words and words[-1].upper() in CLAUSES[1:]):
        return Advice(place.span, "the clauses come in this order: " + ", ".join(CLAUSES))
    return None


def _braces(place: ErrorContext) -> Advice | None:
    """`WHERE skip_till_next_match [id]`."""
    head = _AFTER_STRATEGY.search(place.before)
    if head is None:
        return None
    conditions = " ".join((place.before[head.end(1) :] + place.rest_of_clause).split())
    return Advice(place.span, in_braces(head[1].strip(), conditions))


def in_braces(strategy: str, conditions: str) -> str:
    shown = conditions if len(conditions) <= 60 and conditions.isprintable() else "…"
    return f"the conditions of a strategy stand in braces: `{strategy} {{ {shown} }}`"


def _foreign_operator(place: ErrorContext) -> Advice | None:
    """`&&` and `||` of C, `->` of other pattern languages, LIKE of SQL."""
    start = place.span.start
    comparison = foreign_comparison(place)
    if place.clause == "PATTERN" and comparison is not None and place.word[0] in "&|":
        return Advice(comparison.span, f"in a pattern it is `{place.word[0]}`, once")
    if place.clause == "PATTERN" and place.text[start : start + 2] in ("->", "=>"):
        return Advice(Span(start, start + 2), "a sequence is written `SEQ(A a, B b)` or `A a ; B b`")
    return comparison


def foreign_comparison(place: ErrorContext) -> Advice | None:
    """`&&`, `||` and LIKE in a condition."""
    sign, start = place.word[0], place.span.start
    if sign in "&|":
        start -= place.before.endswith(sign)
        span = Span(start, start + (2 if place.text[start : start + 2] == 2 * sign else 1))
        return Advice(span, f"write {'AND' if sign == '&' else 'OR'}")
    if place.word.upper() in _LIKE:
        return Advice(place.span, "write CONTAINS for a part of a text, without wildcards: `a.name CONTAINS 'foo'`")
    return None


def _separator(place: ErrorContext) -> Advice | None:
    """`PATTERN A a B b`, `PATTERN A a, B b`."""
    if place.clause != "PATTERN":
        return None
    if place.word == ",":
        return Advice(place.span, "a sequence is written `SEQ(A a, B b)` or `A a ; B b`")
    if "`;`" not in place.expected or not (_NAME.match(place.word) or place.word[0] in "!~("):
        return None
    if "`,`" in place.expected:
        return Advice(place.span, "put `,` between the components: `SEQ(A a, B b)`")
    return Advice(place.span, f"put `;` between the components: `{_as_sequence(place)}`")


def _as_sequence(place: ErrorContext) -> str:
    """The pattern as it was probably meant, where it is a list of plain names: a small letter begins a variable."""
    *_, written = re.split(r"\b(?:PATTERN|EVENT)\b", place.before, maxsplit=1, flags=re.IGNORECASE)
    words = (written + place.rest_of_clause).split()
    if len(words) > 8 or not all(map(_NAME.match, words)):
        return "A a ; B b"
    components: list[str] = []
    for word in words:
        if word[0].islower() and components and " " not in components[-1] and components[-1][0].isupper():
            components[-1] += f" {word}"
        else:
            components.append(word)
    return " ; ".join(components)


_RULES: tuple[Callable[[ErrorContext], Advice | None], ...] = (
    _quoted_duration,
    _clause_order,
    _braces,
    _foreign_operator,
    _separator,
)
