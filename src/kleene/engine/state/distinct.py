"""Which of a range of numbers occur: for dense ones a flag each takes a fraction of what sorting or hashing does."""

from __future__ import annotations

import numpy as np

from kleene.kernels.expression import Ints
from kleene.kernels.gathering import Rows

_FLAGS = 1 << 20


def distinct_between(values: Rows, low: int, high: int) -> Ints:
    """Values from a range, both ends included, each once, in order."""
    if high - low > 64 * len(values) + _FLAGS:
        return np.unique(values).astype(np.int64, copy=False)
    flags = np.zeros(high - low + 1, np.bool_)
    flags[values - low] = True
    return np.flatnonzero(flags) + low


def distinct_codes(codes: Ints) -> Ints:
    """Codes, each once, in order."""
    return distinct_between(codes, int(codes.min()), int(codes.max())) if len(codes) else codes
