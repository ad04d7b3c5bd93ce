"""The papers' baselines in `bench/papers` find as many matches as the reference evaluator, or no figure means anything.

They run as plain Python here: compiling them takes longer than all of these streams.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from tests.soaking import rounds

from kleene.kernels.interpreting import interpreted
from kleene.testing import reference_match

# Benchmarks are not part of the source distribution.
pytest.importorskip("bench.papers.sides")

from bench.papers.baselines import sequences as seq
from bench.papers.baselines.backtracking import backtracked
from bench.papers.baselines.closure_runs import with_runs
from bench.papers.baselines.instance_stacks import multi_partitioned, partitioned
from bench.papers.baselines.runtime_stack import basic
from bench.papers.baselines.stock_closures import MATCHES, Closure, Ints, Ticks, ticks
from bench.papers.baselines.windowed_join import joined
from bench.papers.sase_plus import StockQuery
from bench.papers.sides import sequence_events
from bench.workloads import Sequence

STREAMS = rounds(160)
NONE = seq.predicates()
TYPES = ["E1", "E2", "E3", "E4", "N", "other"]


@pytest.fixture(autouse=True)
def _plain_python() -> Iterator[None]:
    with interpreted():
        yield


def count(table: pa.Table, text: str) -> int:
    return len(reference_match(table, text).ids)


def stream(rng: np.random.Generator, events: int) -> pa.Table:
    """Few values, so that there are matches; times with gaps."""
    return pa.table(
        {
            "type": pa.DictionaryArray.from_arrays(pa.array(rng.integers(0, 6, events), pa.int32()), pa.array(TYPES)),
            "ts": np.cumsum(rng.integers(1, 3, events)),
            "attr1": rng.integers(0, 2, events),
            "attr2": rng.integers(0, 2, events),
        }
    )


def test_sequences() -> None:
    """Basic, AIS, PAIS and Multi-PAIS with the window tested everywhere, and joins; with keys or none, negated too."""
    matches = negated = 0
    for number in range(STREAMS):
        rng = np.random.default_rng(number)
        length, window = int(rng.integers(2, 5)), int(rng.integers(4, 40))
        table = stream(rng, int(rng.integers(20, 50)))
        events = sequence_events(table, length, "N")
        first, second = events.columns
        for keys in ((), ("attr1",), ("attr1", "attr2")):
            sequence = Sequence(tuple(TYPES[:length]), keys, window)
            expected = count(table, sequence.text)
            matches += expected
            tests = seq.predicates(*seq.equal_throughout(length, range(len(keys))))
            others = seq.predicates(*seq.equal_throughout(length, range(1, len(keys))))
            for scan, back in ((False, False), (True, False), (False, True), (True, True)):
                rule = partial(seq.Query, length, window, scan, back, negation=seq.no_negation())
                counts = {
                    "Basic": basic(events, rule(NONE, tests)),
                    "Basic, filtered": basic(events, rule(tests, NONE)),
                    "AIS": partitioned(events, rule(NONE, tests)),
                }
                if keys:
                    counts["PAIS"] = partitioned(events, rule(NONE, others), first)
                    counts["PAIS, filtered"] = partitioned(events, rule(others, NONE), first)
                    filters = np.arange(1, len(keys))
                    counts["joins"] = joined(events, rule(NONE, NONE), first, filters)
                if len(keys) == 2:
                    for nested in (False, True):
                        counters = multi_partitioned(events, rule(NONE, others), (first, second), nested=nested)
                        counts[f"Multi-PAIS, {nested}"] = counters
                assert {name: int(each[seq.RESULTS]) for name, each in counts.items()} == dict.fromkeys(
                    counts, expected
                )
        keyed = Sequence(tuple(TYPES[:length]), ("attr1",), window).text
        expected = count(table, keyed.replace("E2 v2", "!(N n), E2 v2"))
        negated += expected
        for how in (seq.SCANNED, seq.INDEXED):
            absence = seq.negation(events, how, 0, 0, int(rng.integers(1, 9)))
            query = seq.Query(length, window, True, True, NONE, NONE, absence)
            assert int(partitioned(events, query, first)[seq.RESULTS]) == expected
    assert matches > 5 * STREAMS
    assert negated > STREAMS // 4


def quotes(rng: np.random.Generator, events: int) -> pa.Table:
    """Prices around the multiples of 500, where runs start."""
    return pa.table(
        {
            "type": ["STOCK"] * events,
            "ts": np.arange(events),
            "symbol": rng.integers(1, 3, events),
            "price": rng.choice([1, 2, 499, 500, 501, 502, 503, 1000], events),
            "volume": rng.choice([100, 200], events),
        }
    )


def test_closures() -> None:
    """Runs side by side, merged, and by backtracking; with a third component, and without overlaps."""
    matches = apart = 0
    for number in range(STREAMS):
        rng = np.random.default_rng(number)
        table = quotes(rng, int(rng.integers(10, 40)))
        predicate, strategy = str(rng.choice(["p1", "p2", "p3"])), str(rng.choice(["s2", "s3"]))
        for tail in (False, True):
            for non_overlap in (False, True):
                query = StockQuery(predicate, strategy, int(rng.integers(2, 12)), tail, non_overlap)
                expected = count(table, query.text)
                matches += expected
                apart += expected if non_overlap else 0
                ways: dict[str, Callable[[Ticks, Closure], Ints]] = {
                    "backtrack": backtracked,
                    "basic": partial(with_runs, merges=False),
                }
                if not tail and not non_overlap:
                    ways["merging"] = partial(with_runs, merges=True)
                parts = ticks(table)
                counts = {
                    name: sum(int(way(part, query.closure)[MATCHES]) for part in parts) for name, way in ways.items()
                }
                assert counts == dict.fromkeys(counts, expected), query
    assert matches > 5 * STREAMS
    assert apart > STREAMS
