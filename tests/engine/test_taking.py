"""Values taken by row number from a column in pieces are those of the column in one piece."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from kleene.engine.state.distinct import distinct_codes
from kleene.engine.state.taking import in_one_piece, taken, taken_from_pieces

COLUMNS = {
    "integers": pa.chunked_array([[1, None], [], [3, 4, 5], [6]], pa.int64()),
    "texts": pa.chunked_array([["a", None], [], ["c", "", "e"], ["f"]]),
    "flags": pa.chunked_array([[True, None], [], [False, True, True], [False]]),
    "codes": pa.chunked_array(
        [pa.array(["a", "b"]).dictionary_encode(), pa.array(["c", "a", None, "b"]).dictionary_encode()]
    ),
    "lists": pa.chunked_array([[[1], None], [], [[2, 3], [], [4]], [[5]]]),
}


@pytest.mark.parametrize("absent", [True, False])
@pytest.mark.parametrize("name", COLUMNS)
def test_rows_come_from_their_pieces(name: str, absent: bool) -> None:
    column = COLUMNS[name]
    draw = np.random.default_rng(7)
    for size in (1, 3, 40):
        rows = draw.integers(-1 if absent else 0, 6, size).astype(np.int32)
        expected = taken(in_one_piece(column), rows, absent=absent)
        assert taken_from_pieces(column, rows, absent=absent).to_pylist() == expected.to_pylist()


@pytest.mark.parametrize("codes", [[], [3], [5, 0, 5, 2], [-1, 4, -1], [0, 1 << 40]])
def test_codes_occur_once_in_order(codes: list[int]) -> None:
    assert distinct_codes(np.array(codes, np.int64)).tolist() == sorted(set(codes))
