"""A column of constants in little memory: most columns of a table of rules have few values."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kleene.engine.query_sets.lasting_arrays import with_some_room
from kleene.kernels.expression import Ints

# With more values than this they are kept as they are.
_MOST_VALUES = 1 << 14


class PackedColumn:
    """Grows at its end. Few values are kept once, and each row has the number of its own."""

    def __init__(self) -> None:
        self._size = 0
        self._numbers: dict[int, int] = {}
        self._values: Ints = np.zeros(0, np.int64)
        # [row]: numbers of values; the values themselves where there are many.
        self._rows: npt.NDArray[np.integer] = np.zeros(0, np.uint8)

    def append(self, values: Ints) -> None:
        if self._rows.dtype != np.int64:
            distinct, places = np.unique(values, return_inverse=True)
            if len(distinct) + len(self._numbers) > _MOST_VALUES:
                self._unpack()
            else:
                for value in distinct.tolist():
                    self._numbers.setdefault(value, len(self._numbers))
                values = np.array([self._numbers[value] for value in distinct.tolist()], np.int64)[places]
                self._values = np.array(list(self._numbers), np.int64)
                if len(self._numbers) > 1 << 8:
                    self._rows = self._rows.astype(np.uint16, copy=False)
        self._rows = with_some_room(self._rows, self._size + len(values))
        self._rows[self._size : self._size + len(values)] = values
        self._size += len(values)

    def _unpack(self) -> None:
        self._rows = self._values[self._rows] if len(self._values) else np.zeros(0, np.int64)
        self._numbers, self._values = {}, np.zeros(0, np.int64)

    def take(self, rows: npt.NDArray[np.integer]) -> Ints:
        """The values of some rows."""
        chosen: Ints = self._rows[rows].astype(np.int64)
        if self._rows.dtype != np.int64:
            chosen = self._values[chosen]
        return chosen

    @property
    def nbytes(self) -> int:
        return int(self._rows.nbytes) + 100 * len(self._numbers)
