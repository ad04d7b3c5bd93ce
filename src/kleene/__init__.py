"""Kleene: complex event processing for people who have Spark.

>>> import kleene
>>> q = kleene.query("PATTERN SEQ(Shelf a, !(Register b), Exit c) WHERE [tag_id] WITHIN 12 hours")
"""

from kleene.api import Outputs, Query, decompress, explain, flat, infer_schema, live, match, outputs, query, sql, why
from kleene.errors import KleeneError
from kleene.explanation import Explanation
from kleene.pattern import Schema
from kleene.plan.settings import Adapting, Budget, Exchange, Executor, Policy, Settings, Stream

__version__ = "0.1.0"
__all__ = [
    "Adapting",
    "Budget",
    "Exchange",
    "Executor",
    "Explanation",
    "KleeneError",
    "Outputs",
    "Policy",
    "Query",
    "Schema",
    "Settings",
    "Stream",
    "__version__",
    "decompress",
    "explain",
    "flat",
    "infer_schema",
    "live",
    "match",
    "outputs",
    "query",
    "sql",
    "why",
]
