"""Compile the kernels once, so that no first match waits for it: `python -m kleene.engine.warm`, part of set-up."""

from __future__ import annotations

import logging
import time

import pyarrow as pa

from kleene.engine.run import run_query
from kleene.frames.arrow import schema_on
from kleene.pattern import Query, Schema

_LOG = logging.getLogger("kleene")
# Masks, keys, construction with a test, negation: everything that a sequence can need.
_QUERY = "PATTERN SEQ(A a, !(B b), C c) WHERE [id] AND a.x > 0 AND c.x > a.x WITHIN 9"


def warm() -> float:
    """Run a small query on every kernel; how many seconds it took."""
    began = time.perf_counter()
    table = pa.table({"type": ["A", "C"], "ts": [1, 2], "id": [1, 1], "x": [1, 2]})
    run_query(Query(_QUERY).bind(schema_on(table.schema, Schema())), table)
    seconds = time.perf_counter() - began
    _LOG.info("kernels are compiled and kept, in %.1f s", seconds)
    return seconds


if __name__ == "__main__":
    warm()
