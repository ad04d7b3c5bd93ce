"""The registry of spellings: each recognises its own texts and parses them into the one syntax tree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from kleene.errors import Span, UnknownSpelling, did_you_mean
from kleene.lang import main_spelling, tree
from kleene.lang.characters import check_characters


@dataclass(frozen=True, slots=True)
class Spelling:
    name: str
    recognises: Callable[[str], bool]
    parse: Callable[[str], tree.Query]


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
def parse(text: str, spelling: str | None = None) -> tree.Query:
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
            hint="a query begins with PATTERN or EVENT",
        )
        error.locate(text)
        raise error
    if name not in _REGISTRY:
        raise UnknownSpelling(f"unknown spelling `{name}`", hint=did_you_mean(name, _REGISTRY))
    return _REGISTRY[name].parse(text)


register(Spelling("kleene", main_spelling.recognises, main_spelling.parse))
