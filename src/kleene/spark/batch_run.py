"""Several queries in one pass over the data, each with outputs of its own.

One scan with the union of the filters, one exchange, one run of every query; what they make stays in Spark's cache, as
Arrow bytes, until it has been written wherever it should go.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions

from kleene.composition.query_graph import QueryNode
from kleene.errors import UnknownKind, did_you_mean
from kleene.frames.results import result_schema
from kleene.lang.tree import OutputMode
from kleene.pattern.schema import Schema
from kleene.plan.settings import Policy, Settings
from kleene.queries.any_query import AnyQuery, is_pattern
from kleene.spark.batch import OnEvents, Prepared, apart, is_large, prepare
from kleene.spark.division import exchanged
from kleene.spark.interpreter import in_tasks
from kleene.spark.sending import Sent
from kleene.spark.slot import RANK, TYPE_SEEN
from kleene.spark.types import as_spark_expects, spark_schema
from kleene.spark.unseen import unseen_on_spark
from kleene.spark.worker import ENVELOPE_DDL, opener, plain_schema, task

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LOG = logging.getLogger("kleene.spark")
_JOINS_IN_CACHE = "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning"


@contextmanager
def small_partitions_joined(session: SparkSession) -> Iterator[None]:
    """Have Spark join small partitions of a frame that is cached here, as it does of any other.

    Otherwise each of its 200 partitions is a task in Python for every output, however few events there are.
    """
    before = session.conf.get(_JOINS_IN_CACHE)
    if before == "true" or not session.conf.isModifiable(_JOINS_IN_CACHE):
        yield
        return
    session.conf.set(_JOINS_IN_CACHE, "true")
    try:
        yield
    finally:
        # As it was, whether it had been set or not.
        session.conf.unset(_JOINS_IN_CACHE)
        if session.conf.get(_JOINS_IN_CACHE) != before:
            session.conf.set(_JOINS_IN_CACHE, str(before))


@dataclass(frozen=True)
class RunTotals:
    """The counts of a run.

    kept      events that were handed to engines; one that two groups of queries need counts twice
    matches   by query, as `timeouts`; of OUTPUT COMPRESSED the rows
    dropped   matches and partial matches over a budget, where its policy is to drop; where time is cut, what lies near
              an edge is dropped, and counted, on both of its sides
    """

    kept: int
    matches: Mapping[str, int]
    timeouts: Mapping[str, int]
    dropped: int


def together(
    events: DataFrame | Mapping[str, DataFrame],
    queries: Sequence[AnyQuery],
    *,
    schema: Schema | None = None,
    settings: Settings | None = None,
) -> BatchRun:
    """Bind queries to events; a wrong query or a missing column is raised here, and no match is looked for yet."""
    return BatchRun(prepare(events, queries, schema=schema, several=False, settings=settings))


class BatchRun(OnEvents):
    def __init__(self, prepared: Prepared, envelopes: DataFrame | None = None) -> None:
        """`envelopes`: the outputs of the queries, where they have run already."""
        self._prepared = prepared
        if envelopes is not None:
            self._envelopes = envelopes
        names = Counter(query.name for query in prepared.bound)
        twice = next((name for name, number in names.items() if number > 1), None)
        if twice is not None:
            raise UnknownKind(f"two queries are called `{twice}`", hint="give each a name of its own")

    @property
    def bad_rows(self) -> DataFrame:
        return self._prepared.bad_rows

    @cached_property
    def _envelopes(self) -> DataFrame:
        envelopes = in_tasks(exchanged(self._prepared.packed), Sent(task, self._prepared.task_spec()), ENVELOPE_DDL)
        with small_partitions_joined(envelopes.sparkSession):
            return envelopes.persist()

    def run(self) -> RunTotals:
        """Run all queries; what they make is kept until `close`. A type that no event has is warned of."""
        added = functions.sum("number").alias("number")
        rows = self._envelopes.groupBy("query", "kind").agg(added).collect()
        number = {(row["query"], row["kind"]): row["number"] for row in rows}

        def of(kind: str) -> dict[str, int]:
            return {query.name: number.get((place, kind), 0) for place, query in enumerate(self.queries)}

        self._report_unseen_types(number)
        return RunTotals(sum(of("kept").values()), of("matches"), of("timeouts"), sum(of("dropped").values()))

    def _report_unseen_types(self, number: Mapping[tuple[int, str], int]) -> None:
        met = {
            place: [name for name in query.types if (place, f"{TYPE_SEEN}{name}") in number]
            for place, query in enumerate(self.queries)
        }
        for warning in unseen_on_spark(self._prepared, met):
            _LOG.warning("%s", warning.render())

    def matches(self, name: str) -> DataFrame:
        place = self._place(name)
        columns = self._prepared.graph.match_columns(self._node(place))
        if not self._prepared.finds(place, "matches"):
            return self._opened("matches", place, columns)
        return apart(self._opened("matches", place, columns.append(pa.field(RANK, pa.int64()))))

    def timeouts(self, name: str) -> DataFrame | None:
        place = self._place(name)
        columns = self._prepared.graph.timeout_columns(self._node(place))
        return None if columns is None else self._opened("timeouts", place, columns)

    def compressed(self, name: str) -> DataFrame | None:
        """The matches of events that completed too many, under the policy that emits these compressed."""
        place = self._place(name)
        query = self.queries[place]
        if self._prepared.settings.budget.policy is not Policy.EMIT_COMPRESSED or not is_pattern(query):
            return None
        dense = replace(query, output=OutputMode.COMPRESSED, returns=None)
        return self._opened("compressed", place, result_schema(dense, self._prepared.columns))

    def close(self) -> None:
        if "_envelopes" in self.__dict__:
            self._envelopes.unpersist()

    def _opened(self, kind: str, place: int, columns: pa.Schema) -> DataFrame:
        returned = as_spark_expects(columns, large=is_large(self._envelopes))
        wanted = (functions.col("query") == place) & (functions.col("kind") == kind)
        return in_tasks(self._envelopes.where(wanted), Sent(opener, plain_schema(returned)), spark_schema(columns))

    def _place(self, name: str) -> int:
        names = [query.name for query in self.queries]
        if name not in names:
            raise UnknownKind(f"no query is called `{name}`", hint=did_you_mean(name, names))
        return names.index(name)

    def _node(self, place: int) -> QueryNode:
        return self._prepared.graph.in_order_given[place]
