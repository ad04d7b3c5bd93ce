"""Kleene: complex event processing for people who have Spark.

>>> import kleene
>>> q = kleene.query("PATTERN SEQ(Shelf a, !(Register b), Exit c) WHERE [tag_id] WITHIN 12 hours")
"""

from kleene.api import Outputs, decompress, infer_schema, match, outputs, query
from kleene.errors import KleeneError
from kleene.pattern import Query, Schema

__version__ = "0.1.0"
__all__ = [
    "KleeneError",
    "Outputs",
    "Query",
    "Schema",
    "__version__",
    "decompress",
    "infer_schema",
    "match",
    "outputs",
    "query",
]
