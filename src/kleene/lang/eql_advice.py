"""Advice for queries of EQL that cannot be parsed: usual mistakes, and what to write instead."""

from __future__ import annotations

import re
from collections.abc import Callable

from kleene.errors import Span
from kleene.lang.advice import Advice, foreign_comparison
from kleene.lang.eql_context import EqlContext

FILTERS = "FILTER(…) stands between commas in WHERE: `FILTER(S1.acc = S2.acc), S1.amount < 100`; an OR stands inside it"
WITHOUT_DELAY = "a query that is built in Python has `.after('5 min')`; `(S1, L) OCCURS WITHIN 5 min` bounds a run"
_SHAPE = "`SELECT * FROM t S1 ; t S2 WHERE …`"
_CHAIN = "events that follow each other are written `t S1 ; t S2`"
_UNION = "one or the other is written `t S1 | t S2`"
_EXCEPTION = r"what must not occur meanwhile stands behind `\`: `(t S1 ; t S2) \ t X`"
_ALIAS = "an alias stands behind its source: `t S1`"
_ITERATION = "one or more is written `t S1+`; there is no other count"
_CONDITIONS = "conditions stand in WHERE: `FROM t S1 ; t S2 WHERE S1.acc = S2.acc`"
_WINDOW = "a length of time is a condition in WHERE: `(S1, S2) OCCURS WITHIN 12 hours`"
_NAMES = "name two events or more in parentheses: `(S1, L) OCCURS WITHIN 12 hours`"
_FIELDS = "name what is selected: `SELECT *`, or `SELECT S1.acc, S2.amount AS large`"
_COMMAS = "conditions are separated by commas, or by AND"
_INTO = "INTO stands at the end: `SELECT S1.acc FROM … WHERE … INTO Alerts`"

# Words that are no names in a pattern, unless they are quoted: those of other pattern languages.
PATTERN_WORDS = {
    "seq": _CHAIN,
    "and": "EQL has no AND between events; either order is `(t A ; t B) | (t B ; t A)`",
    "or": _UNION,
    "not": _EXCEPTION,
    "as": _ALIAS,
    "within": _WINDOW,
    "return": "what is returned stands behind SELECT: `SELECT S1.acc FROM …`",
    "output": "every detection is shown; there are no modes of output",
    "pattern": f"the pattern stands behind FROM: {_SHAPE}",
}
# Words that would be names, were they not where one is expected least.
_OTHER_WORDS = {
    "then": _CHAIN,
    "followed": _CHAIN,
    "next": _CHAIN,
    "union": _UNION,
    "except": _EXCEPTION,
    "without": _EXCEPTION,
    "unless": _EXCEPTION,
    "minus": _EXCEPTION,
    "publish": _INTO,
}
_FOREIGN_CLAUSES = ("group", "order", "having", "limit", "on", "join", "partition")
_WORD = re.compile(r"[^\W\d][\w-]*\Z")
_NAME = r"(?:`[^`\n]+`|[^\W\d][\w-]*)"
_ITERATED_SOURCE = re.compile(rf"({_NAME})\s*\+\s*\Z")
_LAST_ALIAS = re.compile(rf"({_NAME})\s*\+?\s*(?=[;|\\)]|\Z)")


def eql_advice(text: str, span: Span, expected: str) -> Advice:
    """Advice on the usual mistake at this place, or else what the parser would have accepted."""
    place = EqlContext(text, span, expected)
    for rule in _RULES:
        suggestion = rule(place)
        if suggestion is not None:
            return suggestion
    return Advice(span, f"expected {expected}")


def eql_end_advice(text: str, expected: str) -> tuple[str, Advice]:
    """What to say of a text that ends too early: a bracket is open, or something is still to come."""
    end = len(text.rstrip())
    place = EqlContext(text, Span(end, end), expected)
    if place.brackets and not place.before.rstrip().endswith(","):
        at = place.brackets[-1]
        closing = {"{": "}", "(": ")", "[": "]"}[text[at]]
        return f"this `{text[at]}` is never closed", Advice(Span(at, at + 1), f"write `{closing}` where it ends")
    last = Span(max(0, end - 1), end)
    word = place.word_before
    hint = f"expected {expected}"
    if place.before.endswith(","):
        hint = "something stands behind a comma, or there is none"
    elif word[0] == "into":
        last, hint = word[1], "the name of the new stream stands behind it: `INTO Alerts`"
    elif word[0] == "where":
        last, hint = word[1], "conditions stand behind it: `WHERE FILTER(S1.acc = S2.acc), S1.amount < 100`"
    elif word[0] == "from" or place.clause in ("", "SELECT"):
        last, hint = (word[1] if word[0] else last), f"the pattern stands behind FROM: {_SHAPE}"
    elif word[0] in ("occurs", "within"):
        last, hint = word[1], _NAMES
    return "the query ends too early", Advice(last, hint)


# SELECT --------------------------------------------------------------------------------------------------------------


