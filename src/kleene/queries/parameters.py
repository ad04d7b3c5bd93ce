"""Parameters of queries that run together: a value that none of them uses is a mistake, usually of spelling."""

from __future__ import annotations

from collections.abc import Sequence

from kleene.errors import UnknownParameter, did_you_mean
from kleene.lang import tree
from kleene.pattern.schema import Schema
from kleene.queries.any_query import AnyQuery


def check_parameters(queries: Sequence[AnyQuery], schema: Schema | None = None) -> None:
    """Raise an error for a value whose parameter is in none of the queries, nor in a class of their schema.

    >>> from kleene.pattern.query import Query
    >>> check_parameters([Query("PATTERN A a WHERE a.x > :low", params={"lows": 5})])
    Traceback (most recent call last):
    kleene.errors.UnknownParameter: error[KL211]: the query has no parameter `:lows`
      = hint: did you mean `low`?
    """
    known = parameters_of(queries, schema)
    for name in dict.fromkeys(name for query in queries for name in query.params):
        if name not in known:
            subject = "the query has no" if len(queries) == 1 else "none of the queries has a"
            hint = did_you_mean(name, known) or ("leave it out" if known else "leave it out: there are no parameters")
            raise UnknownParameter(f"{subject} parameter `:{name}`", hint=hint)


def parameters_of(queries: Sequence[AnyQuery], schema: Schema | None = None) -> frozenset[str]:
    """The names of the parameters in queries and in the classes of their schema."""
    classes = () if schema is None else tuple(schema.classes.values())
    in_classes = {node.name for node in tree.walk(classes) if isinstance(node, tree.Parameter)}
    return frozenset(in_classes.union(*(query.parameters for query in queries)))
