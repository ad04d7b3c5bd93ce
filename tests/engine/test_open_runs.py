"""Runs are counted by following their lists, whatever was in the memory that they were given."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
from tests.engine.batches import bound

from kleene.engine.engine import Engine
from kleene.engine.state import growing


def used_before(shape: Any, kind: Any) -> Any:
    """Memory that somebody else has left something in."""
    return np.full(shape, 123_456 if np.dtype(kind).itemsize >= 4 else 1, kind)


def test_a_run_that_only_completes_is_on_no_list() -> None:
    table = pa.table({"type": ["A", "B"] * 3000, "ts": range(6000), "id": ["0"] * 6000})
    with mock.patch.object(growing, "empty", used_before):
        engine = Engine(bound("PATTERN SEQ(A+ a[], B b) WHERE a[i].ts > 0 WITHIN 10 OUTPUT COMPRESSED", table))
        engine.process(table, 6000)
        assert (engine.alive.events, engine.alive.runs) == (10, 5)
