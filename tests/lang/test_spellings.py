"""One query, many spellings: symbols and words, cases, and other languages through the registry."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kleene.errors import UnknownSpelling
from kleene.lang import Spelling, parse, recognise, register, spellings, tree
from kleene.lang.spellings import _REGISTRY
from kleene.pattern import Query


@pytest.fixture
def arrows() -> Iterator[None]:
    """A toy spelling: `A -> B`."""

    def read(text: str) -> tree.Query:
        types = [tree.Component((tree.TypeName(name.strip()),)) for name in text.split("->")]
        return tree.Query(tree.Sequence(tuple(types)))

    register(Spelling("arrows", lambda text: "->" in text, read))
    yield
    _REGISTRY.pop("arrows")
    parse.cache_clear()


def test_a_new_spelling_joins_and_is_recognised(arrows: None) -> None:
    assert spellings() == ("kleene", "cesar", "next", "eql", "arrows")
    assert recognise("A -> B") == "arrows"
    assert recognise("PATTERN A ; B") == "kleene"
    assert parse("A -> B") == parse("PATTERN A ; B")
    assert Query("A -> B").bind().types == ("A", "B")


def test_a_spelling_can_be_named(arrows: None) -> None:
    assert parse("PATTERN A ; B", "kleene") == parse("A -> B", "arrows")
    with pytest.raises(UnknownSpelling, match="did you mean `arrows`"):
        parse("A -> B", "arrow")


def test_what_nobody_reads() -> None:
    for text in ("", "   ", "SELECT 1", "-- only a comment"):
        with pytest.raises(UnknownSpelling):
            parse(text)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("PATTERN SEQ(A a, B b)", "pattern a_ ; b_".replace("a_", "A a").replace("b_", "B b")),
        ("EVENT SEQ(A a, B b)", "PATTERN(A a, B b)"),
        ("PATTERN SEQ(A a, !(B b), C c)", "PATTERN SEQ(A a, ~(B b), C c)"),
        ("PATTERN SEQ(A a, NOT B b, C c)", "PATTERN A a ; ¬B b ; C c"),
        ("PATTERN A a WHERE a.x <> 1 ∧ a.y ≤ 2 ∨ ¬ a.z ≥ 3", "PATTERN A a WHERE a.x != 1 AND a.y <= 2 or not a.z >= 3"),
        ("PATTERN A a WHERE a.x == ‘x’", "PATTERN A a WHERE a.x = 'x'"),
        ("PATTERN A a WITHIN 5 Secs", "PATTERN A a within 5 SECONDS"),
        ("PATTERN A a WITHIN 5 units", "PATTERN A a WITHIN 5"),
        ("PATTERN A a OUTPUT NON-OVERLAP", "PATTERN A a output non_overlap"),
        ("PATTERN A & B | C ; D", "PATTERN ((A & B) | C) ; D"),
        ("PATTERN !A & B", "PATTERN (!A) & B"),
        (
            "PATTERN A a WHERE a.x = 1 or a.y = 2 and not a.z = 3",
            "PATTERN A a WHERE a.x = 1 or (a.y = 2 and (not a.z = 3))",
        ),
        ("PATTERN A a WHERE a.x-a.y*2 > 0", "PATTERN A a WHERE (a.x - (a.y * 2)) > 0"),
        ("PATTERN A a WHERE a.x NOT CONTAINS 'z'", "PATTERN A a WHERE NOT a.x CONTAINS 'z'"),
        ("/* one */ PATTERN A a -- two\nWHERE a.x = 1", "\ufeffPATTERN A a WHERE a.x = 1"),
        ("PATTERN `A` `a` WHERE `a`.`x` = 1", "PATTERN A a WHERE a.x = 1"),
    ],
)
def test_spelled_differently_meant_alike(left: str, right: str) -> None:
    assert parse(left) == parse(right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("PATTERN A a WHERE a.x % 5 = 0", "PATTERN A a WHERE a.x% = 0"),
        ("PATTERN A-B a", "PATTERN A a"),
        ("PATTERN A+ a[]", "PATTERN A+ a"),
        ("PATTERN A^2 a[]", "PATTERN A{2} a[]"),
        ("PATTERN A a WHERE a.x = 1", "PATTERN A a WHERE a.x = 1.0"),
        ("PATTERN A | B ; C", "PATTERN A | (B ; C)"),
    ],
)
def test_nearly_alike_is_not_alike(left: str, right: str) -> None:
    assert parse(left) != parse(right)


def test_percent_and_modulo() -> None:
    def value(text: str) -> tree.Expression:
        where = Query(f"PATTERN A a WHERE {text} = 0").tree.where
        assert isinstance(where, tree.Comparison)
        return where.left

    assert value("20%") == tree.Percent(tree.Literal(20))
    assert value("20% * 5") == tree.Arithmetic("*", tree.Percent(tree.Literal(20)), tree.Literal(5))
    assert value("20 % 5") == tree.Arithmetic("%", tree.Literal(20), tree.Literal(5))
    assert value("20 %5") == tree.Arithmetic("%", tree.Literal(20), tree.Literal(5))
    assert value("20% % 3") == tree.Arithmetic("%", tree.Percent(tree.Literal(20)), tree.Literal(3))
    assert value("(1 + :x%)") == tree.Arithmetic("+", tree.Literal(1), tree.Percent(tree.Parameter("x")))
    assert value("a.x % /* of */ 5") == tree.Arithmetic("%", tree.Attribute("a", None, "x"), tree.Literal(5))


def test_keywords_may_be_attributes() -> None:
    text = "PATTERN A a WHERE a.within = a.where AND a.type = a.from AND a.to = a.seq AND a.and IS NULL"
    assert Query(text).tree.where == Query(text.lower().replace("pattern a a", "PATTERN A a")).tree.where
