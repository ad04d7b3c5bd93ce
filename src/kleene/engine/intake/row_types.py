"""The type of each row, coded: few types, many rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kleene.frames.arrow import python_values
from kleene.frames.numbers import to_numpy
from kleene.pattern.schema import Schema


def row_types(table: pa.Table, schema: Schema) -> tuple[list[str | None], npt.NDArray[np.int32]]:
    """The types that occur, None for NULL, and which of them each row has."""
    if schema.constant_type is not None:
        return [schema.constant_type], np.zeros(table.num_rows, np.int32)
    column = table.column(schema.type).combine_chunks()
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    names = [None if name is None else str(name) for name in python_values(pa.chunked_array([encoded.dictionary]))]
    return [*names, None], to_numpy(encoded.indices.cast(pa.int32()), len(names))
