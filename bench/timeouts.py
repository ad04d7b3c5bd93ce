"""TIMEOUTS of a query with an optional component, beside each of the two alone (`python -m bench.timeouts`).

Such a query is a union of two lines, and of each start the longer prefix of the two is shown. The goal: together they
take no more than the sum of what each takes alone. Times are of the processor, medians of repeats in turn.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time

import numpy as np
import pyarrow as pa

import kleene
from bench.measure import header

EVENTS, KEYS = 2_000_000, 10_000
REPEATS = 3
QUERIES = {
    "optional": "PATTERN SEQ(A a, B? b, C c) WHERE [k] WITHIN {window}",
    "TIMEOUTS": "PATTERN SEQ(A a, B b, C c) WHERE [k] WITHIN {window} TIMEOUTS INTO Late",
    "both": "PATTERN SEQ(A a, B? b, C c) WHERE [k] WITHIN {window} TIMEOUTS INTO Late",
}


def events(types: int, size: int) -> pa.Table:
    rng = np.random.default_rng(types)
    names = np.array([chr(ord("A") + number) for number in range(types)])
    return pa.table(
        {
            "type": names[rng.integers(0, types, size)],
            "ts": np.sort(rng.integers(0, size, size)),
            "k": rng.integers(0, KEYS, size),
        }
    )


def seconds(table: pa.Table, window: int) -> dict[str, float]:
    """Of each query, in turn, after one run of each."""
    texts = {name: text.format(window=window) for name, text in QUERIES.items()}
    spent: dict[str, list[float]] = {name: [] for name in texts}
    for number in range(REPEATS + 1):
        for name, text in texts.items():
            began = time.process_time()
            kleene.outputs(table, text)
            if number:
                spent[name].append(time.process_time() - began)
    return {name: statistics.median(times) for name, times in spent.items()}


def main() -> int:
    given = argparse.ArgumentParser(prog="python -m bench.timeouts", description=__doc__)
    given.add_argument("--events", type=int, default=EVENTS, help="length of the streams")
    size = given.parse_args().events
    print(header("numba", "numpy", "pyarrow"))
    met = True
    for types, window in ((4, 100), (4, 20_000), (20, 20_000)):
        took = seconds(events(types, size), window)
        each = ", ".join(f"{name} {value:.2f} s" for name, value in took.items())
        ratio = took["both"] / (took["optional"] + took["TIMEOUTS"])
        met &= ratio <= 1
        print(f"{types:2} types, WITHIN {window:6,}: {each}; {ratio:.2f} of the sum", flush=True)
    print(f"both {'take no more' if met else 'take more'} than the sum of each alone")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
