"""Memory for arrays of results, from Arrow's memory pool, which reuses freed memory.

The first write to a new page costs more than the data written to it.
"""

from __future__ import annotations

from math import prod
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

T = TypeVar("T", bound=np.generic)


def empty(shape: int | tuple[int, ...], kind: type[T]) -> npt.NDArray[T]:
    """An array whose values are not set yet."""
    size = shape if isinstance(shape, int) else prod(shape)
    if not size:
        return np.empty(shape, kind)
    return np.frombuffer(pa.allocate_buffer(size * np.dtype(kind).itemsize), kind).reshape(shape)
