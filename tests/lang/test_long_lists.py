"""`IN` with very many values: read as one token, bound once, and the same tree as a list read item by item."""

from __future__ import annotations

import pytest
from tests.timing import quickest

import kleene
from kleene.errors import BadLiteral, BadParameter
from kleene.lang import format_query, parse
from kleene.pattern.expressions import Among, Comparison

LISTS = ["1, 2", "-1, 2.5, -0.5", "'a', 'it''s', ''", "1 ,\n  'b',3", "-9223372036854775808, 5", "1, 1, 1"]


@pytest.mark.parametrize("listed", LISTS)
@pytest.mark.parametrize("negated", ["", "NOT "])
def test_a_plain_list_means_what_it_means_item_by_item(listed: str, negated: str) -> None:
    """A comment before the last bracket makes the list one that is read item by item."""
    plain = parse(f"PATTERN A a WHERE a.x {negated}IN ({listed})")
    by_item = parse(f"PATTERN A a WHERE a.x {negated}IN ({listed} /**/)")
    assert plain == by_item
    assert parse(format_query(plain)) == plain


def test_items_have_their_places() -> None:
    with pytest.raises(BadLiteral, match="does not fit 64 bits") as raised:
        parse("PATTERN A a WHERE a.x IN (1, 99999999999999999999, 3)")
    assert (raised.value.line, raised.value.column) == (1, 30)


@pytest.mark.slow
def test_time_grows_with_the_number_of_values_and_not_faster() -> None:
    rows = [{"type": "A", "ts": 1, "x": 5}]

    def taken(count: int) -> float:
        text = f"PATTERN A a WHERE a.x IN ({', '.join(map(str, range(count)))})"
        return quickest(lambda: kleene.match(rows, text), times=3)

    few, many = taken(10_000), taken(100_000)
    print(f"IN: {few:.2f} s for 10 000 values, {many:.2f} s for 100 000")
    assert many < 20 * few
    assert many < 7


LONG = list(range(-3, 40, 2))


@pytest.mark.parametrize("negated", ["", "NOT "])
@pytest.mark.parametrize(
    ("listed", "params"),
    [
        (f"({', '.join(map(str, LONG))})", {}),
        (":listed", {"listed": LONG}),
        (":listed", {"listed": set(LONG)}),
        (":listed", {"listed": [*LONG, *LONG]}),
    ],
)
def test_a_long_list_is_one_literal_wherever_it_comes_from(
    negated: str, listed: str, params: dict[str, object]
) -> None:
    rows = [{"type": "A", "ts": ts, "x": ts - 5} for ts in range(50)]
    text = f"PATTERN A a WHERE a.x {negated}IN {listed}"
    (clause,) = kleene.Query(text, params=params).on(rows).conditions.positive
    assert [type(literal) for literal in clause.literals] == [Among]
    matched = kleene.match(rows, text, params=params)
    assert [match["a"]["x"] for match in matched] == [row["x"] for row in rows if (row["x"] in LONG) == (not negated)]


@pytest.mark.parametrize("values", [[*LONG, None], [*LONG, 1.5], LONG[:5]], ids=["NULL", "a real", "few"])
def test_other_lists_are_compared_value_by_value(values: list[object]) -> None:
    rows = [{"type": "A", "ts": 1, "x": 1}]
    (clause,) = kleene.Query("PATTERN A a WHERE a.x IN :p", params={"p": values}).on(rows).conditions.positive
    assert {type(literal) for literal in clause.literals} == {Comparison}


def test_bad_values_in_a_long_list_are_refused_by_name() -> None:
    rows = [{"type": "A", "ts": 1, "x": 1, "s": "u"}]
    with pytest.raises(BadParameter, match="`:p` does not fit 64 bits"):
        kleene.match(rows, "PATTERN A a WHERE a.x IN :p", params={"p": [*LONG, 2**63]})
    with pytest.raises(BadParameter, match="half a character"):
        kleene.match(rows, "PATTERN A a WHERE a.s IN :p", params={"p": [*map(str, LONG), "\ud800"]})
    with pytest.raises(BadParameter, match="is a list"):
        kleene.match(rows, "PATTERN A a WHERE a.x IN :p", params={"p": [*LONG, [1]]})
