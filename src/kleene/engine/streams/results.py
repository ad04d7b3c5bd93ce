"""Results of event automata as tables: a struct for each stream id, and ids of the values and the interval."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kleene.algebra.nodes import AttributeName
from kleene.algebra.query import BoundStreamQuery
from kleene.engine.output.gathering import constant
from kleene.engine.output.identity import begun_folds, column_hashes, ids_of
from kleene.engine.state.event_rows import taken_rows
from kleene.engine.streams.cells import CellLayout, CellValues
from kleene.engine.streams.intake import tie_column
from kleene.frames.arrow import empty_table
from kleene.frames.results import times
from kleene.frames.stream_columns import attribute_types, result_column, stream_result_schema
from kleene.kernels import stream_instances as kernel
from kleene.kernels.expression import Bytes, Ints
from kleene.kernels.identity import fold_singles
from kleene.kernels.stream_instances import StreamResults
from kleene.pattern.schema import FIRST_TIE, LAST_TIE

Hashes = npt.NDArray[np.uint64]


def result_table(
    query: BoundStreamQuery, columns: pa.Schema, results: StreamResults, layout: CellLayout, values: CellValues
) -> pa.Table:
    """The results of a query over events with these columns, by end, start and id."""
    cells, schema = results.cells, stream_result_schema(query, columns)
    if not len(cells):
        return empty_table(schema)
    known, attributes = value_columns(query, columns, cells, results.states, layout, values)
    folds = _folds(query, [*known.values(), *attributes.values()], len(cells))
    known["match_id"] = ids_of(folds)
    known["query"] = constant(query.name, len(cells))
    known |= {name: result_column(listed, attributes) for name, listed in query.result_columns.items()}
    table = pa.table([known[name] for name in schema.names], schema=schema)
    return taken_rows(table, result_order(cells, folds))


def value_columns(
    query: BoundStreamQuery, columns: pa.Schema, cells: Ints, states: Bytes, layout: CellLayout, values: CellValues
) -> tuple[dict[str, pa.Array], dict[AttributeName, pa.Array]]:
    """The points of results by column, and the values of their attributes."""
    time = columns.field(query.schema.time).type
    known = {"start": times(cells[:, kernel.START], time), "end": times(cells[:, kernel.END], time)}
    if query.schema.tie_breaker is not None:
        kind = columns.field(query.schema.tie_breaker).type
        known[FIRST_TIE] = tie_column(cells[:, kernel.START_TIE], kind)
        known[LAST_TIE] = tie_column(cells[:, kernel.END_TIE], kind)
    types = attribute_types(query.root, columns)
    attributes: dict[AttributeName, pa.Array] = {}
    for place, (name, value_kind) in enumerate(layout.kinds.items(), kernel.FIRST_VALUE):
        own = np.ascontiguousarray(cells[:, place])
        attributes[name] = values.to_arrow(own, states[:, place], value_kind, types[name])
    return known, attributes


def _folds(query: BoundStreamQuery, columns: Sequence[pa.Array], size: int) -> Hashes:
    """[lane, result]: the hash of each result: its interval, then its values."""
    folds, rows = begun_folds(query.digest, size), np.arange(size, dtype=np.int32)
    for place, column in enumerate(columns, 1):
        fold_singles(folds, place, rows, column_hashes(pa.chunked_array([column])))
    return folds


def result_order(cells: Ints, folds: Hashes) -> Ints:
    """The order of results: by end, start and id."""
    ties = cells[:, kernel.END_TIE], cells[:, kernel.START_TIE]
    return np.lexsort((folds[1], folds[0], ties[1], cells[:, kernel.START], ties[0], cells[:, kernel.END]))
