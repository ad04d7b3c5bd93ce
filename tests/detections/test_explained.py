"""Queries in EQL as `kleene.explain` shows them.

`explained.txt` holds queries and their texts; `KLEENE_WRITE=1 pytest tests/detections/test_explained.py` writes the
texts anew, and what changed is then read in the diff.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

import kleene

FILE = Path(__file__).with_name("explained.txt")
_NEXT, _TEXT = "=" * 72 + "\n", "\n\n--- explained\n"
ROWS = [{"type": "ABC"[ts % 3], "ts": ts, "k": ts % 2, "x": ts * 7 % 11} for ts in range(30)]


def test_texts_are_as_written() -> None:
    content = FILE.read_text(encoding="utf-8")
    queries = [part.partition(_TEXT)[0].strip() for part in content.split(_NEXT)]
    written = _NEXT.join(f"{text}{_TEXT}{kleene.explain(text).text}\n" for text in queries)
    if os.environ.get("KLEENE_WRITE"):
        FILE.write_text(written, encoding="utf-8")
    else:
        assert content == written


def lines(query: str, **options: object) -> list[str]:
    """The lines of a text, with single blanks."""
    return [" ".join(line.split()) for line in str(kleene.explain(query, **options)).splitlines()]  # type: ignore[arg-type]


def test_a_run_counts_at_each_operator() -> None:
    said = lines("SELECT * FROM A a ; B b WHERE a.x > 0, FILTER(a.k = b.k), b.x > 3", events=ROWS, analyze=True)
    # Of ten A one has x = 0; A and the B at the next step differ in k, so that each is taken four steps later.
    assert "counted 9 given" in said
    (taken,) = [line for line in said if "came," in line]
    given = len(kleene.match(ROWS, "SELECT * FROM A a ; B b WHERE a.x > 0, FILTER(a.k = b.k), b.x > 3"))
    assert taken.startswith(f"counted 9 came, {given} given, {8 - given} over, since what came next failed, ")
    assert taken.endswith("waited at most, 1 at the end, 8 looks")
    assert f"It ran: {given} matches in 30 events." in said
    assert re.search(r"It took \d+\.\d{3} s", "\n".join(said))


def test_events_that_end_others_are_counted() -> None:
    said = lines(r"SELECT * FROM (A a ; A b) \ B e", events=ROWS, analyze=True)
    assert "counted 9 came, 9 ended by an exception, 0 given" in said
    said = lines(r"SELECT * FROM A a ; (A b \ B e)", events=ROWS, analyze=True)
    assert any(line.startswith("counted 10 came, 0 given, 10 ended by ∅") for line in said)


def test_the_types_of_columns_decide_about_keys() -> None:
    query = "SELECT * FROM A a ; B b WHERE FILTER(a.x = b.x)"
    assert "waits a queue for each a.x (= b.x)" in lines(query)
    assert "keys if their columns hold integers, texts or truths: no types are known yet" in lines(query)
    assert "waits a queue for each a.x (= b.x)" in lines(query, events=ROWS)
    reals = [{**row, "x": 0.5} for row in ROWS]
    assert "waits one list, all of which is looked at" in lines(query, events=reals)


def test_columns_decide_whether_conditions_compile() -> None:
    query = "SELECT * FROM A a ; B T+ WHERE ALL(T.x) > 1 or ALL(T.k) > 1"
    (why,) = [line for line in lines(query, events=ROWS) if line.startswith("executor")]
    assert why == "executor reference evaluator, which is slow: two conditions on ALL in one OR"
    assert "reference evaluator" in kleene.explain(query, events=ROWS).mermaid
    assert any(line.startswith("It ran: ") for line in lines(query, events=ROWS, analyze=True))


@pytest.mark.parametrize(
    ("query", "line"),
    [
        ("SELECT * FROM A a ; A b", "on a stream bounded: what waits is taken by what comes next, or expires"),
        ("SELECT * FROM A a ; B b WHERE (a, b) OCCURS WITHIN 5", "until 5 after a began: (a, b) OCCURS WITHIN 5"),
        ("SELECT * FROM A a WHERE NOT (a, a) OCCURS WITHIN 5", "filter NOT (a) OCCURS WITHIN 5"),
        ("SELECT a FROM A a WHERE a.x > :low", "It cannot run yet: :low has no value."),
        ("DECLARE CLASS Big IS A WHERE x > 5 SELECT * FROM Big b", "Big is A where x > 5"),
    ],
)
def test_a_line(query: str, line: str) -> None:
    assert line in lines(query)


def test_the_picture_has_an_arrow_for_each_operand() -> None:
    picture = kleene.explain(r"SELECT * FROM A a ; (B b \ C c) WHERE a.x > 1").mermaid
    arrows = [line.strip() for line in picture.splitlines() if "->" in line]
    assert arrows == [
        "o2 --> o4",
        'o3 -.->|"unless"| o4',
        'o1 -->|"waits"| o5',
        'o4 -->|"next"| o5',
        "o5 --> result",
    ]
    assert 'o1(["A a<br/>a.x #62; 1"])' in picture


def test_it_is_explained_beside_others() -> None:
    text = kleene.explain(["SELECT a.x AS x FROM A a ; B b INTO Pair", "PATTERN Pair p ; C c WITHIN 5"]).text
    assert re.search(r"Pair +made by `Pair`; read by `q\w+`", text)
    assert "operators (NEXT §3.4)" in text
