"""Matches that do not overlap (SASE+ §2): one after the other in a partition."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kleene.kernels.expression import Ints
from kleene.kernels.jit import compiled


@compiled
def choose(
    order: Ints,  #      matches in the order in which they are offered
    partitions: Ints,  # [match]
    lefts: Ints,  #      [match]: what its first event comes after
    rights: Ints,  #     [match]: what comes after its last event
    frontier: Ints,  #   [partition]: that of the match chosen last, or −1
    chosen: npt.NDArray[np.bool_],  # [match]: out
) -> None:
    for match in order:
        partition = partitions[match]
        if lefts[match] > frontier[partition]:
            chosen[match] = True
            frontier[partition] = rights[match]
