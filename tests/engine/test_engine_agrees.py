"""The engine against the reference on random queries and streams: every rule on and each off, whole and in pieces."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.engine.agreement import HALVES, agree, agree_at_a_glance
from tests.soaking import few_of


@pytest.mark.soak
@pytest.mark.parametrize("stratum", HALVES[0])
def test_engine_and_reference_agree(stratum: str, record_property: Callable[[str, object], None]) -> None:
    agree(stratum, record_property)


@pytest.mark.parametrize("stratum", few_of(HALVES[0], 4))
def test_engine_and_reference_agree_at_a_glance(stratum: str) -> None:
    agree_at_a_glance(stratum)
