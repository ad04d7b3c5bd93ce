"""What each event of a batch could be to an executor: one bit a component."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kleene.kernels.expression import Ints


@dataclass(frozen=True, eq=False)
class Bits:
    """[event], one bit each: positive components it can begin, Kleene ones that can take it, negated classes."""

    begins: Ints
    takes: Ints
    absents: Ints

    @property
    def any(self) -> npt.NDArray[np.bool_]:
        """Whether it could be anything."""
        useful: npt.NDArray[np.bool_] = (self.begins | self.takes | self.absents) != 0
        return useful

    def take(self, places: Ints) -> Bits:
        return Bits(self.begins[places], self.takes[places], self.absents[places])

    @staticmethod
    def none(size: int) -> Bits:
        return Bits(*(np.zeros(size, np.int64) for _ in range(3)))
