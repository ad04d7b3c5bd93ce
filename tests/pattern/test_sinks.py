"""DECLARE SINK: the result of a query has the columns that its sink declares, in every spelling."""

from __future__ import annotations

import pytest

import kleene
from kleene.errors import UnfitResult

SOURCE = "DECLARE SOURCE t (acc int, amount float, at timestamp)\n"
ROWS = [{"type": "t", "ts": 1, "acc": 7, "amount": 50.0, "at": None}]


@pytest.mark.parametrize(
    ("sink", "query"),
    [
        ("acc int", "SELECT a.acc AS acc FROM t a"),
        ("acc float, match_id string, start int", "SELECT a.acc AS acc FROM t a"),
        ("a", "SELECT * FROM t a"),
        ("a, key, end", "PATTERN t a WHERE [acc]"),
        ("n int, big decimal", "PATTERN t+ a[] WITHIN 5 RETURN count(a) AS n, max(a.amount) AS big"),
        ("count string, last, graph", "PATTERN t+ a[] WITHIN 5 OUTPUT COMPRESSED"),
        ("a, cost float", "ρ{amount ↦ cost}(t a)"),
        ("", "SELECT * FROM t a"),
    ],
)
def test_what_fits(sink: str, query: str) -> None:
    text = f"{SOURCE}DECLARE SINK alerts ({sink})\n{query}"
    kleene.query(text).bind(checking=True)
    assert len(kleene.match([{**ROWS[0]}], text)) == 1


@pytest.mark.parametrize(
    ("sink", "query", "message"),
    [
        ("acc int", "SELECT a.acc FROM t a", "the result has no column `acc` for sink `alerts`"),
        ("acc int", "SELECT * FROM t a", "the result has no column `acc` for sink `alerts`"),
        ("key", "PATTERN t a", "the result has no column `key` for sink `alerts`"),
        ("a", "PATTERN t a RETURN a.acc", "the result has no column `a` for sink `alerts`"),
        ("b", "PATTERN t a ; !(t b) WITHIN 5", "the result has no column `b` for sink `alerts`"),
        ("acc string", "SELECT a.acc AS acc FROM t a", "declares `acc` as string, but the result holds int"),
        ("x int", "SELECT a.at AS x FROM t a", "declares `x` as int, but the result holds timestamp"),
        ("a int", "SELECT * FROM t a", "declares `a` as int, but the result holds nested or binary"),
        ("a int", "σ{amount > 1}(t a)", "declares `a` as int, but the result holds nested or binary"),
    ],
)
def test_what_does_not_fit(sink: str, query: str, message: str) -> None:
    text = f"{SOURCE}DECLARE SINK alerts ({sink})\n{query}"
    with pytest.raises(UnfitResult) as caught:
        kleene.query(text).bind(checking=True)
    assert message in caught.value.message
    assert (caught.value.line, caught.value.column) == (2, 14)


def test_times_are_those_of_the_data() -> None:
    text = "DECLARE SINK alerts (start timestamp)\nSELECT * FROM t a"
    kleene.query(text).bind(checking=True)  # nothing says yet what times are
    with pytest.raises(UnfitResult, match="declares `start` as timestamp, but the result holds int"):
        kleene.match(ROWS, text)


def test_several_queries_have_their_own_sinks() -> None:
    first = "DECLARE SINK small (acc int)\nSELECT a.acc AS acc FROM t a WHERE a.amount < 100"
    second = "DECLARE SINK large (amount float)\nSELECT a.amount AS amount FROM t a WHERE a.amount > 10"
    assert len(kleene.match(ROWS, [first, second])) == 2
