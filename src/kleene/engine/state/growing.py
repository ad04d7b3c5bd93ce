"""Arrays that grow at their end, cheaply on average."""

from __future__ import annotations

from typing import Any

import numpy as np

from kleene.engine.state.memory import empty


def with_room(array: Any, needed: int, fill: int | None = None) -> Any:
    """The array itself, or a longer copy: at least `needed` along its first axis, filled where it is new."""
    if len(array) >= needed:
        return array
    longer = empty((max(needed, 2 * len(array)), *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    if fill is not None:
        longer[len(array) :] = fill
    return longer


class Growing:
    """An array of one or two dimensions that grows along its last axis. The first part is not copied."""

    def __init__(self, empty: Any) -> None:
        # Longer than its content; kernels get all of it, so that it is contiguous.
        self.array = empty
        self.size = empty.shape[-1]

    def append(self, part: Any) -> None:
        size = self.size + part.shape[-1]
        if not self.size:
            # Arrow's arrays cannot be written to, and kernels are compiled for arrays that can.
            self.array = np.ascontiguousarray(part) if part.flags.writeable else part.copy()
        else:
            if size > self.array.shape[-1]:
                grown = empty((*self.array.shape[:-1], max(size, 2 * self.size)), self.array.dtype)
                grown[..., : self.size] = self.array[..., : self.size]
                self.array = grown
            self.array[..., self.size : size] = part
        self.size = size

    @property
    def used(self) -> Any:
        return self.array[..., : self.size]

    @property
    def nbytes(self) -> int:
        return int(self.array.nbytes)
