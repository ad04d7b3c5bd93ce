"""What a fresh process of bench.cold_start runs: `python -m bench.first_match FILE NUMBER [watched]`.

Each number is another query. The clock starts before `import kleene` and stops with the matches in hand.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any


def watch() -> list[str]:
    """Every kernel that Numba compiles from now on; one that comes from its cache is none."""
    from numba.core import event

    compiled: list[str] = []

    class Listener(event.Listener):  # type: ignore[misc]
        def on_start(self, happened: Any) -> None:
            compiled.append(happened.data["dispatcher"].py_func.__name__)

        def on_end(self, happened: Any) -> None:
            pass

    event.register("numba:compile", Listener())
    return compiled


def first_match(path: str, number: int) -> dict[str, float]:
    began = time.perf_counter()
    import kleene

    imported = time.perf_counter()
    import pyarrow as pa

    # Not from Python's lists: to look at one, pyarrow imports pandas; a match does not.
    with pa.ipc.open_file(path) as file:
        table = file.read_all()
    prepared = time.perf_counter()
    text = (
        f"PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match {{ [k] AND a[1].x % {number + 2} = 1 "
        f"AND a[i].x > a[i-1].x + {number} AND b.x < {100 + number} }} WITHIN {40 + number}"
    )
    matches = kleene.match(table, text).num_rows
    ended = time.perf_counter()
    return {
        "import": imported - began,
        "read": prepared - imported,
        "match": ended - prepared,
        "total": ended - began,
        "matches": matches,
    }


if __name__ == "__main__":
    seen = watch() if "watched" in sys.argv else []
    print(json.dumps({**first_match(sys.argv[1], int(sys.argv[2])), "compiled": seen}))
