"""State with a right checksum that Kleene did not write: what is not valid is refused, and nothing ends the process."""

from __future__ import annotations

import pytest
from tests.forged_state import tried_in_children
from tests.soaking import SOAKING

pytestmark = pytest.mark.slow


def test_nothing_forged_ends_a_process_or_raises_anything_raw() -> None:
    became = tried_in_children(0, 10_000 if SOAKING else 100)
    print(became.report())
    assert not became.ended, became.report()
    assert not became.raw, became.report()
    # Each part of a state was forged, and noticed.
    refused = {what.split(":")[0] for what in became.counts if "refused" in what}
    assert refused >= {"bytes", "description", "values", "columns", "rows", "packed"}
    assert refused >= {"slot, page", "slot, meaning", "slot, segment"}


@pytest.mark.soak
def test_without_its_contract_a_forged_state_does_harm() -> None:
    """Otherwise the states above would be too tame to show anything."""
    became = tried_in_children(0, 100 if SOAKING else 50, checked=False)
    assert became.ended or became.raw, became.report()
