"""What the queries of a set found, as tables: those that share, and those that ran by themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from kleene.engine.output.outputs import EngineOutputs
from kleene.engine.query_sets.shared_queries import Found, SharedQueries
from kleene.errors import UnknownKind, did_you_mean
from kleene.frames.rows import BadRow, bad_row_table

RESULTS = ("matches", "queries", "counts")


@dataclass(frozen=True)
class SetOutputs:
    """What the queries of a set found.

    matches   a table for each shape of result; none when only counts were asked for
    counts    how many matches each query has, of those that have some
    bad_rows  the rows that are no events
    late      the events that came after the watermark had passed them
    """

    matches: tuple[Any, ...]
    counts: Any
    bad_rows: Any
    late: Any

    def in_kind(self, in_kind: Callable[[pa.Table], Any]) -> SetOutputs:
        """The same as tables of another kind."""
        return SetOutputs(
            tuple(map(in_kind, self.matches)), in_kind(self.counts), in_kind(self.bad_rows), in_kind(self.late)
        )


def shared_outputs(
    shared: SharedQueries, found: list[Found], bad: list[BadRow], late: pa.Table, results: str
) -> SetOutputs:
    """What queries that share found."""
    tables: dict[Any, list[pa.Table]] = {}
    counts = np.zeros(shared.queries.size, np.int64)
    for each in found:
        counts += np.bincount(each.queries, minlength=shared.queries.size)
        if results == "counts" or not len(each.queries):
            continue
        rows = shared.table_of(each, lists=results == "queries")
        tables.setdefault(rows.schema.to_string(), []).append(rows)
    some = np.flatnonzero(counts)
    counted = pa.table({"query": shared.queries.names(some), "matches": pa.array(counts[some])})
    return SetOutputs(tuple(pa.concat_tables(each) for each in tables.values()), counted, bad_row_table(bad), late)


def with_alone(
    outputs: SetOutputs, alone: Sequence[tuple[str, Iterable[tuple[Any, EngineOutputs]]]], results: str
) -> SetOutputs:
    """The outputs of queries that share, and of those that ran by themselves."""
    tables, names, counts = list(outputs.matches), [], []
    for name, outputs_of_one in alone:
        matches = next(
            (each.matches for node, each in outputs_of_one if not node.is_part and each.matches is not None), None
        )
        if matches is None or not matches.num_rows:
            continue
        names.append(name)
        counts.append(matches.num_rows)
        if results == "matches":
            tables.append(matches)
        elif results == "queries":
            listed = pa.array([[name]] * matches.num_rows, pa.list_(pa.string()))
            tables.append(matches.drop_columns(["match_id", "query"]).add_column(0, "queries", listed))
    counted = pa.concat_tables(
        [outputs.counts, pa.table({"query": pa.array(names, pa.string()), "matches": pa.array(counts, pa.int64())})]
    )
    return SetOutputs(tuple(tables), counted, outputs.bad_rows, outputs.late)


def check_results(results: str) -> None:
    if results not in RESULTS:
        raise UnknownKind(
            f"there are no results `{results}`", hint=did_you_mean(results, RESULTS) or f"one of {', '.join(RESULTS)}"
        )
