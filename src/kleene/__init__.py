"""Kleene: complex event processing for people who have Spark.

>>> import kleene
>>> q = kleene.query("PATTERN SEQ(Shelf a, !(Register b), Exit c) WHERE [tag_id] WITHIN 12 hours")
"""

from typing import TYPE_CHECKING, Any

from kleene.api import (
    decompress,
    explain,
    flat,
    infer_schema,
    live,
    match,
    outputs,
    parquet,
    query,
    sql,
    why,
)
from kleene.builder import FoldStep, PublishedStream, StreamExpression, carried, stream
from kleene.errors import KleeneError
from kleene.event_builder import EventExpression, SelectedEvents, events
from kleene.explainable import EqlQuery, Query, StreamQuery
from kleene.explanation import Explanation
from kleene.frames.outputs import Outputs
from kleene.pattern import Schema
from kleene.plan.settings import Adapting, Budget, Exchange, Policy, Settings, Stream
from kleene.plan.settings import ExecutorKind as Executor

if TYPE_CHECKING:
    from kleene.engine import Engine
    from kleene.query_set import QuerySet

__version__ = "0.1.0"
__all__ = [
    "Adapting",
    "Budget",
    "Engine",
    "EqlQuery",
    "EventExpression",
    "Exchange",
    "Executor",
    "Explanation",
    "FoldStep",
    "KleeneError",
    "Outputs",
    "Policy",
    "PublishedStream",
    "Query",
    "QuerySet",
    "Schema",
    "SelectedEvents",
    "Settings",
    "Stream",
    "StreamExpression",
    "StreamQuery",
    "__version__",
    "carried",
    "decompress",
    "events",
    "explain",
    "flat",
    "infer_schema",
    "live",
    "match",
    "outputs",
    "parquet",
    "query",
    "sql",
    "stream",
    "why",
]


def __getattr__(name: str) -> Any:
    """Loads what needs the compiler when it is first used: most of the package does not import it."""
    if name == "Engine":
        from kleene.engine import Engine

        return Engine
    if name == "QuerySet":
        from kleene.query_set import QuerySet

        return QuerySet
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
