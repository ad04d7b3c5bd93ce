"""Advice for expressions of streams that cannot be parsed: usual mistakes, and what to write instead."""

from __future__ import annotations

import re
from collections.abc import Callable

from kleene.errors import Span
from kleene.lang.advice import Advice, ErrorContext, foreign_comparison
from kleene.lang.stream_context import FORMS, OPERATION, SIGNS, StreamContext, mark_before, open_brackets

# What other languages call these operations.
_FOREIGN = {
    **dict.fromkeys(["filter", "where", "having", "sigma"], "σ"),
    **dict.fromkeys(["keep", "pi", "attributes"], "π"),
    **dict.fromkeys(["rho", "as"], "ρ"),
    **dict.fromkeys(["map", "extend", "let", "with", "alpha", "introduce", "aggregate"], "α"),
    **dict.fromkeys(["mu", "iterate", "repeat", "loop", "reduce"], "μ"),
}
_VERBS = {"σ": "tests", "π": "keeps", "ρ": "renames", "α": "computes"}
_SEQUENCE = "a sequence of streams is written `A a ; B b`"
_UNION = "a union is written `A ∪ B`, or `A union B`"
# What a clause of a pattern is in the algebra.
CLAUSES = {
    "where": "conditions stand in `σ{…}(…)`, or in `;{…}`",
    "within": "bound how long a result lasts: `σ{DUR <= 10}(…)`, or `DUR <= 10` in `;{…}`",
    "return": "`π{…}(…)` chooses attributes, `publish S` makes a stream of the results",
    "into": "`publish S` makes a stream of the results",
    "as": "`publish S` makes a stream of the results; an id stands after the type: `Stock S1`",
    "output": "every result of an expression is shown",
    "timeouts": "only a pattern has timeouts",
    "pattern": "a query is a pattern or an expression of streams; `publish` lets one read the other",
    "event": "a query is a pattern or an expression of streams; `publish` lets one read the other",
    "seq": _SEQUENCE,
}
# An operation that was read as a stream, because no brace follows it; and perhaps its id.
_BARE = re.compile(rf"(?:^|[\s(,;∪∘])(?P<mark>{OPERATION})(?:_\w*)?(?:\s+\w+)?\s*\Z", re.IGNORECASE)
# `(price > 1)(S)`, `price > 1 (S)`, `[price > 1](S)`: what was meant to stand in braces, and the stream.
_MEANT = re.compile(r"\s*_?[(\[<]?(?P<inner>[^(){}\[\]]+?)[)\]>]?\s*(?P<stream>\([^(){}]*\))")
_NAME = re.compile(r"[^\W\d][\w-]*\Z")
_LAST_WORD = re.compile(r"([^\W\d][\w-]*)\s*\Z")


def stream_advice(text: str, span: Span, expected: str) -> Advice:
    """Advice on the usual mistake at this place, or else what the parser would have accepted."""
    place = StreamContext(text, span, expected)
    for rule in _RULES:
        suggestion = rule(place)
        if suggestion is not None:
            return suggestion
    return Advice(span, f"expected {expected}")


def end_advice(text: str, expected: str) -> tuple[str, Advice]:
    """What to say of a text that ends too early: a bracket is open, or something is still to come."""
    end = len(text.rstrip())
    brackets = open_brackets(text)
    if not brackets:
        hint = f"expected {expected}"
        if re.search(r"\bpublish\s*\Z", text, re.IGNORECASE):
            hint = "the name of the new stream stands behind `publish`"
        elif "`∘`" in expected:
            hint = "the stream that it is applied to stands in parentheses: `σ{price > 5}(S)`"
        return "the query ends too early", Advice(Span(max(0, end - 1), end), hint)
    at = brackets[-1]
    closing = {"{": "}", "(": ")", "[": "]"}[text[at]]
    sign = mark_before(text[:at])
    form = FORMS.get(sign, ";{A.x = B.x} B" if sign == ";" and text[at] == "{" else "")
    hint = f"write `{closing}` where it ends" + (f": `{form}`" if form else "")
    return f"this `{text[at]}` is never closed", Advice(Span(at, at + 1), hint)


def part_advice(part: str, text: str, span: Span, expected: str) -> Advice:
    """Advice on a condition, a value or an attribute that stands by itself."""
    place = ErrorContext(text, span, expected)
    comparison = foreign_comparison(place)
    if comparison is not None:
        return comparison
    if part == "attribute":
        return Advice(span, "one attribute is wanted, such as `price` or `S1.price`; give others by themselves")
    if part == "value" and re.match(r"[=<>≠≤≥!]", place.word):
        return Advice(span, "a value is wanted, and this is a condition")
    return Advice(span, f"expected {expected.replace('the end of the query', f'the end of the {part}')}")


def part_end(part: str, text: str, expected: str) -> tuple[str, Advice]:
    end = len(text.rstrip())
    return f"the {part} ends too early", Advice(Span(max(0, end - 1), end), f"expected {expected}")


