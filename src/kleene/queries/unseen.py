"""Types that a query names and that no event has: usually a misspelt name, and a negated one excludes nothing."""

from __future__ import annotations

from collections.abc import Collection

from kleene.errors import NoSuchEvents, did_you_mean
from kleene.lang import tree
from kleene.pattern.schema import Schema
from kleene.queries.any_query import AnyQuery
from kleene.queries.feeding import place_of_type, types_read

_HINT = "is it spelt as in the events? Capital letters count"


def unseen_types(
    query: AnyQuery, schema: Schema, seen: Collection[str], streams: Collection[str] = (), *, so_far: bool = False
) -> list[NoSuchEvents]:
    """A warning for each type that a query names and that no event has.

    seen      types of events
    streams   names that are right even when nothing comes under them: streams that are given, or made by queries
    so_far    whether events are still to come, of which only those that the query can use are known

    >>> from kleene.pattern.query import Query
    >>> print(*unseen_types(Query("PATTERN Shelv a ; Exit b"), Schema(), {"Shelf", "Exit"}))
    warning[KL906]: no event is of type `Shelv`
      --> query:1:9
       |
     1 | PATTERN Shelv a ; Exit b
       |         ^^^^^
      = hint: did you mean `Shelf`?
    """
    warnings = []
    for name in types_read(query, schema):
        if name in seen or name in streams:
            continue
        negations = (node for node in tree.walk(query.tree.body) if isinstance(node, tree.Negation))
        excludes = any(place_of_type(node, name) is not None for node in negations)
        subject = (
            f"no event of type `{name}` has come that the query can use" if so_far else f"no event is of type `{name}`"
        )
        near = None if so_far else did_you_mean(name, {*seen, *streams})
        place = place_of_type(query.tree.body, name) or place_of_type(query.tree.declarations, name)
        warning = NoSuchEvents(f"{subject}, so that nothing is excluded" if excludes else subject, place, near or _HINT)
        warning.locate(query.text, query.origin)
        warnings.append(warning)
    return warnings
