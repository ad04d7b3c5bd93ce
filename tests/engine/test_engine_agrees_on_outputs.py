"""The other half of `test_engine_agrees`, in a file of its own so that both run at once."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.engine.agreement import HALVES, agree, agree_at_a_glance
from tests.soaking import few_of


@pytest.mark.soak
@pytest.mark.parametrize("stratum", HALVES[1])
def test_engine_and_reference_agree(stratum: str, record_property: Callable[[str, object], None]) -> None:
    agree(stratum, record_property)


@pytest.mark.parametrize("stratum", few_of(HALVES[1], 4))
def test_engine_and_reference_agree_at_a_glance(stratum: str) -> None:
    agree_at_a_glance(stratum)
