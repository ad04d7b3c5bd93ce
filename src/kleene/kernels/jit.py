"""How a kernel is compiled: once for all queries, kept on disk, without Python's lock.

`NUMBA_DISABLE_JIT=1` leaves every kernel a plain Python function; results are the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core.caching import FunctionCache

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """A kernel that Python calls."""
    return _kept(function, numba.njit(nogil=True, error_model="numpy")(function))


def inlined(function: F) -> F:
    """A part of kernels: its code is copied to where it is called.

    Passing twenty arrays to a function costs more (30 ns) than most conditions.
    """
    return _kept(function, numba.njit(nogil=True, error_model="numpy", forceinline=True)(function))


def _kept(function: F, dispatcher: Any) -> F:
    if dispatcher is not function:
        # Where no folder can be written, kernels are compiled anew in each process.
        with suppress(RuntimeError):
            dispatcher._cache = _Cache(function)
    return cast(F, dispatcher)


class _Cache(FunctionCache):  # type: ignore[misc]
    """Numba's cache looks at a kernel's own file only, but a kernel holds constants and code of those it imports."""

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        path = Path(self._py_func.__code__.co_filename)
        return (*super()._index_key(sig, codegen), _sources(path))


# `from kleene.kernels.x import …`, and `from kleene.kernels import x, y as z`.
_IMPORTED = re.compile(r"^from kleene\.kernels(?:\.(\w+)| import (.+))", re.MULTILINE)


@cache
def _sources(path: Path) -> str:
    """What stands in a kernel's file and in those of the kernels that it imports."""
    text = path.read_text(encoding="utf-8")
    made = blake2b(text.encode(), digest_size=16)
    for module, listed in _IMPORTED.findall(text):
        for name in [module] if module else re.findall(r"(\w+)(?: as \w+)?", listed):
            made.update(_sources(path.with_name(f"{name}.py")).encode())
    return made.hexdigest()
