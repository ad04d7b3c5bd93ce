"""Matches as walks write them, by variable: flat arrays of them and the rows of results agree."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import kleene
from kleene.engine.output.path_matches import PathMatches
from kleene.engine.output.runs import matches_of
from kleene.plan.settings import Settings

EVENTS = [
    {"type": kind, "ts": number, "x": (7 * number) % 5} for number, kind in enumerate("AABABCABCAABBCCABCABAC", 1)
]
QUERIES = {
    "a list, then one": "PATTERN SEQ(A+ a[], C c) WHERE skip_till_next_match { a[i].x >= a[i-1].x } WITHIN 9",
    "one, then a list": "PATTERN SEQ(C c, A+ a[]) WHERE skip_till_next_match { } WITHIN 9",
    "a list between two": "PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_next_match { } WITHIN 9",
    "two lists": "PATTERN SEQ(A+ a[], B+ b[], C c) WHERE skip_till_next_match { } WITHIN 9",
    "every list": "PATTERN SEQ(A+ a[], C c) WITHIN 6",
    "contiguous": "PATTERN SEQ(A+ a[], B b) WHERE strict_contiguity { } WITHIN 9",
}


@pytest.mark.parametrize("text", QUERIES.values(), ids=QUERIES)
def test_rows_are_those_of_flat_matches(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[PathMatches] = []

    def watched(*given: Any) -> PathMatches:
        made.append(matches_of(*given))
        return made[-1]

    monkeypatch.setattr("kleene.engine.output.selection.matches_of", watched)
    found = kleene.match(pa.Table.from_pylist(EVENTS), text, settings=Settings(threads=1))
    (paths,) = made
    assert paths.number == len(paths.events) == len(paths.variables) == paths.offsets[-1]
    assert paths.first.tolist() == paths.events[paths.offsets[:-1]].tolist()
    assert paths.last.tolist() == paths.events[paths.offsets[1:] - 1].tolist()
    names = [name for name in ("a", "b", "c") if name in found.column_names]
    if text.startswith("PATTERN SEQ(C"):
        names.reverse()
    useful = [event for event in EVENTS if f"{event['type']} " in text or f"{event['type']}+" in text]
    flat = []
    for match in range(len(paths)):
        begin, end = paths.offsets[match], paths.offsets[match + 1]
        pairs = zip(paths.variables[begin:end].tolist(), paths.events[begin:end].tolist(), strict=True)
        flat.append([(names[variable], useful[event]["ts"]) for variable, event in pairs])
    rows = [[(name, each["ts"]) for name in names for each in _listed(row[name])] for row in found.to_pylist()]
    assert rows
    assert sorted(rows) == sorted(flat)
    ends = [(row["end"], -row["start"]) for row in found.to_pylist()]
    assert ends == sorted(ends)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def test_what_ends_together_comes_from_the_latest_start() -> None:
    """Runs that became one are written by their links, which is another order."""
    text = "PATTERN SEQ(A+ a[], C c) WHERE skip_till_next_match { a[i].x > a[i-1].x } WITHIN 20"
    events = [{"type": kind, "ts": ts, "x": x} for ts, (kind, x) in enumerate([("A", 1), ("A", 0), ("A", 5), ("C", 0)])]
    found = kleene.match(events, text, settings=Settings(threads=1))
    assert [[each["ts"] for each in match["a"]] for match in found] == [[2], [1, 2], [0, 2]]


@pytest.mark.parametrize("number", [11, 12, 13, 14])
@pytest.mark.parametrize("second", ["", "B+ b[], "], ids=["one list", "two lists"])
def test_more_paths_than_there_was_room_for(number: int, second: str) -> None:
    """Rows of single variables and sizes of lists have as much room as offsets have, however often it grows."""
    kinds = ["A"] * number + ["B"] * bool(second) + ["C", "C"]
    events = pa.table({"type": kinds, "ts": range(len(kinds)), "x": range(len(kinds))})
    found = kleene.match(events, f"PATTERN SEQ(A+ a[], {second}C c)", settings=Settings(threads=1))
    assert found.num_rows == 2 * (2**number - 1)
    lists = {tuple(each["ts"] for each in row) for row in found.column("a").to_pylist()}
    assert len(lists) == 2**number - 1
    assert max(max(each) for each in lists) == number - 1
    assert {row["ts"] for row in found.column("c").to_pylist()} == {len(kinds) - 2, len(kinds) - 1}
