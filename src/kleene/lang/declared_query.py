"""Queries of spellings whose grammars have no declarations: those before the query are read in the main spelling."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kleene.errors import QueryError
from kleene.lang import main_spelling, tree
from kleene.lang.statements import declares, query_start

Q = TypeVar("Q")


def read_declared(text: str, read_query: Callable[[str], Q]) -> tuple[tuple[tree.Declaration, ...], Q]:
    """The declarations before a query, and what `read_query` makes of the query; places are those of the whole text."""
    start = query_start(text)
    declarations = main_spelling.parse_declarations(text[:start]) if declares(text) else ()
    try:
        # Blanks in place of the declarations keep the places.
        return declarations, read_query(" " * start + text[start:])
    except QueryError as error:
        error.text = text
        raise
