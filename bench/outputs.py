"""Tables of results: nanoseconds a match and a reference, beside a plain gather of the same bytes by NumPy.

Times are of this thread's processor, the best of several runs. W1 has many short matches of single events, the Kleene
workload fewer long ones.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from bench.workloads import sase
from kleene.engine.intake.columns import ColumnStore
from kleene.engine.intake.strings import StringPool
from kleene.engine.output.identity import match_ids, used_hashes
from kleene.engine.output.matches import ColumnarMatches, Matches
from kleene.engine.output.ordering import Spans, in_order
from kleene.engine.output.selected import Selected
from kleene.engine.output.tables import match_table
from kleene.engine.state.event_rows import EventRows
from kleene.frames.arrow import schema_on
from kleene.pattern import Query, Schema
from kleene.pattern.query import BoundQuery

EVENTS = 1_000_000
WINDOW = 10_000


@dataclass(frozen=True)
class Found:
    """What an executor gives: retained events and matches."""

    query: BoundQuery
    table: pa.Table
    spans: Spans
    matches: Matches


def best(work: Callable[[], object], runs: int = 7) -> float:
    """Seconds."""
    work()
    times = []
    for _ in range(runs):
        began = time.thread_time()
        work()
        times.append(time.thread_time() - began)
    return min(times)


def triples(values: int = 100) -> Found:
    """W1: E1 then E2 then E3 with the same attr1, as an executor that goes from the last event backwards finds them."""
    table = sase(EVENTS, values)
    query = Query(f"PATTERN SEQ(E1 a, E2 b, E3 c) WHERE [attr1] WITHIN {WINDOW}").bind(_schema(table))
    codes = table.column("type").combine_chunks().indices.to_numpy()
    table = table.take(pa.array(np.flatnonzero(codes < 3)))
    codes = table.column("type").combine_chunks().indices.to_numpy()
    times, keys = table.column("ts").to_numpy(), table.column("attr1").to_numpy()
    found = []
    for key in range(values):
        mine = np.flatnonzero(keys == key)
        a, b, c = (mine[codes[mine] == code] for code in range(3))
        found.append(_joined(a, b, c, times))
    rows = np.concatenate(found)
    rows = rows[np.lexsort((-rows[:, 0], -rows[:, 1], rows[:, 2]))]
    return Found(
        query,
        table,
        _spans(times),
        ColumnarMatches(np.ascontiguousarray(rows.T, np.int32), np.arange(3, dtype=np.uint8)),
    )


def _joined(a: np.ndarray, b: np.ndarray, c: np.ndarray, times: np.ndarray) -> np.ndarray:
    """All (a, b, c) in this order within the window."""
    first = np.searchsorted(times[a], times[c] - WINDOW, side="right")
    pairs = np.searchsorted(a, c) - first
    last = np.repeat(np.arange(len(c)), pairs)
    one = a[np.repeat(first - np.r_[0, np.cumsum(pairs)[:-1]], pairs) + np.arange(len(last))]
    low, high = np.searchsorted(b, one), np.searchsorted(b, c[last])
    between = high - low
    which = np.repeat(np.arange(len(one)), between)
    middle = b[np.repeat(low - np.r_[0, np.cumsum(between)[:-1]], between) + np.arange(len(which))]
    return np.stack([one[which], middle, c[last[which]]], axis=1)


def closures(number: int = 100_000, length: int = 200) -> Found:
    """Kleene matches of about `length` events, four or five places apart, which begin in order."""
    table = sase(EVENTS, 100)
    query = Query("PATTERN SEQ(ANY(E1, E2) + a[], E3 b) WITHIN 5000").bind(_schema(table))
    rng = np.random.default_rng(2)
    sizes = rng.integers(length // 2, 3 * length // 2, number)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    along = np.cumsum(rng.integers(1, 9, offsets[-1]))
    begins = np.sort(rng.integers(0, EVENTS - 8 * 3 * length // 2, number))
    events = along - np.repeat(along[offsets[:-1]] - begins, sizes)
    variables = np.zeros(len(events), np.uint8)
    variables[offsets[1:] - 1] = 1
    matches = Matches(offsets, events, variables)
    return Found(query, table, _spans(np.arange(EVENTS)), matches.take(np.argsort(matches.last, kind="stable")))


def _schema(table: pa.Table) -> Schema:
    return schema_on(table.schema, Schema())


def _spans(times: np.ndarray) -> Spans:
    return Spans(np.arange(len(times)), times, times)


def floor(found: Found) -> float:
    """Seconds to take every reference's columns and nothing else."""
    columns = [
        column.combine_chunks().indices.to_numpy() if pa.types.is_dictionary(column.type) else column.to_numpy()
        for column in found.table.columns
    ]
    return best(lambda: [column[found.matches.events] for column in columns])


def report(name: str, found: Found) -> None:
    strings = StringPool()
    store = ColumnStore.from_table(found.table, [], found.query.schema, strings)
    matches, references = len(found.matches), len(found.matches.events)
    selected = Selected.of(found.query, found.matches, in_order(found.matches, found.spans))
    hashes = used_hashes(found.query, EventRows(found.table), found.spans.step, found.matches)
    spent = {
        "order": best(lambda: in_order(found.matches, found.spans)),
        "hashes of events": best(
            lambda: used_hashes(found.query, EventRows(found.table), found.spans.step, found.matches)
        ),
        "ids": best(lambda: match_ids(found.query, selected, hashes)),
        "whole table": best(
            lambda: match_table(found.query, EventRows(found.table), found.spans, found.matches, store, strings)
        ),
        "NumPy gather": floor(found),
    }
    print(f"{name}: {matches:,} matches, {references:,} references, {found.table.num_columns} columns")
    for what, seconds in spent.items():
        each = f"{seconds / matches * 1e9:9.1f} ns a match {seconds / references * 1e9:7.2f} ns a reference"
        print(f"  {what:18} {seconds * 1e3:8.1f} ms {each} {references / seconds / 1e6:8.0f} M references/s")


def main() -> int:
    report("W1 V=100", triples())
    report("Kleene", closures())
    return 0


if __name__ == "__main__":
    sys.exit(main())
