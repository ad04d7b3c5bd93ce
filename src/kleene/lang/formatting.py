"""Print a query in its own spelling; parsing what is printed gives the same tree again."""

from __future__ import annotations

from kleene.lang import eql_tree, stream_tree
from kleene.lang.format import format_pattern_query
from kleene.lang.format_eql import format_eql_query
from kleene.lang.format_streams import format_stream_query
from kleene.lang.spellings import ParsedQuery


def format_query(query: ParsedQuery) -> str:
    """One canonical text for all ways to write the same query."""
    if isinstance(query, stream_tree.StreamQuery):
        return format_stream_query(query)
    if isinstance(query, eql_tree.EqlQuery):
        return format_eql_query(query)
    return format_pattern_query(query)
