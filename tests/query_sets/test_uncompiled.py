"""Kernels of sets give the same uncompiled: a first answer does not wait for the compiler."""

from __future__ import annotations

from typing import Any

import pytest
from tests.query_sets.drawing import draw_set
from tests.query_sets.test_agreement import by_query, set_of, watermarks

from kleene.engine.readiness import _Process
from kleene.kernels import interpreting
from kleene.kernels.interpreting import Kernel, interpreted


def test_a_set_gives_the_same_uncompiled() -> None:
    drawn = draw_set(7, 20, patterns=10, length=2)
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


def test_a_small_set_waits_for_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no kernel is kept, every one that few queries and events need runs uncompiled."""
    drawn = draw_set(7, 10, patterns=5, length=2)
    plain = Kernel.__call__

    def uncompiled(kernel: Kernel, *arguments: Any, **named: Any) -> Any:
        assert interpreting._DEADLINE.get() is not None, f"{kernel} would be compiled"
        return plain(kernel, *arguments, **named)

    expected = by_query([set_of(drawn).match(drawn.table)])
    monkeypatch.delenv("KLEENE_WARM", raising=False)
    monkeypatch.setattr("kleene.engine.warming.all_kept", lambda: False)
    monkeypatch.setattr("kleene.engine.warming.begin", lambda: None)
    monkeypatch.setattr("kleene.engine.readiness._PROCESS", _Process())
    monkeypatch.setattr(Kernel, "__call__", uncompiled)
    rules = set_of(drawn)
    assert by_query([rules.match(drawn.table)]) == expected
    parts = [rules.process(table, watermark) for table, watermark in watermarks(drawn, 2)]
    assert by_query([*parts, rules.finish()]) == expected
    rules.remove(next(iter(drawn.queries)))
