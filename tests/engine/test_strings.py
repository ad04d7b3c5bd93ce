"""The pool of strings: codes that never change, an order and tests that grow with it."""

from __future__ import annotations

from random import Random

from kleene.engine.intake.strings import StringPool
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
