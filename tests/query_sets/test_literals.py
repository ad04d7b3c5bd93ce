"""Constants are lifted out of texts as the parser reads them, and nothing else is."""

from __future__ import annotations

import pytest

from kleene.errors import BadLiteral
from kleene.lang.literals import lifted, value_of
from kleene.pattern.types import ValueType
from kleene.queries.any_query import read_query
from kleene.queries.templates import TemplateReader


def constants(text: str) -> tuple[object, ...]:
    return TemplateReader().read(text)[1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("σ{x > 10 and s = 'IBM'}(A a)", (10, "IBM")),
        ("σ{10 < x and x <= -2.5}(A a)", (10, -2.5)),
        ("σ{x IN (1, 2, -3) and y BETWEEN 4 AND 5.0}(A a)", (1, 2, -3, 4, 5.0)),
        ("σ{s = 'it''s' or s = \"a -- 5\"}(A a)", ("it's", "a -- 5")),
        # What is computed with, what counts in a window or stands in a comment is part of the shape.
        ("σ{x + 1 > 5 and x > 20%}(A a1)", (5,)),
        ("σ{x > 5 /* not 6 */}(A a) -- nor 7", (5,)),
        ("σ{`column 3` > 5}(A a)", (5,)),
        ("α{y ↦ 2 * x}(σ{x = 0}(A a))", (0,)),
    ],
)
def test_constants_of_conditions_are_lifted(text: str, expected: tuple[object, ...]) -> None:
    found = constants(text)
    assert found == expected
    assert [type(value) for value in found] == [type(value) for value in expected]


def test_texts_that_differ_in_constants_alone_are_one_template() -> None:
    reader = TemplateReader()
    first, _ = reader.read("σ{x > 10 and s = 'a'}(A a)")
    again, values = reader.read("σ{x > 11 and s = 'bc'}(A a)")
    assert first is again
    assert values == (11, "bc")
    assert first.parameters == (("_literal0", ValueType.INT), ("_literal1", ValueType.STRING))


@pytest.mark.parametrize("other", ["σ{x > 10.0}(A a)", "σ{x >= 10}(A a)", "σ{x > 10}(A b)", "σ{x > 1 + 9}(A a)"])
def test_other_texts_are_other_templates(other: str) -> None:
    reader = TemplateReader()
    assert reader.read("σ{x > 10}(A a)")[0] is not reader.read(other)[0]


def test_a_shape_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = TemplateReader()
    reader.read("σ{x > 10}(A a)")
    monkeypatch.setattr("kleene.queries.templates.read_query", lambda *_, **__: pytest.fail("parsed again"))
    assert reader.read("σ{x > 11}(A a)")[1] == (11,)


@pytest.mark.parametrize(
    "text",
    [
        "σ{x > 10 and s = 'it''s' and y < -2.50}(A a)",
        "σ{x IN (3, 4)}(A a) ;{a.x = b.x and DUR <= 20} σ{y BETWEEN 1.0 AND 2e3}(A b)",
        "PATTERN SEQ(A a, B b) WHERE a.x > 5 AND b.s = 'q' WITHIN 10",
    ],
)
def test_the_digest_is_that_of_the_query_by_itself(text: str) -> None:
    template, values = TemplateReader().read(text)
    alone = read_query(text)
    assert template.text_of(values) == (alone.canonical, {})
    schema = alone.declared
    assert template.digest_of(values, b"") == alone.digest(schema, ())


def test_parameters_are_part_of_the_digest() -> None:
    text = "σ{x > :low and y < 3}(A a)"
    template, values = TemplateReader().read(text, {"low": 5})
    alone = read_query(text, params={"low": 5})
    assert template.digest_of(values, b"") == alone.digest(alone.declared, ())


def test_an_integer_beyond_64_bits_gets_the_error_that_it_has_by_itself() -> None:
    reader = TemplateReader()
    reader.read("σ{x > 10}(A a)")
    template, values = reader.read(f"σ{{x > {2**63 + 1}}}(A a)")
    assert not values
    with pytest.raises(BadLiteral, match="does not fit 64 bits"):
        _ = template.query.tree


def test_lifting_is_undone_by_putting_literals_back() -> None:
    text = "σ{x > 10 and s = 'a ''b' -- 5\n and y < 1e5}(A a)"
    shape, literals = lifted(text)
    parts = shape.split("\0")
    assert "".join(part + literal for part, literal in zip(parts, [*literals, ""], strict=True)) == text
    assert value_of("1e5") == 1e5
