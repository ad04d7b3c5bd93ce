"""Times with and without a zone in one column: which moment the others mean nobody can say, so it is an error."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pandas
import pyarrow as pa
import pytest

import kleene
from kleene.errors import MixedZones
from kleene.frames.files import read_events

NAIVE, ZONED = datetime(2024, 1, 1, 10), datetime(2024, 1, 1, 11, tzinfo=UTC)
QUERY = "PATTERN A a ; B b"


@pytest.mark.parametrize("times", [(NAIVE, ZONED), (ZONED, NAIVE)], ids=["naive first", "zoned first"])
def test_rows_and_objects_of_pandas(times: tuple[datetime, datetime]) -> None:
    rows = [{"type": kind, "ts": time} for kind, time in zip("AB", times, strict=True)]
    naive = times.index(NAIVE) + 1
    said = rf"`ts` have no time zone in row {naive} and have one in row {3 - naive}"
    with pytest.raises(MixedZones, match=said):
        kleene.match(rows, QUERY)
    frame = pandas.DataFrame({"type": ["A", "B"], "ts": pandas.Series(times, dtype=object)})
    with pytest.raises(MixedZones, match=said):
        kleene.match(frame, QUERY)


def test_a_column_that_is_no_time_is_one_of_the_columns() -> None:
    rows = [
        {"type": "A", "ts": 1, "paid": NAIVE},
        {"type": "B", "ts": 2, "paid": None},
        {"type": "B", "ts": 3, "paid": ZONED},
    ]
    with pytest.raises(MixedZones, match="`paid` have no time zone in row 1 and have one in row 3"):
        kleene.match(rows, QUERY)


def test_streams_are_named() -> None:
    streams = {"A": pa.table({"ts": [NAIVE]}), "B": pa.table({"ts": pa.array([ZONED], pa.timestamp("us", "UTC"))})}
    with pytest.raises(MixedZones, match="no time zone in A and have one in B"):
        kleene.match(streams, QUERY)


@pytest.mark.parametrize("name", ["events.csv", "events.jsonl"])
def test_half_of_a_text_file(name: str, tmp_path: Path) -> None:
    lines = {
        "events.csv": "type,ts\nA,2024-01-01T10:00:00\nB,2024-01-01T11:00:00Z\n",
        "events.jsonl": '{"type":"A","ts":"2024-01-01T10:00:00"}\n{"type":"B","ts":"2024-01-01T11:00:00Z"}\n',
    }
    (tmp_path / name).write_text(lines[name])
    with pytest.raises(MixedZones, match="no time zone in row 1 and have one in row 2"):
        read_events(tmp_path / name)


def test_one_kind_alone_is_fine() -> None:
    rows = [{"type": "A", "ts": ZONED}, {"type": "B", "ts": None}, {"type": "B", "ts": ZONED.replace(hour=12)}]
    assert len(kleene.match(rows, QUERY)) == 1
    frame = pandas.DataFrame({"type": list("ABB"), "ts": pandas.Series([NAIVE, pandas.NaT, NAIVE], dtype=object)})
    assert len(kleene.match(frame, "PATTERN A a")) == 1
