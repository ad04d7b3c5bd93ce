"""Numbers between Arrow and NumPy are those that pyarrow itself would give."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from kleene.frames.numbers import to_arrow, to_numpy

KINDS = [pa.int8(), pa.uint16(), pa.int32(), pa.int64(), pa.uint64(), pa.float32(), pa.float64(), pa.bool_()]
ROWS = [1, 0, None, 1, 1, 0, None, 0, 1, 1, None, 1, 0, 1, 0, 0, 1, 1, 1]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize(("begin", "size"), [(0, 19), (0, 8), (3, 0), (3, 9), (9, 10), (16, 3)])
def test_a_slice_is_read_where_it_begins(kind: pa.DataType, begin: int, size: int) -> None:
    whole = pa.array(ROWS, pa.int64()).cast(kind)
    made = to_numpy(whole.slice(begin, size))
    assert made.dtype == kind.to_pandas_dtype()
    assert made.tolist() == [row or 0 for row in ROWS[begin : begin + size]]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_chunks_are_read_one_after_the_other(kind: pa.DataType) -> None:
    whole = pa.array(ROWS, pa.int64()).cast(kind)
    for pieces in ([], [whole.slice(2, 5)], [whole.slice(2, 5), whole.slice(0, 0), whole.slice(9)]):
        column = pa.chunked_array(pieces, kind)
        made = to_numpy(column, 1)
        assert made.dtype == kind.to_pandas_dtype()
        assert made.tolist() == [1 if row is None else row for row in column.to_pylist()]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_what_numpy_has_arrow_has(kind: pa.DataType) -> None:
    values = np.arange(19).astype(kind.to_pandas_dtype())
    missing = np.arange(19) % 5 == 0
    for given in (values, values[::2], values[3:3]):
        assert to_arrow(given).equals(pa.array(given, kind))
        assert to_arrow(given, missing[: len(given)]).equals(pa.array(given, kind, mask=missing[: len(given)]))


def test_pandas_is_not_imported() -> None:
    program = """
import sys, numpy as np, pyarrow as pa
from kleene.frames.numbers import to_arrow, to_numpy
column = to_arrow(np.arange(5), np.arange(5) > 3)
assert to_numpy(pa.chunked_array([column])).tolist() == [0, 1, 2, 3, 0]
assert "pandas" not in sys.modules, "it was imported"
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