def _nothing_selected(place: EqlContext) -> Advice | None:
    """`SELECT FROM t`, `SELECT a, FROM t`: the parser takes FROM for a name."""
    if len(place.clauses) < 2 or place.clause != "FROM":
        return None
    before = place.text[: place.clauses[-1].start()].rstrip()
    if place.clauses[-2]["clause"].casefold() != "select":
        return None
    if before.endswith(","):
        return Advice(Span(len(before) - 1, len(before)), "leave out the comma before FROM")
    if before.endswith("%"):
        at = len(before) - 1
        return Advice(Span(at, at + 1), "before FROM a percentage stands in parentheses: `(20%)`")
    if len(before) == place.clauses[-2].end():
        return Advice(Span(*place.clauses[-1].span()), _FIELDS)
    return None


def _selection(place: EqlContext) -> Advice | None:
    """`SELECT *, S1.x`, `SELECT S1.*`, `SELECT x INTO S FROM`, `SELECT x y FROM`, and SELECT without FROM."""
    if place.clause != "SELECT":
        return None
    since = place.since.strip()
    if since == "*" and place.word == ",":
        return Advice(place.span, "`*` is every field, and stands alone")
    if place.word == "*" or (place.word == "," and not since):
        return Advice(place.span, _FIELDS)
    if place.word.casefold() == "into":
        return Advice(place.span, _INTO)
    if "FROM" not in place.expected or place.brackets:
        return None
    named = (
        _WORD.match(place.word) and since != "*" and re.search(r"\bfrom\b", place.text[place.span.end :], re.IGNORECASE)
    )
    if named and place.word.casefold() not in ("where", "form"):
        return Advice(place.span, "a name of its own stands behind AS: `S1.amount AS small`")
    return Advice(place.span, f"the pattern stands behind FROM: {_SHAPE}")


# FROM ----------------------------------------------------------------------------------------------------------------


def _word_of_patterns(place: EqlContext) -> Advice | None:
    """`SEQ(A, B)`, `NOT t A`, `t AS S1`, `t A OR t B`, `t A WITHIN 5`."""
    if place.clause != "FROM":
        return None
    known = PATTERN_WORDS | _OTHER_WORDS
    if place.word.casefold() in known:
        return Advice(place.span, known[place.word.casefold()])
    word, span = place.word_before
    if word == "within":
        return Advice(span, _window(place))
    return Advice(span, known[word]) if word in known else None


def _foreign_sign(place: EqlContext) -> Advice | None:
    """Signs of other pattern languages in FROM."""
    if place.clause != "FROM":
        return None
    start, word = place.span.start, place.word
    if place.text[start : start + 2] in ("->", "=>") or word == "→":
        return Advice(Span(start, start + (1 if word == "→" else 2)), _CHAIN)
    if word[0] in "!~¬":
        return Advice(place.span, _EXCEPTION)
    if word[0] in "&∧":
        return Advice(place.span, PATTERN_WORDS["and"])
    if word[0] in "|∪∨" and place.before.rstrip().endswith("|"):
        return Advice(place.span, _UNION)
    if word[0] in "∪∨":
        return Advice(place.span, _UNION)
    if word[0] in "-−/":
        return Advice(place.span, _EXCEPTION)
    if word[0] in "*?^{":
        return Advice(place.span, _ITERATION)
    if word[0] in ".=<>≠≤≥[":
        return Advice(place.span, _CONDITIONS)
    return None


def _iteration(place: EqlContext) -> Advice | None:
    """`t+ T1`."""
    source = _ITERATED_SOURCE.search(place.before)
    if place.clause != "FROM" or source is None or not _WORD.match(place.word) or place.word.casefold() == "where":
        return None
    at = place.before.rindex("+")
    return Advice(Span(at, at + 1), f"`+` stands behind the alias: `{source[1]} {place.word}+`")


def _between_events(place: EqlContext) -> Advice | None:
    """`t S1, t S2`, `t S1 t S2`, `t S1 ; ; t S2`."""
    if place.clause != "FROM" or place.word.casefold() in ("where", "into", "from", "select", *_FOREIGN_CLAUSES):
        return None
    if place.word == ",":
        return Advice(place.span, f"put `;` between the events: {_CHAIN}")
    if "`;`" in place.expected and (_WORD.match(place.word) or place.word in "(`"):
        return Advice(place.span, f"put `;` or `|` between the events: {_CHAIN}")
    return None


# WHERE ---------------------------------------------------------------------------------------------------------------


def _conditions(place: EqlContext) -> Advice | None:
    """`p ; q`, `p q`, `FILTER p`, `p, INTO S`, `&&`, LIKE."""
    if place.clause == "INTO" and re.search(r",\s*into\s*\Z", place.before, re.IGNORECASE):
        at = place.text.rindex(",", 0, place.clauses[-1].start())
        return Advice(Span(at, at + 1), "leave out the comma before INTO")
    if place.clause != "WHERE":
        return None
    if place.word == ";":
        return Advice(place.span, f"{_COMMAS}; `;` stands between events")
    if place.word_before[0] == "filter":
        return Advice(place.span, "what FILTER tests stands in parentheses: `FILTER(S1.acc = S2.acc)`")
    if re.search(r"\bfilter\s*\(\s*\Z", place.before, re.IGNORECASE) and place.word == ")":
        return Advice(place.span, "a condition stands in FILTER: `FILTER(S1.acc = S2.acc)`")
    if place.word == "," or (place.word.casefold() == "into" and place.before.rstrip().endswith(",")):
        return Advice(place.span, "a condition stands before each comma, and behind it")
    return foreign_comparison(place)


