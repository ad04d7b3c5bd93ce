"""Kernels of sets give the same uncompiled: a first answer does not wait for the compiler."""

from __future__ import annotations

from tests.query_sets.drawing import draw_set
from tests.query_sets.test_agreement import by_query, set_of, watermarks

from kleene.kernels.interpreting import interpreted


def test_a_set_gives_the_same_uncompiled() -> None:
    drawn = draw_set(7, 20, length=2)
    expected = by_query([set_of(drawn).match(drawn.table)])
    assert expected
    with interpreted():
        rules = set_of(drawn)
        assert by_query([rules.match(drawn.table)]) == expected
        parts = [rules.process(table, watermark) for table, watermark in watermarks(drawn, 3)]
        assert by_query([*parts, rules.finish()]) == expected
        for name in list(drawn.queries)[::2]:
            rules.remove(name)
        left = set(list(drawn.queries)[1::2])
        assert by_query([rules.match(drawn.table)]) == {name: rows for name, rows in expected.items() if name in left}
