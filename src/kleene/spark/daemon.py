"""The process from which Spark forks its Python workers, with everything loaded that each of them would load.

Set `spark.python.daemon.module` to `kleene.spark.daemon`. Nothing may be printed here: Spark reads the output.
"""

from __future__ import annotations

import gc
import logging
import os
from contextlib import suppress
from importlib import import_module

_FIRST = "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 9"
_THEN = "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match { [id] AND a[i].x > a[i-1].x } WITHIN 9"


def load() -> None:
    """Load the engine and its kernels by small matches; without them workers only start more slowly."""
    import pyarrow as pa

    from kleene.evaluation import evaluate
    from kleene.pattern.query import Query

    import_module("kleene.spark.worker")
    import_module("kleene.spark.parquet.reading")
    import_module("kleene.spark.streaming.processor")
    logging.getLogger("kleene").setLevel(logging.ERROR)
    events = pa.table({"type": ["A", "A", "B"], "ts": [1, 2, 3], "id": [1, 1, 1], "x": [1, 2, 3]})
    for text in (_FIRST, _THEN):
        evaluate(events, [Query(text)])
    logging.getLogger("kleene").setLevel(logging.NOTSET)


if __name__ == "__main__":
    from pyspark.daemon import manager

    # Workers inherit it: the process that set them up compiles what they need, or one of them does.
    os.environ.setdefault("KLEENE_WARM", "0")
    with suppress(Exception):
        load()
    # A worker collects garbage after each task: what is loaded here is none, and looking through it takes 60 ms.
    gc.collect()
    gc.freeze()
    manager()
