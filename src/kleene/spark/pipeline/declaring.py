"""What the queries of a pipeline declare, together: each may declare the stream that all of them read.

Run together, queries have one schema, and two that declare the same would contradict each other. So declarations that
agree are taken in once, and the queries go on without them, at the same places of their texts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from kleene.errors import QueryError
from kleene.lang import tree
from kleene.lang.format import format_declaration
from kleene.pattern.query import Query
from kleene.pattern.schema import Schema

_KEYWORD = re.compile(r"\b(?:PATTERN|EVENT)\b", re.IGNORECASE)
_SIGN = re.compile(r"[^\n]")


def declared_together(schema: Schema, queries: Sequence[Query]) -> Schema:
    """The schema with everything that the queries declare; what contradicts an earlier one is an error."""
    declarations: dict[str, tree.Declaration] = {}
    for query in queries:
        declarations |= {format_declaration(each): each for each in query.tree.declarations}
        try:
            made = schema.declaring(list(declarations.values()))
        except QueryError as error:
            error.locate(query.text, query.origin)
            raise
    return made


def without_declarations(query: Query) -> Query:
    """The query with blanks where it declares, so that its errors still show their places."""
    if not query.tree.declarations:
        return query
    # The word may also stand in a comment between it and the pattern, so what is left is compared.
    for keyword in reversed(list(_KEYWORD.finditer(query.text, 0, query.tree.pattern.span.start))):
        left = Query(
            _SIGN.sub(" ", query.text[: keyword.start()]) + query.text[keyword.start() :],
            query.name,
            query.params,
            query.spelling,
            query.origin,
        )
        try:
            if left.canonical == query.canonical:
                return left
        except QueryError:
            continue
    raise AssertionError("a query has a keyword before its pattern")
