"""Advice for queries of EQL that cannot be parsed: usual mistakes, and what to write instead."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

from kleene.errors import Span
from kleene.lang.advice import Advice, foreign_comparison
from kleene.lang.eql_context import NAME, EqlContext, PartContext
from kleene.lang.eql_pattern_advice import NO_PATTERN, pattern_advice

FILTERS = "FILTER(…) stands between commas in WHERE: `FILTER(S1.acc = S2.acc), S1.amount < 100`; an OR stands inside it"
WITHOUT_DELAY = "a query that is built in Python has `.after('5 min')`; `(S1, L) OCCURS WITHIN 5 min` bounds a run"
_NAMES = "name two events or more in parentheses: `(S1, L) OCCURS WITHIN 12 hours`"
_LENGTH = "a length of time stands behind WITHIN: `12 hours`, `10 msec`, `:limit hours`"
_FIELDS = "name what is selected: `SELECT *`, or `SELECT S1.acc, S2.amount AS large`"
_CONDITIONS = "conditions stand behind it: `WHERE FILTER(S1.acc = S2.acc), S1.amount < 100`"
_COMMAS = "conditions are separated by commas, or by AND"
_INTO = "INTO stands at the end: `SELECT S1.acc FROM … WHERE … INTO Alerts`"
_STREAM = "the name of the new stream stands behind it: `INTO Alerts`"
_ORDER = ["SELECT", "FROM", "WHERE", "INTO"]
_ONCE = f"the clauses are {', '.join(_ORDER)}, in this order, once each"
_FOREIGN_CLAUSES = frozenset(["group", "order", "having", "limit", "on", "join", "partition", "timeouts"])


def eql_advice(text: str, span: Span, expected: str) -> Advice:
    """Advice on the usual mistake at this place, or else what the parser would have accepted."""
    place = EqlContext(text, span, expected)
    for rule in _RULES:
        suggestion = rule(place)
        if suggestion is not None:
            return suggestion
    return Advice(span, f"expected {expected}")


def eql_part_advice(clause: str, called: str, text: str, span: Span, expected: str) -> Advice:
    """Advice on a part of a clause that stands by itself, and what it is called."""
    place = PartContext(text, span, expected, clause)
    for rule in _PART_RULES:
        suggestion = rule(place)
        if suggestion is not None:
            return suggestion
    # The signs that go on with the rest of a query tell nothing here.
    ends = any(word in expected for word in (*_ORDER, "the end of the query"))
    return Advice(span, f"expected the end of the {called}" if ends else f"expected {expected}")


def eql_end_advice(text: str, expected: str) -> tuple[str, Advice]:
    """What to say of a text that ends too early: a bracket is open, or something is still to come."""
    end = len(text.rstrip())
    place = EqlContext(text, Span(end, end), expected)
    wrong = _empty_clause(place)
    if wrong is not None:
        return f"unexpected `{text[wrong.span.start : wrong.span.end]}`", wrong
    if place.brackets and not place.before.endswith((",", ";")):
        at = place.brackets[-1]
        closing = {"{": "}", "(": ")", "[": "]"}[text[at]]
        return f"this `{text[at]}` is never closed", Advice(Span(at, at + 1), f"write `{closing}` where it ends")
    word, span = place.word_before
    hints = {"into": _STREAM, "where": _CONDITIONS, "from": NO_PATTERN, "occurs": _NAMES, "within": _LENGTH}
    if word in hints:
        return "the query ends too early", Advice(span, hints[word])
    hint = f"expected {expected}"
    if place.before.endswith(","):
        hint = "something stands behind a comma, or there is none"
    elif place.clause in ("", "SELECT"):
        hint = NO_PATTERN
    elif "OCCURS" in expected:
        hint = _NAMES
    elif place.clause == "FROM" and "event type" in expected:
        hint = "an event source stands behind it: `t S1 ; t S2`"
    return "the query ends too early", Advice(Span(max(0, end - 1), end), hint)


# Clauses -------------------------------------------------------------------------------------------------------------


def _empty_clause(place: EqlContext) -> Advice | None:
    """`SELECT FROM t`, `FROM WHERE …`, `WHERE INTO S`, and commas before the next clause: it was taken for a name."""
    for first, second in pairwise(place.clauses[-2:]):
        between = place.text[first.span.end : second.span.start]
        last = first.span.end + len(between.rstrip())
        if between.rstrip().endswith(","):
            return Advice(Span(last - 1, last), f"leave out the comma before {second.word}")
        if (first.word, second.word) == ("SELECT", "FROM") and between.rstrip().endswith("%"):
            return Advice(Span(last - 1, last), "before FROM a percentage stands in parentheses: `(20%)`")
        if (first.word, second.word) == ("SELECT", "FROM") and re.search(r"(?<![\w.])as\s*\Z", between, re.IGNORECASE):
            return Advice(Span(last - 2, last), "a name stands behind AS: `S1.amount AS small`")
        if not between.strip() and first.word != second.word:
            hints = {"SELECT": _FIELDS, "FROM": NO_PATTERN, "WHERE": _CONDITIONS, "INTO": _STREAM}
            at = second.span if first.word == "SELECT" else first.span
            return Advice(at, hints[first.word])
    return None


def _clause_order(place: EqlContext) -> Advice | None:
    """Clauses in another order, twice, or of another language."""
    word = place.word.casefold()
    for first, second in pairwise(place.clauses[-2:]):
        if _ORDER.index(first.word) >= _ORDER.index(second.word) and not place.brackets:
            return Advice(second.span, _INTO if first.word == "INTO" else _ONCE)
    if place.clause == "INTO" and word.upper() in _ORDER:
        return Advice(place.span, _INTO)
    if place.clause == "INTO" and "event type" in place.expected:
        return Advice(place.span, _STREAM)
    if word.upper() in _ORDER[:3] and place.clause in ("FROM", "WHERE") and not place.brackets:
        if place.clause == "FROM" and not place.since.strip():
            return Advice(place.span, NO_PATTERN)
        return Advice(place.span, _ONCE)
    for foreign, span in ((word, place.span), place.word_before):
        if foreign in _FOREIGN_CLAUSES and place.clause in ("FROM", "WHERE"):
            return Advice(span, f"a query has SELECT, FROM, WHERE and INTO, and no {foreign.upper()}")
    if word == "return" and place.clause == "WHERE":
        return Advice(place.span, "what is returned stands behind SELECT: `SELECT S1.acc FROM …`")
    return None


def _parentheses(place: EqlContext) -> Advice | None:
    """`FROM ( t S1 ; t S2 WHERE …`, `FROM t S1 ; t S2 ) WHERE …`."""
    if place.word == ")" and not place.brackets:
        return Advice(place.span, "nothing is open that `)` could close")
    if place.brackets and "`)`" in place.expected and place.word.upper() in _ORDER[1:]:
        return Advice(place.span, "is a `)` missing before it?")
    return None


def _selection(place: EqlContext) -> Advice | None:
    """`SELECT *, S1.x`, `SELECT S1.*`, `SELECT x INTO S FROM`, `SELECT x y FROM`, and SELECT without FROM."""
    if place.clause != "SELECT" or place.brackets:
        return None
    since = place.since.strip()
    if since == "*" and place.word == ",":
        return Advice(place.span, "`*` is every field, and stands alone")
    if place.word in "*," and "FROM" not in place.expected:
        return Advice(place.span, _FIELDS)
    if place.word.casefold() == "into":
        return Advice(place.span, _INTO)
    if "FROM" not in place.expected:
        return None
    if since.casefold() == "distinct":
        return Advice(place.word_before[1], "there is no DISTINCT: every detection is a result of its own")
    rest = place.text[place.span.end :]
    if place.is_word() and since != "*" and re.match(r"\s*(?:,|from\b)", rest, re.IGNORECASE):
        return Advice(place.span, "a name of its own stands behind AS: `S1.amount AS small`")
    return Advice(place.span, NO_PATTERN)


# WHERE ---------------------------------------------------------------------------------------------------------------


def _occurs_within(place: EqlContext) -> Advice | None:
    """`S1, L OCCURS WITHIN 5`, `(S1, L) WITHIN 5`, `… WITHIN 5` as a clause, `OCCURS WITHIN '5 min'`."""
    if place.clause != "WHERE":
        return None
    word = place.word.casefold()
    before, span = place.word_before
    if before == "within" and place.word[0] in "'\"‘“":
        return Advice(place.span, f"a length of time has no quotes: `{place.word[1:-1].strip() or '12 hours'}`")
    if re.search(r"\boccurs\s+within\s*\Z", place.before, re.IGNORECASE):
        return Advice(place.span, _LENGTH)
    if before == "occurs" or (word == "within" and "OCCURS" in place.expected):
        return Advice(place.span, "write OCCURS WITHIN: `(S1, L) OCCURS WITHIN 12 hours`")
    if word == "occurs" or "OCCURS" in place.expected:
        return Advice(place.span, _NAMES)
    if "within" in (word, before):
        return Advice(place.span if word == "within" else span, place.window)
    listed = place.brackets and re.fullmatch(
        rf"\(\s*{NAME}(?:\s*[,.]\s*{NAME})*\s*", place.before[place.brackets[-1] :]
    )
    return Advice(place.span, _NAMES) if listed and place.word in (",", ";", ".") else None


def _conditions(place: EqlContext) -> Advice | None:
    """`p ; q`, `p q`, `p, , q`, `FILTER p`, `FILTER()`, `&&`, LIKE."""
    if place.clause != "WHERE":
        return None
    if place.word == ";":
        return Advice(place.span, f"{_COMMAS}; `;` stands between events")
    if place.word_before[0] == "filter":
        return Advice(place.span, "what FILTER tests stands in parentheses: `FILTER(S1.acc = S2.acc)`")
    if re.search(r"\bfilter\s*\(\s*\Z", place.before, re.IGNORECASE) and place.word == ")":
        return Advice(place.span, "a condition stands in FILTER: `FILTER(S1.acc = S2.acc)`")
    if place.word == "," and not place.brackets:
        return Advice(place.span, "a condition stands before each comma, and behind it")
    comparison = foreign_comparison(place)
    if comparison is not None or "AND" not in place.expected:
        return comparison
    if place.is_word() or place.word[0].isdigit() or place.word in "('\"`":
        return Advice(place.span, _COMMAS)
    if place.word == "." and re.search(r"\d\s*\Z", place.text[: place.word_before[1].start]):
        return Advice(place.word_before[1], _COMMAS)
    return None


_RULES: tuple[Callable[[EqlContext], Advice | None], ...] = (
    _empty_clause,
    _parentheses,
    _clause_order,
    pattern_advice,
    _selection,
    _occurs_within,
    _conditions,
)
_PART_RULES: tuple[Callable[[EqlContext], Advice | None], ...] = (_parentheses, _occurs_within, _conditions)
