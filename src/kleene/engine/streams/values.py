"""Values that no array of numbers holds, such as decimals and lists, as codes: equal values have equal codes."""

from __future__ import annotations

from sys import getsizeof
from typing import Any

import numpy as np
import pyarrow as pa

from kleene.kernels.expression import Bytes, Ints
from kleene.kernels.opcodes import NULL, VALUE


class ValuePool:
    """All values met; a code is a place among them."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self._values: list[Any] = []
        self.nbytes = 0

    @property
    def size(self) -> int:
        return len(self._values)

    def codes(self, column: pa.ChunkedArray) -> tuple[Ints, Bytes]:
        """The codes of a column's values, and which of them are NULL."""
        codes, states = np.zeros(len(column), np.int64), np.full(len(column), NULL, np.uint8)
        for row, value in enumerate(column.to_pylist()):
            if value is not None:
                codes[row], states[row] = self._code(value), VALUE
        return codes, states

    def _code(self, value: Any) -> int:
        key = repr(value)
        code = self._codes.setdefault(key, len(self._values))
        if code == len(self._values):
            self._values.append(value)
            self.nbytes += 2 * getsizeof(key) + 120
        return code

    def column(self, codes: Ints, known: Any, kind: pa.DataType) -> pa.Array:
        """The values of codes, NULL where they are not known."""
        values = [self._values[code] if has else None for code, has in zip(codes.tolist(), known.tolist(), strict=True)]
        return pa.array(values, kind)
