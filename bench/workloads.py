"""Streams of the papers' experiments, from fixed seeds, at any size."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

TYPES = 20


def sase(events: int, values: int, seed: int = 1) -> pa.Table:
    """W1 (SASE Table 1): twenty types, attr1 in [0, V), attr2 in [0, 20), all uniform; time is the position."""
    rng = np.random.default_rng(seed)
    names = pa.array([f"E{number}" for number in range(1, TYPES + 1)])
    kinds = pa.DictionaryArray.from_arrays(pa.array(rng.integers(0, TYPES, events), pa.int32()), names)
    return pa.table(
        {
            "type": kinds,
            "ts": np.arange(events),
            "attr1": rng.integers(0, values, events),
            "attr2": rng.integers(0, 20, events),
        }
    )