def _occurs_within(place: EqlContext) -> Advice | None:
    """`S1, L OCCURS WITHIN 5`, `(S1, L) WITHIN 5`, `… WITHIN 5` as a clause, `OCCURS WITHIN '5 min'`."""
    word = place.word.casefold()
    before, span = place.word_before
    if before == "within" and place.word[0] in "'\"‘“":
        return Advice(place.span, f"a length of time has no quotes: `{place.word[1:-1].strip() or '12 hours'}`")
    if before == "occurs" or (word == "within" and "OCCURS" in place.expected):
        return Advice(place.span, "write OCCURS WITHIN: `(S1, L) OCCURS WITHIN 12 hours`")
    if word == "occurs" or (before == "occurs" and word != "within"):
        return Advice(place.span, _NAMES)
    if re.search(r"\boccurs\s+within\s*\Z", place.before, re.IGNORECASE):
        return Advice(place.span, "a length of time stands behind WITHIN: `12 hours`, `10 msec`, `:limit hours`")
    if word == "within":
        return Advice(place.span, _window(place))
    if before == "within" and place.clause in ("FROM", "WHERE"):
        return Advice(span, _window(place))
    if "OCCURS" in place.expected:
        return Advice(place.span, _NAMES)
    inside = place.brackets and re.fullmatch(
        rf"\(\s*{_NAME}(?:\s*\.\s*{_NAME})?\s*", place.before[place.brackets[-1] :]
    )
    if place.word in ",;." and inside and place.clause == "WHERE":
        return Advice(place.span, f"a list of names is a condition of time only: {_NAMES}")
    return None


def _window(place: EqlContext) -> str:
    """The condition that bounds the pattern as it is written, from its first name to its last."""
    pattern = re.search(r"\bfrom\b(.*?)(?=\bwhere\b|\bwithin\b|\Z)", place.text, re.IGNORECASE | re.DOTALL)
    names = [] if pattern is None else _LAST_ALIAS.findall(pattern[1])
    amount = re.match(
        r"\s*(?:within\b)?\s*(\d+(?:\.\d+)?(?:\s*[^\W\d]\w*)?)", place.text[place.span.start :], re.IGNORECASE
    )
    first, last = (names[0], names[-1]) if len(set(names)) > 1 else ("S1", "S2")
    shown = "12 hours" if amount is None else " ".join(amount[1].split())
    return f"a length of time is a condition in WHERE: `({first}, {last}) OCCURS WITHIN {shown}`"


# Between clauses -----------------------------------------------------------------------------------------------------


def _missing_parenthesis(place: EqlContext) -> Advice | None:
    """`FROM ( t S1 ; t S2 WHERE …`, `FILTER(a = b, c = d`."""
    if place.word == ")" and not place.brackets:
        return Advice(place.span, "nothing is open that `)` could close")
    if place.brackets and "`)`" in place.expected and place.word.casefold() in ("where", "into", "from"):
        return Advice(place.span, "is a `)` missing before it?")
    return None


def _clause_order(place: EqlContext) -> Advice | None:
    """Clauses in another order, twice, or of another language."""
    word = place.word.casefold()
    if word in _FOREIGN_CLAUSES and place.clause in ("FROM", "WHERE"):
        return Advice(place.span, f"a query has SELECT, FROM, WHERE and INTO, and no {place.word.upper()}")
    if place.clause == "INTO" and word in ("where", ","):
        return Advice(place.span, _INTO)
    if place.clause == "INTO" and "event type" in place.expected:
        return Advice(place.span, "the name of the new stream stands behind it: `INTO Alerts`")
    if word in ("select", "from", "where", "into") and place.clause in ("FROM", "WHERE") and not place.brackets:
        if not place.since.strip():
            missing = "pattern" if place.clause == "FROM" else "condition"
            return Advice(place.span, f"a {missing} stands behind {place.clause}: {_SHAPE}")
        if word != "into":
            return Advice(place.span, "the clauses come in this order: SELECT, FROM, WHERE, INTO")
    if word in ("return", "output", "timeouts") and place.clause == "WHERE":
        return Advice(place.span, PATTERN_WORDS.get(word, "a query has SELECT, FROM, WHERE and INTO"))
    return None


_RULES: tuple[Callable[[EqlContext], Advice | None], ...] = (
    _nothing_selected,
    _missing_parenthesis,
    _clause_order,
    _selection,
    _iteration,
    _word_of_patterns,
    _foreign_sign,
    _occurs_within,
    _conditions,
    _between_events,
)