# In braces -----------------------------------------------------------------------------------------------------------


def _arrow(place: StreamContext) -> Advice | None:
    """`ρ{price = old}`, `ρ{price, old}`, `α{n := n + 1}`, `init x = 5`."""
    if "`↦`" not in place.expected and not re.search(r"\binit\s+\Z", place.before, re.IGNORECASE):
        return None
    start = place.span.start
    sign = re.match(r"=>|:=|==|=|:|→|as\b|to\b|,", place.text[start:], re.IGNORECASE)
    if place.inside == "μ":
        return Advice(place.span, "a first value is written `init x ↦ y`, or `init x -> y`")
    if sign is None and place.inside == "α":
        return Advice(place.span, "α names what it assigns: `α{n ↦ n + 1}`, or `n -> n + 1`")
    if sign is None:
        return None
    span = Span(start, start + len(sign[0]))
    form = FORMS.get(place.inside, "ρ{price ↦ old}(S)")
    return Advice(span, f"write `↦`, or `->`: `{form}`")


def _in_braces(place: StreamContext) -> Advice | None:
    """What the braces of each operation may hold."""
    sign, word = place.inside, place.word
    if not sign:
        return None
    empty = word == "}" and not place.since.strip()
    if sign == "π" and empty:
        return Advice(place.span, "name at least one attribute: `π{name, price}(S)`")
    if sign == "π" and word == "*":
        return Advice(place.span, "without π every attribute is kept")
    if sign == "π" and word in "+-/%(":
        return Advice(place.span, "π only keeps attributes; compute them before: `π{n} ∘ α{n ↦ price + 1}(S)`")
    if sign == "α" and word in "},":
        return Advice(place.span, "a value stands behind `↦`: `α{n ↦ n + 1}(S)`")
    if sign == "ρ" and "`(`" in place.expected:
        return Advice(place.span, "as many new names stand in parentheses: `ρ{(name, price) ↦ (company, maxP)}`")
    if sign == "ρ" and word == ".":
        return Advice(place.span, "a new name belongs to no stream: `ρ{S1.price ↦ old}`")
    if sign == "α" and re.match(r"[=<>≠≤≥!]", word):
        return Advice(place.span, "α assigns values, and this is a condition: test it with `σ{…}(…)`")
    if sign == "μ" and (word == ";" or empty):
        return Advice(place.span, "a fold has a step, a condition, or both: `μ{σ{…}, S1.id = S2.id}(S1, S2)`")
    if sign in ("σ", ";") and empty:
        without = "`A ; B` has no condition" if sign == ";" else "without one it is the stream itself"
        return Advice(place.span, f"a condition stands in the braces; {without}")
    if sign in ("σ", ";") and word == ",":
        return Advice(place.span, "join conditions with AND")
    return None


def _missing_brace(place: StreamContext) -> Advice | None:
    """`σ{price > 1(S)`, `A ;{A.x = B.x B`."""
    if place.inside not in FORMS.keys() | {";"} or "`}`" not in place.expected:
        return None
    if place.word == "(" or (place.inside == ";" and _NAME.match(place.word)):
        form = ";{A.x = B.x} B" if place.inside == ";" else FORMS[place.inside]
        blank = " " if place.inside == ";" else ""
        written = f"{place.inside}{{{place.since.strip()}}}{blank}{place.text[place.span.start :].strip()}"
        return Advice(place.span, f"is a `}}` missing before it? `{_shown(written, form)}`")
    return None


def _comparison(place: StreamContext) -> Advice | None:
    """`&&`, `||` and LIKE in conditions."""
    return foreign_comparison(place) if place.inside else None


# Operations ----------------------------------------------------------------------------------------------------------


def _operation_without_braces(place: StreamContext) -> Advice | None:
    """`σ(price > 1)(S)`, `select price > 1 (S)`, `π name, price (S)`, `σ_θ(S)`."""
    operation = _BARE.search(place.before)
    if operation is None or place.inside:
        return None
    sign = SIGNS[operation["mark"].casefold()]
    if sign == "μ":
        return Advice(place.span, f"the streams of μ stand in parentheses: `{FORMS[sign]}`")
    meant = _MEANT.match(place.text, operation.end("mark"))
    form = FORMS[sign] if meant is None else f"{operation['mark']}{{{meant['inner'].strip()}}}{meant['stream']}"
    return Advice(place.span, f"what {sign} {_VERBS[sign]} stands in braces: `{_shown(form, FORMS[sign])}`")


def _unknown_operation(place: StreamContext) -> Advice | None:
    """`filter{x > 1}(S)`, `union(A, B)`, `SEQ(A a, B b)`."""
    named = _LAST_WORD.search(place.before)
    if named is None or place.inside or place.word not in ("(", "{"):
        return None
    word = named[1].casefold()
    span = Span(named.start(1), named.end(1))
    if word in ("union", "u"):
        return Advice(span, _UNION)
    if word in ("seq", "next", "then"):
        return Advice(span, _SEQUENCE)
    if word in _FOREIGN:
        return Advice(span, f"that is `{FORMS[_FOREIGN[word]]}` here")
    names = ", ".join(f"{sign} ({name})" for name, sign in SIGNS.items() if len(name) > 1)
    return Advice(span, f"the operations are {names}, `∪` and `;`")


