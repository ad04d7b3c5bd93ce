"""The stream algebra (CESAR §2): interned nodes, the schema of each, binding, and the printed form."""

from kleene.algebra.eql_query import BoundEqlQuery, EqlQuery
from kleene.algebra.query import BoundStreamQuery, StreamQuery

__all__ = ["BoundEqlQuery", "BoundStreamQuery", "EqlQuery", "StreamQuery"]
