"""The stream algebra on Cayuga's Double-Top (`make bench-algebra`; CESAR §5.2.2, Fig. 20): fold and resubscription.

A seeded walk of 24 symbols, 112,635 daily closing prices, smoothed by running averages of five lengths: longer ones
leave fewer extrema, which helps the formulation that reads a stream of extrema. Each formulation is held against the
reference evaluator on a prefix, and beside them runs a query that nothing waits for: what reading the events costs.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import kleene
from bench.measure import alternate, header
from kleene.queries.any_query import AnyQuery, read_query
from kleene.testing.reference_outputs import table_outputs

SYMBOLS, QUOTES = 24, 112_635
SMOOTHING = (1, 2, 4, 8, 16)
# The reference evaluator looks at all pairs of events: it is given the first days of some symbols.
PREFIX_DAYS, PREFIX_SYMBOLS = 130, 3
PAPERS = Path(__file__).parents[1] / "examples" / "papers"
# The daily change of a price: so that a rise of a fifth is neither rare nor the rule.
_CHANGE = 0.08

Formulation = Sequence[AnyQuery]


def formulations() -> dict[str, Formulation]:
    """Double-Top by folds alone, and over a stream of extrema, as they stand among the papers' queries."""

    def written(name: str) -> AnyQuery:
        return read_query((PAPERS / f"cayuga-s522-{name}.kleene").read_text(encoding="utf-8"), name)

    return {
        "fold": (written("double-top-fold"),),
        "resubscription": (written("double-top-extrema"), written("extrema")),
    }


def quotes(smoothing: int, seed: int = 20) -> pa.Table:
    """Closing prices by day, those of one day simultaneous, each the average of the last so many days."""
    draw = np.random.default_rng(seed)
    days = -(-QUOTES // SYMBOLS)
    walk = 100 * np.exp(np.cumsum(draw.normal(0, _CHANGE, (days, SYMBOLS)), axis=0))
    total = np.cumsum(np.vstack([np.zeros((1, SYMBOLS)), walk]), axis=0)
    first = np.maximum(np.arange(days) - smoothing + 1, 0)
    smooth = (total[1:] - total[first]) / (np.arange(days) - first + 1)[:, None]
    names = pa.array([f"s{number:02}" for number in range(SYMBOLS)])
    codes = pa.array(np.tile(np.arange(SYMBOLS), days)[:QUOTES], pa.int32())
    return pa.table(
        {
            "ts": np.repeat(np.arange(days), SYMBOLS)[:QUOTES],
            "name": pa.DictionaryArray.from_arrays(codes, names),
            "price": smooth.reshape(-1)[:QUOTES],
        }
    )


def results(table: pa.Table, queries: Formulation) -> int:
    """How many results the first of some queries has."""
    matches: pa.Table = kleene.match(table, list(queries))
    return sum(name == queries[0].name for name in matches.column("query").to_pylist())


def check_prefix(table: pa.Table, queries: Formulation) -> int:
    """How many results a prefix has: the same ones by the engine as by definition."""
    early = table.slice(0, PREFIX_DAYS * SYMBOLS)
    some = pa.array([f"s{number:02}" for number in range(PREFIX_SYMBOLS)])
    prefix = early.filter(pc.is_in(early.column("name").cast(pa.string()), value_set=some))
    wanted = table_outputs(prefix, queries, several=True).matches.column("match_id").to_pylist()
    found = kleene.match(prefix, list(queries)).column("match_id").to_pylist()
    if sorted(wanted) != sorted(found):
        raise AssertionError(f"{queries[0].name}: the engine has {len(found)} results, the reference {len(wanted)}")
    return results(prefix, queries)


def main() -> int:
    given = argparse.ArgumentParser(prog="python -m bench.algebra", description=__doc__)
    given.add_argument("--repeats", type=int, default=5)
    repeats = given.parse_args().repeats
    logging.getLogger("kleene").setLevel(logging.ERROR)
    began = time.perf_counter()
    print(header("numba", "numpy", "pyarrow") + "; one thread")
    print(f"Double-Top, {QUOTES:,} quotes of {SYMBOLS} symbols")
    print(f"prefix: the first {PREFIX_DAYS} days of {PREFIX_SYMBOLS} symbols, on which the reference agrees")
    print(f"{'smoothing':>9} {'formulation':>15} {'results':>8} {'of prefix':>9} {'events/s':>11}  beside reading")
    floor = read_query("DECLARE STREAM (type 'S') σ{price < 0}(S s)", "reading")
    for smoothing in SMOOTHING:
        table = quotes(smoothing)
        known = {name: check_prefix(table, queries) for name, queries in formulations().items()}
        works = {name: partial(results, table, queries) for name, queries in formulations().items()}
        timings = alternate({**works, "reading": partial(results, table, (floor,))}, repeats, same=False)
        for name in works:
            timing, share = timings[name], timings[name].median / timings["reading"].median
            rate = 1e6 * timing.rate(QUOTES)
            print(
                f"{smoothing:>9} {name:>15} {timing.count:>8,} {known[name]:>9,} {rate:>11,.0f}  {share:.1f} ×",
                flush=True,
            )
    print(f"\n{time.perf_counter() - began:.0f} s in all")
    return 0


if __name__ == "__main__":
    sys.exit(main())
