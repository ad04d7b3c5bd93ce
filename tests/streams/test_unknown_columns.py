"""An expression can be checked where nothing is known of its columns: what may be right is no error."""

from __future__ import annotations

from random import Random

import pytest
from tests.soaking import rounds

from kleene.algebra.query import StreamQuery
from kleene.errors import QueryError
from kleene.testing.generators.streams import random_stream_case


def test_what_is_right_for_some_columns_is_right_for_unknown_ones() -> None:
    for seed in range(rounds(400, share=8)):
        StreamQuery(random_stream_case(Random(seed)).text).bind(checking=True)


@pytest.mark.parametrize(
    "text",
    [
        "σ{v > 1} ∘ α{v ↦ a.x + b.x}(A a ; B b)",
        "μ{ID, a.k = b.k}(A a, π{b.k, b.x}(B b))",
        "μ{α{n ↦ n + 1}, a.k = b.k}(α{n ↦ 1}(A a), B b)",
        "α{x ↦ 1}(A) ∪ α{x ↦ 2}(B)",
    ],
)
def test_new_attributes_and_first_values(text: str) -> None:
    StreamQuery(text).bind(checking=True)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("σ{c.x > 1}(A a ; B b)", "KL202"),
        ("σ{x > 1}(A a ; B b)", "KL204"),
        ("σ{y > 1} ∘ π{x}(A)", "KL203"),
        ("σ{x > x.last}(A)", "KL422"),
        ("α{n ↦ 1, n ↦ 2}(A)", "KL208"),
    ],
)
def test_what_is_wrong_for_all_columns_is_an_error(text: str, code: str) -> None:
    with pytest.raises(QueryError) as caught:
        StreamQuery(text).bind(checking=True)
    assert caught.value.code == code
