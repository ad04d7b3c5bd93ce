"""The pool of strings: codes that never change, an order and tests that grow with it."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest

from kleene.engine.intake.strings import StringPool, string_codes
from kleene.kernels.opcodes import NULL
from kleene.plan.program import StringTest


def _word(draw: Random) -> str:
    return "".join(draw.choices("abÄé日😀\uffff", k=draw.randint(0, 4)))


def test_codes_never_change_and_the_order_is_by_code_point() -> None:
    draw = Random(5)
    pool = StringPool()
    pool.keep_order()
    known: dict[str, int] = {}
    for _ in range(20):
        batch = [_word(draw) for _ in range(30)]
        codes = pool.codes(batch).tolist()
        for text, code in zip(batch, codes, strict=True):
            assert known.setdefault(text, code) == code
            assert pool.text(code) == text
        ranks = pool.arrays().ranks
        assert sorted(known, key=lambda text: ranks[known[text]]) == sorted(known)
    assert pool.size == len(known)


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
)
def test_columns_of_strings_are_coded_like_single_ones(kind: pa.DataType) -> None:
    """Of all lengths, which begin or end alike, with NULLs, in pieces that begin anywhere."""
    draw = Random(7)
    words: list[str | None] = [
        draw.choice("ab") * draw.randint(0, 20) + draw.choice(["", "x", "日"]) for _ in range(60)
    ]
    words.append(None)
    pool, known = StringPool(), dict[str, int]()
    for _ in range(20):
        batch = draw.choices(words, k=50)
        first = draw.randrange(50)
        codes, states = string_codes(pa.array(batch, kind)[first:], pool)
        for text, code, state in zip(batch[first:], codes.tolist(), states.tolist(), strict=True):
            assert (state == NULL) == (text is None)
            if text is not None:
                assert known.setdefault(text, code) == code == pool.code(text)
                assert pool.text(code) == text
    assert pool.texts(np.array([*known.values()])).to_pylist() == [*known]
    assert string_codes(pa.array([], kind), pool)[0].tolist() == []


def test_many_strings() -> None:
    """More than there is room for at first, several times."""
    pool = StringPool()
    texts = [f"a string with the number {number}" for number in range(20_000)]
    assert pool.codes(texts).tolist() == list(range(20_000))
    assert pool.codes(texts[::-1]).tolist() == list(range(20_000))[::-1]
    assert [pool.text(code) for code in (0, 63, 64, 19_999)] == [texts[0], texts[63], texts[64], texts[19_999]]
    assert pool.code("lone \ud800 surrogate") == 20_000
    assert pool.text(20_000) == "lone \ud800 surrogate"


def test_a_pool_that_is_not_asked_knows_no_order() -> None:
    pool = StringPool()
    pool.codes(["b", "a"])
    assert pool.arrays().ranks.size == 0
    pool.keep_order()
    assert pool.arrays().ranks.tolist() == [1, 0]


def test_tests_are_done_on_strings_that_come_before_and_after() -> None:
    draw = Random(6)
    pool = StringPool()
    tests: dict[tuple[StringTest, str], int] = {}
    for step in range(12):
        pool.codes([_word(draw) for _ in range(40)])
        if step % 2 == 0:
            asked = draw.choice(list(StringTest)), _word(draw)
            tests[asked] = pool.test(*asked)
        passed = pool.arrays().tests
        for (test, constant), number in tests.items():
            for code in range(pool.size):
                text = pool.text(code)
                wanted = constant in text if test is StringTest.CONTAINS else text in constant
                assert passed[number, code] == wanted, (test, constant, text)


def test_the_same_test_has_one_number() -> None:
    pool = StringPool()
    first = pool.test(StringTest.CONTAINS, "x")
    assert pool.test(StringTest.PART_OF, "x") != first
    assert pool.test(StringTest.CONTAINS, "x") == first
