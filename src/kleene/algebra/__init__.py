"""The stream algebra (CESAR §2): interned nodes, the schema of each, binding, and the printed form."""

from kleene.algebra.query import BoundStreamQuery, StreamQuery

__all__ = ["BoundStreamQuery", "StreamQuery"]
