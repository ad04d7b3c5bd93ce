"""Matches that do not overlap, chosen from those that others found."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kleene.kernels.selection import choose

Ints = npt.NDArray[np.int64]


class Chooser:
    """Takes matches in the order in which NON_OVERLAP offers them (the semantics page §3), batch after batch."""

    def __init__(self) -> None:
        self._frontier = np.full(1, np.iinfo(np.int64).min)

    def chosen(self, starts: Ints, ends: Ints) -> npt.NDArray[np.bool_]:
        """Which matches of a batch start after the one chosen before them has ended."""
        flags = np.zeros(len(starts), np.bool_)
        nothing = np.zeros(len(starts), np.int64)
        choose(np.arange(len(starts)), nothing, starts, ends, self._frontier, flags)
        return flags
