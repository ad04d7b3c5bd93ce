"""Arrays written into arrays, without what Numba compiles for `target[begin:end] = values`.

That would raise an error where the sizes differ, whose text takes seconds to compile: numbers as strings, and all that
strings need.
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from kleene.kernels.jit import inlined


@inlined
def put(values: npt.NDArray[Any], target: npt.NDArray[Any], begin: int) -> None:
    """Write values into an array, from `begin` on."""
    for place in range(len(values)):
        target[begin + place] = values[place]
