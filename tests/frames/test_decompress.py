"""A compressed result can be unfolded whatever table it has been in, and says so when it cannot."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.timing import quickest

import kleene
from kleene.errors import NotCompressed, UnknownKind
from kleene.frames.files import write_table

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
EVENTS = [
    {
        "type": kind,
        "ts": NOON + timedelta(minutes=at),
        "id": int(at != 1),
        "x": None if at == 3 else at / 4,
        "note": "é",
    }
    for at, kind in enumerate("AAACABAB")
]
PATTERN = "PATTERN A+ a[] ; C? c ; B b WHERE [id] WITHIN 2 hours"
TYPES = {"A": {"id": "int", "x": "float"}, "B": {"id": "int"}, "C": {"id": "int", "x": "float", "note": "string"}}


def rows_of(found: Any) -> list[dict[str, Any]]:
    """A verbose result of any kind as rows."""
    if isinstance(found, pd.DataFrame):
        return list(found.to_dict("records"))
    if isinstance(found, pl.DataFrame):
        return found.to_dicts()
    return list(found if isinstance(found, list) else found.to_pylist())


@pytest.mark.parametrize("schema", [None, kleene.Schema(types=TYPES)], ids=["open", "declared"])
@pytest.mark.parametrize("kind", [list, pa.Table.from_pylist, pd.DataFrame, pl.DataFrame, pa.RecordBatch.from_pylist])
def test_every_kind_of_table(kind: Any, schema: kleene.Schema | None) -> None:
    shared = kleene.match(kind(EVENTS), f"{PATTERN} OUTPUT COMPRESSED", schema=schema)
    verbose = rows_of(kleene.match(kind(EVENTS), PATTERN, schema=schema))
    found = list(kleene.decompress(shared))
    assert len(found) == len(verbose) == 28
    for match, expected in zip(found, verbose, strict=True):
        assert repr_of(match) == repr_of(expected)


def repr_of(value: Any) -> Any:
    """NaN is NaN, and pandas' timestamps are moments."""
    if isinstance(value, dict):
        return {name: repr_of(part) for name, part in value.items()}
    if isinstance(value, list):
        return [repr_of(part) for part in value]
    return None if value is None or value != value else value


def test_a_lazy_frame_a_batch_and_some_of_the_rows() -> None:
    shared = kleene.match(pl.DataFrame(EVENTS), f"{PATTERN} OUTPUT COMPRESSED")
    whole = list(kleene.decompress(shared))
    assert list(kleene.decompress(shared.lazy())) == whole
    table = kleene.match(pa.Table.from_pylist(EVENTS), f"{PATTERN} OUTPUT COMPRESSED")
    batches = table.to_batches()
    assert [row["match_id"] for batch in batches for row in kleene.decompress(batch, within=table)] == [
        row["match_id"] for row in whole
    ]
    assert (
        list(kleene.decompress(table.slice(1), within=table))
        == list(kleene.decompress(table))[int(table["count"][0].as_py()) :]
    )
    assert list(kleene.decompress(table.select(["graph", "end", "query", "key"]))) == list(kleene.decompress(table))


def test_through_parquet(tmp_path: Path) -> None:
    table = kleene.match(pa.Table.from_pylist(EVENTS), f"{PATTERN} OUTPUT COMPRESSED")
    pq.write_table(table, tmp_path / "shared.parquet")
    expected = list(kleene.decompress(table))
    assert pq.read_table(tmp_path / "shared.parquet").equals(table)
    assert list(kleene.decompress(pq.read_table(tmp_path / "shared.parquet"))) == expected
    assert list(kleene.decompress(pl.read_parquet(tmp_path / "shared.parquet"))) == expected
    # pandas turns lists into arrays, integers with NULLs into floats, and drops time zones inside structs.
    read = list(kleene.decompress(pd.read_parquet(tmp_path / "shared.parquet")))
    assert [row["match_id"] for row in read] == [row["match_id"] for row in expected]
    assert [[event["x"] for event in row["a"]] for row in read] == [
        [event["x"] for event in row["a"]] for row in expected
    ]


def test_through_json_lines(tmp_path: Path) -> None:
    rows = [{"type": kind, "ts": at} for at, kind in enumerate("AAB")]
    table = kleene.match(pa.Table.from_pylist(rows), "PATTERN A+ a[] ; B b OUTPUT COMPRESSED")
    write_table(table, tmp_path / "shared.jsonl")
    read = [json.loads(line) for line in (tmp_path / "shared.jsonl").read_text(encoding="utf-8").splitlines()]
    assert list(kleene.decompress(read)) == list(kleene.decompress(table))


