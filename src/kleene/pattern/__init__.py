"""The pattern algebra: immutable nodes, schema, binding, typing, semantic errors. Knows nothing of how a query runs."""

from kleene.pattern.query import BoundQuery, Query
from kleene.pattern.schema import Schema

__all__ = ["BoundQuery", "Query", "Schema"]
