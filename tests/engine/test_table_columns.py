"""Columns of results of every type, their order, and results of nothing."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.engine.retained import Retained, compare, evaluated

from kleene.engine.output import tables
from kleene.engine.output.matches import Matches
from kleene.engine.output.ordering import Spans, in_order
from kleene.engine.output.returned import check_returns
from kleene.frames.arrow import schema_on
from kleene.pattern import Query, Schema
from kleene.plan.program import NotCompilable
from kleene.reference import tables as expected_tables

TYPES = {
    "type": pa.dictionary(pa.int32(), pa.string()),
    "ts": pa.timestamp("ms"),
    "i": pa.int16(),
    "r": pa.float32(),
    "p": pa.bool_(),
    "s": pa.large_string(),
    "c": pa.dictionary(pa.int8(), pa.string()),
    "d": pa.duration("s"),
    "day": pa.date32(),
    "money": pa.decimal128(10, 2),
    "nested": pa.list_(pa.int64()),
}


def _typed(rows: int = 40) -> pa.Table:
    """Events of types A and B, two at a time, with NULL in every column but the first two, in chunks of ten."""
    rng = random.Random(3)
    moment = datetime(2024, 1, 31)

    def some(value: Any) -> Any:
        return None if rng.random() < 0.2 else value

    chunks = []
    for begin in range(0, rows, 10):
        places = range(begin, begin + 10)
        columns = {
            "type": [rng.choice("AB") for _ in places],
            "ts": [moment + timedelta(milliseconds=place // 2) for place in places],
            "i": [some(place) for place in places],
            "r": [some(place / 8) for place in places],
            "p": [some(rng.random() < 0.5) for _ in places],
            "s": [some(rng.choice(("é", "", "long enough not to be inlined"))) for _ in places],
            "c": [some(rng.choice("uvw")) for _ in places],
            "d": [some(timedelta(seconds=place)) for place in places],
            "day": [some(date(2024, 1, 1) + timedelta(days=place)) for place in places],
            "money": [some(Decimal(place) / 4) for place in places],
            "nested": [some([place]) for place in places],
        }
        chunks.append(pa.table({name: pa.array(columns[name], kind) for name, kind in TYPES.items()}))
    # Dictionaries differ from chunk to chunk, and no chunk begins at the beginning of its buffers.
    return pa.concat_tables([chunk.slice(1) for chunk in chunks])


TYPED = [
    "PATTERN SEQ(A+ a[], B b) WITHIN 4 milliseconds",
    "PATTERN SEQ(A a, B? b, A c) WHERE [c] WITHIN 6 milliseconds",
    "PATTERN SEQ(A+ a[], B b) WITHIN 4 milliseconds RETURN min(a[..].i) AS i, max(a[..].s) AS s, first(a[..].c) AS c, "
    "last(a[..].d) AS d, min(a[..].day) AS day, max(a[..].ts) AS ts, last(a[..].p) AS p, max(a[..].r) AS r, a.LEN AS n",
    "PATTERN SEQ(A+ a[], B b) WITHIN 4 milliseconds RETURN a[1].money AS m, a[a.LEN].nested AS nested, b.s AS s, "
    "b.c AS c, b.p AS p, b.ts - a[1].ts AS took, b.ts + b.d AS later, b.day + 1 day AS next, sum(a[..].i) / 3 AS i, "
    "sum(a[..].i) AS total, avg(a[..].r) AS mean, count(a[..].money) AS paid, a AS events, -b.d AS less, b.r * 2 AS r",
    "PATTERN SEQ(A a, B? b) WITHIN 4 milliseconds RETURN b.s AS s, b.nested AS nested, b AS b, 5 AS five, 2.5 AS half, "
    "'text' AS text, TRUE AS yes, TIMESTAMP '2024-01-31T00:00:00.0000015' AS t, 90 seconds AS d, a.i % 0 AS nothing",
]


@pytest.mark.parametrize("text", TYPED)
def test_columns_of_all_types(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    retained, whole = evaluated(_typed(), Query(text), Schema())
    assert len(retained.result.matches) > 20
    compare(retained, whole, random.Random(text))
    monkeypatch.setattr(tables, "PIECE", 7)
    compare(retained, whole, random.Random(text))


def test_few_matches_of_many_chunks() -> None:
    retained, whole = evaluated(_typed(), Query(TYPED[0]), Schema())
    parts = [retained.table.slice(at, 3) for at in range(0, retained.table.num_rows, 3)]
    chunked = Retained(retained.result, pa.concat_tables(parts), retained.spans, retained.numbers)
    wanted = expected_tables.match_table(retained.result, whole).to_pylist()
    for place, match in enumerate(retained.result.matches[:40]):
        assert chunked.made([match]).to_pylist() == [wanted[place]]


def test_no_events() -> None:
    retained, _ = evaluated(_typed(), Query(TYPED[2]), Schema())
    nothing = np.zeros(0, np.int64)
    empty = Retained(retained.result, retained.table.slice(0, 0), Spans(nothing, nothing, nothing), {})
    assert empty.made([]).num_rows == 0


def test_no_matches() -> None:
    for text in TYPED:
        retained, _ = evaluated(_typed(), Query(text), Schema())
        made = retained.made([])
        assert made.num_rows == 0
        assert made.schema == expected_tables.match_table(retained.result, _typed()).schema


@pytest.mark.parametrize("value", ["a.money * 2", "max(b[..].money)", "first(b[..].nested)"])
def test_what_has_no_program_is_known_before(value: str) -> None:
    table = _typed()
    query = Query(f"PATTERN SEQ(A a, B+ b[]) WITHIN 2 milliseconds RETURN {value} AS v")
    with pytest.raises(NotCompilable):
        check_returns(query.bind(schema_on(table.schema, Schema())), table.schema)


# Order


def test_many_matches_that_end_together() -> None:
    """Long groups, long lists, shared beginnings, absent variables, and lengths that fill 64 bits."""
    rng = random.Random(5)
    for far in (1, 2**61):
        time = np.sort(np.array([rng.randrange(60) * far // 16 for _ in range(200)], np.int64))
        listed = []
        for _ in range(3000):
            groups = [sorted(rng.sample(range(40), rng.randint(0, 2))), sorted(rng.sample(range(30, 190), 3)), []]
            groups[2] = [rng.choice((195, 199))] if rng.random() < 0.7 else []
            listed.append(groups)
        flat = [[(place, event) for place, group in enumerate(groups) for event in group] for groups in listed]
        matches = Matches(
            np.cumsum([0, *map(len, flat)]),
            np.array([event for match in flat for _, event in match], np.int64),
            np.array([place for match in flat for place, _ in match], np.uint8),
        )

        def key(number: int) -> Any:
            moments = [int(time[event]) for _, event in flat[number]]  # noqa: B023
            return max(moments), -min(moments), listed[number]  # noqa: B023

        ordered = in_order(matches, Spans(np.arange(200), time, time.copy()))
        assert [key(number) for number in ordered.numbers] == sorted(map(key, range(len(flat))))


@pytest.mark.soak
def test_without_a_compiler() -> None:
    """The same kernels as plain Python functions."""
    chosen = "test_columns_of_all_types or test_few_matches or (test_tables_agree and (closure or durations))"
    files = [str(Path(__file__)), str(Path(__file__).with_name("test_tables.py"))]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *files, "-k", chosen]
    done = subprocess.run(command, env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]
