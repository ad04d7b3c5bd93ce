"""How many random cases a test draws: in `make soak` all of them, otherwise as many as find what one change breaks."""

from __future__ import annotations

import os

SOAKING = "KLEENE_SOAK" in os.environ
_SHARE = 3


def rounds(many: int) -> int:
    """So many in `make soak`, a third of them otherwise."""
    return many if SOAKING else -(-many // _SHARE)


def least(expected: int) -> int:
    """What must come of so many rounds where `expected` came of all: a smaller sample may have a little less."""
    return expected if SOAKING else expected * 3 // (4 * _SHARE)
