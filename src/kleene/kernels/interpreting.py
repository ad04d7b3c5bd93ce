"""Kernels without the compiler: each can be called as the plain Python function that it is, in any thread, at any time.

`interpreted()` decides for what is called within it, kernels that kernels call included. Results are the same, 100 to
1,000 times slower: for a few events that is milliseconds, where a compiler would take half a minute.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import update_wrapper
from typing import Any

import numpy as np


class OutOfTime(Exception):
    """Interpreted kernels took longer than they were given: what they computed so far is of no use."""


# When interpreted kernels must have ended, on the clock of `perf_counter`; None where kernels are compiled.
_DEADLINE: ContextVar[float | None] = ContextVar("deadline", default=None)


@contextmanager
def interpreted(seconds: float = float("inf")) -> Iterator[None]:
    """Run kernels as plain Python; `OutOfTime` from the first that is called after so many seconds.

    Integers wrap around and divisions by zero are infinite, as in compiled code, without NumPy's warnings.
    """
    token = _DEADLINE.set(time.perf_counter() + seconds)
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        _DEADLINE.reset(token)


class Kernel:
    """A kernel that Python calls: compiled, or plain within `interpreted()`."""

    def __init__(self, plain: Callable[..., Any], dispatcher: Any) -> None:
        self.plain, self.dispatcher = plain, dispatcher
        update_wrapper(self, plain)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        deadline = _DEADLINE.get()
        if deadline is None:
            return self.dispatcher(*arguments, **named)
        if time.perf_counter() > deadline:
            raise OutOfTime
        return self.plain(*arguments, **named)

    @property
    def targetoptions(self) -> Any:
        """Where Numba looks whether to write its statements into the kernel that calls it (`jit.step`)."""
        return self.dispatcher.targetoptions

    @property
    def py_func(self) -> Any:
        """The function whose statements Numba writes there."""
        return self.plain

    @property
    def _numba_type_(self) -> Any:
        """Its type in the code of other kernels."""
        return self.dispatcher._numba_type_