def _chain(place: StreamContext) -> Advice | None:
    """`σ{x > 1} S`, `σ{x > 1} π{x}(S)`, `σ{x > 1}.π{x}(S)`."""
    if not place.before.rstrip().endswith("}") or "`∘`" not in place.expected or place.inside == "μ":
        return None
    if place.word.casefold() in SIGNS or place.word in (".", "|", "·"):
        return Advice(place.span, "join operations with `∘`, or `of`: `σ{price > 5} ∘ π{price}(S)`")
    return Advice(place.span, "the stream that it is applied to stands in parentheses: `σ{price > 5}(S)`")


def _streams_of_fold(place: StreamContext) -> Advice | None:
    """`μ(S1)`, `μ{…}(A ; B)`, `μ(A, B, C)`."""
    if place.opened != ("(", "μ") or place.word not in (")", ","):
        return None
    return Advice(place.span, "μ has two streams, a comma between them: `μ{σ{…}, condition}(S1, S2)`")


# Between streams -----------------------------------------------------------------------------------------------------


def _clause(place: StreamContext) -> Advice | None:
    hint = CLAUSES.get(place.word.casefold())
    return None if hint is None or place.inside else Advice(place.span, hint)


def _publish(place: StreamContext) -> Advice | None:
    if not re.search(r"\bpublish\s*\Z", place.before, re.IGNORECASE):
        return None
    return Advice(place.span, "the name of the new stream stands behind it: `publish S`")


def _condition_without_braces(place: StreamContext) -> Advice | None:
    """`A ;(A.x = B.x) B`, `A ;[A.x = B.x] B`, `A ;_θ B`."""
    hint = "the condition of `;` stands in braces: `A ;{A.x = B.x} B`"
    if place.word == ";" and place.text[place.span.end : place.span.end + 1] == "_":
        return Advice(place.span, hint)
    if place.word == "[" and re.search(r"(?:;|\bnext)\s*\Z", place.before, re.IGNORECASE):
        return Advice(place.span, hint)
    if place.opened == ("(", ";") and (place.word == "." or re.match(r"[=<>≠≤≥]", place.word)):
        return Advice(place.span, hint)
    return None


def _foreign_sign(place: StreamContext) -> Advice | None:
    """Signs of patterns, of other algebras and of other languages between streams."""
    if place.inside:
        return None
    start, word = place.span.start, place.word
    if place.text[start : start + 2] in ("->", "=>") or word == "→":
        return Advice(Span(start, start + (1 if word == "→" else 2)), _SEQUENCE)
    if word[0] == "|":
        return Advice(Span(start, start + (2 if place.text[start : start + 2] == "||" else 1)), _UNION)
    if word[0] in "!~¬":
        return Advice(place.span, "streams have no negation; a pattern has: `PATTERN A a ; !B b ; C c`")
    if word[0] in "&+*?^":
        return Advice(place.span, "streams have `∪`, `;` and μ; `&`, `A+` and `A?` belong to patterns: `PATTERN …`")
    if word[0] in "-−\\∩×⋈":
        return Advice(place.span, "the algebra has `∪`, `;` and μ, and no other sign between streams")
    return None


def _separator(place: StreamContext) -> Advice | None:
    """`A U B`, `A a B b`, `A a, B b`, `publish S A ; B`."""
    if place.inside or "`;`" not in place.expected:
        return None
    if re.match(r"\s*publish\b", place.before, re.IGNORECASE):
        return Advice(place.span, "`publish S` stands at the end: `A ; B publish S`")
    named = _LAST_WORD.search(place.before)
    if named is not None and named[1] in "Uu":
        return Advice(Span(named.start(1), named.end(1)), _UNION)
    if named is not None and named[1].casefold() in CLAUSES:
        return Advice(Span(named.start(1), named.end(1)), CLAUSES[named[1].casefold()])
    if place.word == "," or _NAME.match(place.word):
        return Advice(place.span, "put `;` or `∪` between the streams: `A a ; B b`, `A ∪ B`")
    if place.word in (")", "}"):
        return Advice(place.span, f"nothing is open that `{place.word}` could close")
    return None


def _shown(text: str, otherwise: str) -> str:
    """What was written, put right, where that is short; or the general form."""
    return text if len(text) <= 60 and text.isprintable() else otherwise


_RULES: tuple[Callable[[StreamContext], Advice | None], ...] = (
    _arrow,
    _in_braces,
    _missing_brace,
    _comparison,
    _clause,
    _publish,
    _condition_without_braces,
    _operation_without_braces,
    _unknown_operation,
    _chain,
    _streams_of_fold,
    _foreign_sign,
    _separator,
)
