"""The type of each row, coded: few types, many rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kleene.kernels.expression import Ints
from kleene.pattern.schema import Schema


def row_types(table: pa.Table, schema: Schema) -> tuple[list[str | None], Ints]:
    """The types that occur, None for NULL, and which of them each row has."""
    if schema.constant_type is not None:
        return [schema.constant_type], np.zeros(table.num_rows, np.int64)
    column = table.column(schema.type).combine_chunks()
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    names = [None if name is None else str(name) for name in encoded.dictionary.to_pylist()]
    indices = encoded.indices if not encoded.null_count else encoded.indices.cast(pa.int64()).fill_null(len(names))
    return [*names, None], indices.to_numpy(zero_copy_only=False)
