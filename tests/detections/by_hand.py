"""Queries in EQL whose matches were found by hand, for what definitions and engine are given alike: their binding."""

from __future__ import annotations

import pyarrow as pa

import kleene
from kleene.algebra.eql_query import EqlQuery
from kleene.testing import reference_match

_COLUMNS = pa.schema([("type", pa.string()), ("ts", pa.int64()), ("k", pa.int64())])

# The query, its events (`a1:7` is an A at 1 whose k is 7, `a1:-` one without), and the events of each match by alias.
CASES: tuple[tuple[str, str, list[str]], ...] = (
    # c3 is a suffix of b2 c3: of two histories that end alike the longer one is the first.
    ("A a ; ((B b ; C c) | C d)", "a1 b2 c3", ["a1 b2 c3"]),
    ("A a ; (C d | (B b ; C c))", "a1 b2 c3", ["a1 b2 c3"]),
    # NULL is equal to nothing.
    ("A a ; B b WHERE FILTER(a.k = b.k)", "a1:- b2:- b3:1", []),
    # A FILTER skips b2, any other condition is tested of the first B alone.
    ("A a ; B b WHERE FILTER(a.k = b.k)", "a1:1 b2:2 b3:1", ["a1 b3"]),
    ("A a ; B b WHERE a.k = b.k", "a1:1 b2:2 b3:1", []),
    # What names the first operand alone filters it; what names the second alone is tested where it comes.
    ("A a ; B b WHERE a.k = 1", "a1:1 a2:2 b3:1", ["a1 b3"]),
    ("A a ; B b WHERE b.k = 1", "a1:1 b2:2 b3:1", []),
    # Inside a branch of `|` it filters there.
    ("A a ; (B b | C c) WHERE b.k = 1", "a1:1 b2:2 b3:1 c4", ["a1 b3"]),
    # An exception without a condition ends every run, one with a condition its own.
    ("A a ; (B b \\ C c)", "a1 a2 c3 b4", []),
    ("A a ; (B b \\ C c) WHERE a.k = c.k", "a1:1 a2:2 c3:1 b4", ["a2 b4"]),
    # λ is wholly known at the outer `;` only: the run of b2 lives on, and d3 is none of a1's.
    ("A a ; ((B b ; (C c \\ D d)) | E e) WHERE a.k = d.k", "a1:1 b2 d3:9 c4", ["a1 b2 c4"]),
    ("A a ; ((B b ; (C c \\ D d)) | E e) WHERE a.k = d.k", "a1:1 b2 d3:1 c4", []),
    # A bound on both ends of a chain, and one on what a timer makes later: of b it is b's own time.
    ("A a ; B b ; C c WHERE (a, c) OCCURS WITHIN 3", "a1 a2 b3 c5", ["a2 b3 c5"]),
    ("A a ; (B b @ 5) WHERE (a, b) OCCURS WITHIN 3", "a1 b3", ["a1 b3"]),
    # A condition on an iteration alone is its own: runs go on while it holds.
    ("A a ; B b+ WHERE FILTER(PREV(b.k) < 5)", "a1 b2:9 b3:1", ["a1 b2"]),
    ("A a+ WHERE PREV(a.k) < 5", "a1:9 a2:1 a3:1", ["a1", "a2", "a2 a3", "a3"]),
)


def events_of(stream: str) -> pa.Table:
    rows = []
    for word in stream.split():
        moment, _, key = word[1:].partition(":")
        rows.append({"type": word[0].upper(), "ts": int(moment), "k": None if key == "-" else int(key or 0)})
    return pa.Table.from_pylist(rows, schema=_COLUMNS)


def words(matches: pa.Table) -> list[str]:
    names = [name for name in matches.column_names if name not in ("match_id", "query", "start", "end")]
    found = []
    for row in matches.to_pylist():
        lists = {name: row[name] if isinstance(row[name], list) else [row[name]] for name in names}
        found.append(" ".join(f"{name}{event['ts']}" for name in names for event in lists[name] if event is not None))
    return sorted(found)


def check_by_hand(number: int) -> None:
    text, stream, expected = CASES[number % len(CASES)]
    query = EqlQuery(f"SELECT * FROM {text}", spelling="next")
    table = events_of(stream)
    found: pa.Table = kleene.match(table, query)
    assert words(found) == expected, (text, stream)
    assert found["match_id"].to_pylist() == list(reference_match(table, query).ids)
