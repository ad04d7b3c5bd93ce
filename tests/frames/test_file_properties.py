"""Files of any content: good rows are read, bad ones are named by their lines, nothing ends in a traceback."""

from __future__ import annotations

import contextlib
import json
from io import BytesIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kleene import KleeneError
from kleene.frames.files import read_events, write_stream

GOOD_WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=8)
PIECES = [b"type", b"ts", b",", b'"', b"\n", b"\r\n", b"1", b"-7", b"2024-01-01", b"\xff", b"{", b"}", b":", b"[", b" "]
CHAOS = st.lists(st.one_of(st.sampled_from(PIECES), st.binary(max_size=3)), max_size=60).map(b"".join)


@pytest.mark.parametrize("format", ["csv", "tsv", "jsonl", "parquet"])
@given(data=CHAOS)
@settings(max_examples=150, deadline=None)
def test_no_content_raises_anything_else(format: str, data: bytes) -> None:
    with contextlib.suppress(KleeneError):
        events = read_events(BytesIO(data), format)
        write_stream(events.table, BytesIO(), "jsonl")
        events.table.validate(full=True)


@st.composite
def lines_of_json(draw: st.DrawFn) -> tuple[list[bytes], list[int], list[int]]:
    """Lines, the times of the good ones, and the numbers of the bad ones."""
    lines, times, bad = [b'{"type": "A", "ts": 0, "x": 1}'] * 9, [0] * 9, []
    for number in range(10, 10 + draw(st.integers(1, 8))):
        kind = draw(st.sampled_from(["good", "blank", "broken", "no object", "other type", "no time"]))
        good = {"type": "B", "ts": number, "x": number / 2, "w": draw(GOOD_WORDS)}
        text = {
            "good": json.dumps(good),
            "blank": draw(st.sampled_from(["", "  ", "\r"])),
            "broken": json.dumps(good)[: draw(st.integers(1, 12))],
            "no object": draw(st.sampled_from(["[]", "5", '"x"', "true", "null", "[{}]"])),
            "other type": json.dumps({**good, "x": "many"}),
            "no time": json.dumps({**good, "ts": None}),
        }[kind]
        lines.append(text.encode())
        if kind == "good":
            times.append(number)
        elif kind != "blank":
            bad.append(number)
    return lines, times, bad


@given(made=lines_of_json())
@settings(max_examples=150, deadline=None)
def test_json_lines_are_sorted_into_good_and_bad(made: tuple[list[bytes], list[int], list[int]]) -> None:
    lines, times, bad = made
    events = read_events(BytesIO(b"\n".join(lines)), "jsonl")
    assert events.table.column("ts").to_pylist() == times
    assert [row.line for row in events.bad_rows] == bad


@st.composite
def lines_of_csv(draw: st.DrawFn) -> tuple[list[str], list[tuple[int, str]], list[int]]:
    """Records, the good ones' times and words, and the lines at which the bad ones stand."""
    records, good, bad, line = ["ts,w"], [], [], 2
    for time in range(9 + draw(st.integers(1, 8))):
        kind = "good" if time < 9 else draw(st.sampled_from(["good", "blank", "short", "long", "no time", "odd time"]))
        word = draw(GOOD_WORDS) + "."
        quoted = '"' + word.replace('"', '""') + '"'
        records.append(
            {
                "good": f"{time},{quoted}",
                "blank": "",
                "short": f"{time}",
                "long": f"{time},a,b",
                "no time": ",a",
                "odd time": "soon,a",
            }[kind]
        )
        if kind == "good":
            good.append((time, word))
        elif kind != "blank":
            bad.append(line)
        line += 1 + records[-1].count("\n")
    return records, good, bad


@given(made=lines_of_csv())
@settings(max_examples=150, deadline=None)
def test_csv_records_are_sorted_into_good_and_bad(made: tuple[list[str], list[tuple[int, str]], list[int]]) -> None:
    records, good, bad = made
    events = read_events(BytesIO("\n".join(records).encode()), "csv")
    assert [(row["ts"], row["w"]) for row in events.table.to_pylist()] == good
    assert [row.line for row in events.bad_rows] == bad
