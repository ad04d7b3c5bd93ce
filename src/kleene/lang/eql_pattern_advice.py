"""Advice for the pattern of an EQL query, behind FROM: habits of other pattern languages, and what to write instead."""

from __future__ import annotations

import re

from kleene.errors import Span
from kleene.lang.advice import Advice
from kleene.lang.eql_context import NAME, SHAPE, EqlContext

_CHAIN = "events that follow each other are written `t S1 ; t S2`"
_UNION = "one or the other is written `t S1 | t S2`"
_EITHER_ORDER = "EQL has no AND between events; either order is `(t A ; t B) | (t B ; t A)`"
_EXCEPTION = r"what must not occur meanwhile stands behind `\`: `(t S1 ; t S2) \ t X`"
_ITERATION = "one or more is written `t S1+`; there is no other count"
_CONDITIONS = "conditions stand in WHERE: `FROM t S1 ; t S2 WHERE S1.acc = S2.acc`"
_NESTED = "a query reads the results of another one by name: `SELECT … INTO Pairs` there, `FROM Pairs P` here"
NO_PATTERN = f"the pattern stands behind FROM: {SHAPE}"

# Words that are no names in a pattern, unless they are quoted.
PATTERN_WORDS = {
    "seq": _CHAIN,
    "and": _EITHER_ORDER,
    "or": _UNION,
    "not": _EXCEPTION,
    "as": "an alias stands behind its source: `t S1`",
    "within": "a length of time is a condition in WHERE: `(S1, S2) OCCURS WITHIN 12 hours`",
    "return": "what is returned stands behind SELECT: `SELECT S1.acc FROM …`",
    "output": "every detection is shown; there are no modes of output",
    "pattern": NO_PATTERN,
    "where": NO_PATTERN,
    "into": NO_PATTERN,
}
# Words that may be names, and are none where the parser gives up at them or behind them.
_MISPLACED = {
    **dict.fromkeys(["then", "followed", "next"], _CHAIN),
    **dict.fromkeys(["except", "without", "unless", "minus"], _EXCEPTION),
    "union": _UNION,
    "publish": "INTO makes a stream of the results: `SELECT S1.acc FROM … INTO Alerts`",
}
_SIGNS = {
    **dict.fromkeys("!~¬-−/", _EXCEPTION),
    **dict.fromkeys("&∧", _EITHER_ORDER),
    **dict.fromkeys("|∪∨", _UNION),
    **dict.fromkeys("*?^{⁺", _ITERATION),
    **dict.fromkeys(".=<>≠≤≥[", _CONDITIONS),
    "→": _CHAIN,
    ",": f"put `;` between the events: {_CHAIN}",
}
_ITERATED_SOURCE = re.compile(rf"({NAME})\s*(\+)\s*\Z")


def pattern_advice(place: EqlContext) -> Advice | None:
    if place.brackets and place.word_before[0] == "select" and len(place.clauses) > 1:
        return Advice(place.word_before[1], _NESTED)
    if place.clause != "FROM":
        return None
    return _iteration(place) or _word(place) or _sign(place) or _between_events(place)


def _iteration(place: EqlContext) -> Advice | None:
    """`t+ T1`."""
    source = _ITERATED_SOURCE.search(place.before)
    if source is None or not place.is_word() or place.word.casefold() in PATTERN_WORDS:
        return None
    return Advice(Span(*source.span(2)), f"`+` stands behind the alias: `{source[1]} {place.word}+`")


def _word(place: EqlContext) -> Advice | None:
    """`SEQ(A, B)`, `NOT t A`, `t AS S1`, `t A OR t B`, `t A WITHIN 5`."""
    known = PATTERN_WORDS | _MISPLACED
    for word, span in ((place.word.casefold(), place.span), place.word_before, place.second_word_before):
        if word == "where" and span == place.span:
            return None
        if word in known:
            return Advice(span, place.window if word == "within" else known[word])
    return None


def _sign(place: EqlContext) -> Advice | None:
    """Signs of other pattern languages, and of conditions."""
    start = place.span.start
    if place.text[start : start + 2] in ("->", "=>"):
        return Advice(Span(start, start + 2), _CHAIN)
    if place.word[0] in "|&" and place.before.endswith(place.word[0]):
        return Advice(Span(start - 1, start + 1), _SIGNS[place.word[0]])
    if place.word[0] == "|":
        return None
    hint = _SIGNS.get(place.word[0])
    return None if hint is None else Advice(place.span, hint)


def _between_events(place: EqlContext) -> Advice | None:
    """`t S1 t S2`, `t S1 ; ; t S2`, `t S1 ; t S2 S1.acc = S2.acc`."""
    if "`;`" not in place.expected:
        wanted = "event type" in place.expected and place.word != "@"
        return (
            Advice(place.span, "an event source stands here, or a pattern in parentheses: `t S1`") if wanted else None
        )
    if place.is_word() and re.match(r"\s*[.=<>≠≤≥!]", place.text[place.span.end :]):
        return Advice(place.span, _CONDITIONS)
    if place.is_word() or place.word in "(`":
        return Advice(place.span, f"put `;` or `|` between the events: {_CHAIN}")
    return None
