"""The registry of spellings: each recognises its own texts and parses them, into a pattern or a stream."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

from kleene.errors import QueryError, Span, UnknownSpelling, did_you_mean
from kleene.lang import cesar_spelling, eql_spelling, eql_tree, main_spelling, stream_tree, tree
from kleene.lang.characters import check_characters

# A pattern, or an expression of streams: CESAR's, or EQL's.
ParsedQuery = tree.Query | stream_tree.StreamQuery | eql_tree.EqlQuery


@dataclass(frozen=True, slots=True)
class Spelling:
    name: str
    recognises: Callable[[str], bool]
    parse: Callable[[str], ParsedQuery]


_REGISTRY: dict[str, Spelling] = {}


def register(spelling: Spelling) -> None:
    """Add a spelling; later ones are asked first, so that a narrower spelling can take its texts."""
    _REGISTRY[spelling.name] = spelling
    parse.cache_clear()


def spellings() -> tuple[str, ...]:
    return tuple(_REGISTRY)


def recognise(text: str) -> str | None:
    """The name of the spelling that a text is written in."""
    for spelling in reversed(_REGISTRY.values()):
        if spelling.recognises(text):
            return spelling.name
    return None


@lru_cache(maxsize=4096)
def parse(text: str, spelling: str | None = None) -> ParsedQuery:
    """Parse a query; without a spelling, the text says which one it is in.

    >>> parse("PATTERN A a ; B b WITHIN 5").within.duration.terms[0].unit
    'ticks'
    """
    check_characters(text)
    name = spelling or recognise(text)
    if name is None:
        error = UnknownSpelling(
            "this text is no query that Kleene can read",
            Span(0, max(1, len(text.split(maxsplit=1)[0]) if text.strip() else 1)),
            hint=_beginning(text),
        )
        error.locate(text)
        raise error
    if name not in _REGISTRY:
        raise UnknownSpelling(f"unknown spelling `{name}`", hint=did_you_mean(name, _REGISTRY))
    return _REGISTRY[name].parse(text)


def _beginning(text: str) -> str:
    """How a query begins; of what would be a pattern if its first word were there, that it is missing."""
    shown = " ".join(text.split())
    with suppress(QueryError):
        main_spelling.parse(f"PATTERN {text}")
        return f"a pattern begins with PATTERN: `PATTERN {shown if len(shown) <= 60 else '…'}`"
    if shown.casefold().startswith("select"):
        return "a query of EQL says where its events come from: `SELECT * FROM t S1 ; t S2 WHERE …`"
    return "a query begins with PATTERN, EVENT or SELECT, or it is an expression of streams: `σ{…}(A a ; B b)`"


register(Spelling("kleene", main_spelling.recognises, main_spelling.parse))
register(Spelling("cesar", cesar_spelling.recognises, cesar_spelling.parse))
# EQL with `@`, as queries that are built in Python travel; no text is taken for it.
register(Spelling("next", lambda _: False, eql_spelling.parse_delayed))
register(Spelling("eql", eql_spelling.recognises, eql_spelling.parse))