def test_times_of_every_kind() -> None:
    for kind in (pa.int32(), pa.date32(), pa.timestamp("ns"), pa.timestamp("s", "Europe/Berlin")):
        days = pa.array([1, 2, 3], pa.int32())
        ts = days.cast(kind) if kind in (pa.int32(), pa.date32()) else days.cast(pa.int64()).cast(kind)
        table = pa.table({"type": ["A", "A", "B"], "ts": ts})
        shared = kleene.match(table, "PATTERN A+ a[] ; B b OUTPUT COMPRESSED")
        assert list(kleene.decompress(shared)) == kleene.match(table, "PATTERN A+ a[] ; B b").to_pylist()


def test_simultaneous_completing_events_have_rows_of_their_own() -> None:
    rows = [{"type": "A", "ts": 1, "x": 0}, {"type": "B", "ts": 2, "x": 1}, {"type": "B", "ts": 2, "x": 2}]
    shared = kleene.match(rows, "PATTERN A a ; B b OUTPUT COMPRESSED")
    assert [row["last"]["x"] for row in shared] == [1, 2]
    assert [row["b"]["x"] for row in kleene.decompress(shared)] == [1, 2]


def test_nothing_is_made_in_advance() -> None:
    shared = kleene.match(EVENTS, f"{PATTERN} OUTPUT COMPRESSED")
    shared[1]["graph"] = None
    found = kleene.decompress(shared)
    assert len(list(islice(found, int(shared[0]["count"])))) == int(shared[0]["count"])
    with pytest.raises(NotCompressed, match="a graph is a struct, not a NoneType"):
        next(found)


def test_a_large_graph_begins_soon() -> None:
    """`A+ a[] ; B b` over 600 A and a B: 180,000 links, and 2^600 − 1 matches."""
    size = 600
    rows = [{"type": kind, "ts": at} for at, kind in enumerate("AB")]
    shared = kleene.match(pa.Table.from_pylist(rows), "PATTERN A+ a[] ; B b OUTPUT COMPRESSED")
    links = [[-1, *range(event)] for event in range(size)] + [list(range(size))]
    graph = {
        **shared.column("graph")[0].as_py(),
        "nodes": [{"variable": int(event == size), "event": event} for event in range(size + 1)],
        "offsets": [0, *accumulate(map(len, links))],
        "predecessors": [link for listed in links for link in listed],
        "ends": [size],
        "events": [{"type": "AB"[event == size], "ts": event} for event in range(size + 1)],
        "starts": list(range(size + 1)),
        "hashes": list(range(size + 1)),
    }
    table = pa.table({"query": ["q"], "end": [size], "graph": pa.array([graph], shared.schema.field("graph").type)})

    def first() -> list[list[int]]:
        return [[event["ts"] for event in row["a"]] for row in islice(kleene.decompress(table), 4)]

    assert first() == [[599], [598], [598, 599], [597]]
    assert quickest(first, times=2) < 0.5


@pytest.mark.parametrize("kind", [list, pa.Table.from_pylist, pd.DataFrame, pl.DataFrame])
def test_a_verbose_result_is_refused_at_once(kind: Any) -> None:
    with pytest.raises(NotCompressed, match="no column `graph`"):
        kleene.decompress(kleene.match(kind(EVENTS), PATTERN))


@pytest.mark.parametrize("kind", [list, pa.Table.from_pylist, pd.DataFrame, pl.DataFrame])
def test_no_rows_have_no_matches(kind: Any) -> None:
    shared = kleene.match(kind(EVENTS), "PATTERN B b ; A a ; A aa ; A aaa OUTPUT COMPRESSED")
    assert len(shared) == 0
    assert list(kleene.decompress(shared)) == []


def test_what_is_no_table() -> None:
    shared = kleene.match(EVENTS, f"{PATTERN} OUTPUT COMPRESSED")
    with pytest.raises(NotCompressed, match="pass a list of rows"):
        kleene.decompress(shared[0])
    with pytest.raises(UnknownKind):
        kleene.decompress(42)
    without = [{name: value for name, value in row.items() if name != "end"} for row in shared]
    with pytest.raises(NotCompressed, match="no column `end`"):
        kleene.decompress(without)


def test_some_rows_need_the_result_that_they_are_from() -> None:
    shared = kleene.match(EVENTS, f"{PATTERN} OUTPUT COMPRESSED")
    matches, first = list(kleene.decompress(shared)), int(shared[0]["count"])
    assert any(not row["graph"]["nodes"] for row in shared[1:])
    assert list(kleene.decompress(shared[1:], within=shared)) == matches[first:]
    with pytest.raises(NotCompressed, match="shares its matches with another one"):
        list(kleene.decompress(shared[1:]))
    backwards = [match["match_id"] for row in reversed(shared) for match in kleene.decompress([row], within=shared)]
    assert [match["match_id"] for match in kleene.decompress(shared[::-1])] == backwards, "a host after its rows"
