"""Rows of a stream that are no events: one column brings them to the tasks that pack, and is NULL for all others.

Each column that goes from Spark to Python costs time for every row, so what is known of a bad row goes as one text.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from kleene.spark.packing import written


def packed_aside(lines: pa.ChunkedArray, columns: Sequence[str], slot: int) -> pa.RecordBatch:
    """Rows that are told by lines of JSON, one each, with these columns; as packed rows of a slot."""
    rows = _read(lines.cast(pa.string()), columns)
    nowhen = np.zeros(rows.num_rows, np.int64)
    return written(rows, nowhen + slot, nowhen)


def _read(lines: pa.ChunkedArray, columns: Sequence[str]) -> pa.Table:
    ended = pa.concat_arrays(pc.binary_join_element_wise(lines, "", "\n").chunks)
    text = ended.buffers()[2]
    options = pyarrow.json.ReadOptions(use_threads=False, block_size=text.size)
    schema = pa.schema([(name, pa.string()) for name in columns])
    parsing = pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error")
    return pyarrow.json.read_json(pa.BufferReader(text), read_options=options, parse_options=parsing)
