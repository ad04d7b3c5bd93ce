"""A wrong expression gets one error, with its code, its place and what to do."""

from __future__ import annotations

import pytest

from kleene import Schema
from kleene.algebra.query import StreamQuery
from kleene.errors import QueryError, TypeMismatch

STOCK = Schema(
    types={"Stock": {"name": "string", "price": "float", "vol": "int"}, "Trade": {"name": "string", "size": "int"}},
    columns={"type": "string", "ts": "int", "name": "string", "price": "float", "vol": "int", "size": "int"},
)
TIMES = Schema(columns={"type": "string", "ts": "timestamp", "p": "int"})

WRONG = [
    ("σ{prize > 5}(Stock)", "KL203", "prize", "did you mean `price`?"),
    ("σ{Stock.prize > 5}(Stock)", "KL203", "prize", "did you mean `price`?"),
    ("σ{vol > 5} ∘ π{name}(Stock)", "KL203", "vol", "π has dropped `Stock.vol`"),
    ("σ{b.vol > 5}(Stock a)", "KL202", "b", "known here: `a`"),
    ("σ{name = 'x'}(Stock a ; Stock b)", "KL204", "name", "say which stream is meant"),
    ("Stock ∪ Trade", "KL421", "Trade", "π drops some, ρ calls them alike"),
    ("ρ{name ↦ n} ∘ π{name}(Stock) ∪ ρ{size ↦ n} ∘ π{size}(Trade)", "KL301", "ρ{size", "ρ{"),
    ("σ{price > price.last}(Stock)", "KL422", "price.last", "`.last` stands in a condition of `;` or μ"),
    ("Stock a ;{b.price > b.price.last} Stock b", "KL422", "b.price.last", "the value itself is `b.price`"),
    ("π{a.name} ∘ σ{a.price.last > 5} ∘ π{a.price, a.name}(Stock a ; Stock a)", "KL422", "a.price.last", "right above"),
    ("μ(Trade, Stock)", "KL423", "μ(Trade, Stock)", "init Stock.price ↦ …"),
    ("μ{ID}(Stock a ; Stock b, Stock c)", "KL423", "μ{ID}", "init c.name ↦ …"),
    ("μ{π{Stock.name}}(Stock, Stock)", "KL424", "π", "may overwrite attributes (α), but not drop or rename"),
    ("μ{ρ{price ↦ p}}(Stock, Stock)", "KL424", "ρ", "not drop or rename"),
    ("ρ{name ↦ a, price ↦ a}(Stock)", "KL208", "name ↦ a", "choose another name"),
    ("ρ{name ↦ a, name ↦ b}(Stock)", "KL208", "name ↦ b", "rename each attribute once"),
    ("π{name, name}(Stock)", "KL208", "name", "name each attribute once"),
    ("α{x ↦ 1, x ↦ 2}(Stock)", "KL208", "x ↦ 2", "assign each attribute once"),
    ("ρ{name ↦ start}(Stock)", "KL210", "ρ{name", "call it otherwise"),
    ("ρ{Stock.price ↦ b}(Stock) ; Stock b", "KL208", "ρ{Stock", "rename one"),
    ("σ{avg(price) > 5}(Stock)", "KL409", "avg(price)", "computed as it goes"),
    ("σ{[name]}(Stock)", "KL101", "[name]", "`S1.id = S2.id`"),
    ("σ{name > 5}(Stock)", "KL301", "name > 5", "a number is written without quotes"),
    ("σ{Stock.price.first > 5}(Stock)", "KL101", "first", "`S1.price.last` its last value"),
    ("σ{price > 5}(Bond)", "KL201", "Bond", ""),
    ("σ{price > :most}(Stock)", "KL206", ":most", "params="),
    ("ρ{(name, price) ↦ (a, b, c)}(Stock)", "KL101", "name, price", "name each once"),
    ("μ{ID, price > 5, vol > 5}(Stock, Stock)", "KL101", "vol > 5", "μ{step, condition, init x ↦ y}"),
    ("σ{price > 5(Stock)", "KL101", "(", "`}`"),
    ("Stock ; ", "KL101", ";", "expected"),
]


@pytest.mark.parametrize(("text", "code", "place", "hint"), WRONG, ids=[text for text, *_ in WRONG])
def test_one_error_with_its_place(text: str, code: str, place: str, hint: str) -> None:
    with pytest.raises(QueryError) as caught:
        StreamQuery(text).bind(STOCK)
    error = caught.value
    assert error.code == code, error.render()
    assert error.span is not None
    assert text[error.span.start : error.span.end].startswith(place) or place.startswith(
        text[error.span.start : error.span.end]
    ), error.render()
    assert hint in (error.hint or ""), error.render()


def test_dur_on_timestamps_needs_a_tick() -> None:
    with pytest.raises(QueryError, match="timestamps have none") as caught:
        StreamQuery("σ{DUR > 5 seconds}(A)").bind(TIMES)
    assert caught.value.code == "KL425"
    assert "tick 1 second" in str(caught.value.hint)
    StreamQuery("DECLARE STREAM (tick 1 second) σ{DUR > 5 seconds}(A)").bind(TIMES)


@pytest.mark.parametrize(
    "text",
    [
        "σ{price > :most}(Stock)",
        "σ{S2.price > S2.price.last}(μ{ID, S1.name = S2.name and DUR < 5}(Stock S1, Stock S2))",
        "Stock ;{Stock.price > Stock.price.last} Stock",
        "ρ{name ↦ n}(Stock) ∪ ρ{size ↦ n}(Trade)",
    ],
)
def test_without_columns_an_expression_can_be_checked(text: str) -> None:
    """Nothing is known of the attributes: whatever is named may be one."""
    StreamQuery(text).bind(checking=True)


def test_what_was_overwritten_has_the_type_that_it_had() -> None:
    """`w` is a string on the left and a number on the right: `w.last` is the string."""
    with pytest.raises(TypeMismatch):
        StreamQuery("ρ{a.name ↦ w}(Stock a) ;{w.last > 1} ρ{b.size ↦ w}(Trade b)").bind(STOCK)
    StreamQuery("ρ{a.name ↦ w}(Stock a) ;{w.last = 'p' AND w > 1} ρ{b.size ↦ w}(Trade b)").bind(STOCK)
