"""Half a character: a code of UTF-16 that stands for nothing by itself, which Python lets into a string."""

from __future__ import annotations

import re

from kleene.errors import Span, SyntaxProblem

_HALF = re.compile("[\ud800-\udfff]")


def half_character(text: str) -> int | None:
    """The place of the first half character; None: the text can be encoded.

    >>> half_character("a\\ud83d")
    1
    """
    match = _HALF.search(text)
    return None if match is None else match.start()


def check_characters(text: str) -> None:
    """Refuse a query that cannot be encoded as UTF-8, as all data is."""
    at = half_character(text)
    if at is None:
        return
    error = SyntaxProblem(
        f"this is half a character (U+{ord(text[at]):04X})",
        Span(at, at + 1),
        hint="it was cut from a pair, or read with the wrong encoding; write the whole character",
    )
    error.locate(text)
    raise error
