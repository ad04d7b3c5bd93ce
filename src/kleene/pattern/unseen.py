"""Types that a query names and that no event has: usually a misspelt name, and a negated one excludes nothing."""

from __future__ import annotations

from collections.abc import Collection

from kleene.errors import NoSuchEvents, Span, did_you_mean
from kleene.lang import tree
from kleene.pattern.feeding import types_read
from kleene.pattern.query import Query
from kleene.pattern.schema import Schema

_HINT = "is it spelt as in the events? Capital letters count"


def unseen_types(
    query: Query, schema: Schema, seen: Collection[str], streams: Collection[str] = (), *, so_far: bool = False
) -> list[NoSuchEvents]:
    """A warning for each type that a query names and that no event has.

    seen      types of events
    streams   names that are right even when nothing comes under them: streams that are given, or made by queries
    so_far    whether events are still to come, of which only those that the query can use are known

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
        negations = (node for node in tree.walk(query.tree.pattern) if isinstance(node, tree.Negation))
        excludes = any(_place(node, name) is not None for node in negations)
        subject = (
            f"no event of type `{name}` has come that the query can use" if so_far else f"no event is of type `{name}`"
        )
        near = None if so_far else did_you_mean(name, {*seen, *streams})
        place = _place(query.tree.pattern, name) or _place(query.tree.declarations, name)
        warning = NoSuchEvents(f"{subject}, so that nothing is excluded" if excludes else subject, place, near or _HINT)
        warning.locate(query.text, query.origin)
        warnings.append(warning)
    return warnings


def _place(part: object, name: str) -> Span | None:
    """Where a part of the text names a type."""
    named = (node.span for node in tree.walk(part) if isinstance(node, tree.TypeName) and node.name == name)
    return next(named, None)
