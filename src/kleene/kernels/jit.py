"""How a kernel is compiled: once for all queries, kept on disk, without Python's lock.

`NUMBA_DISABLE_JIT=1` leaves every kernel a plain Python function; results are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar, cast

import numba
from numba.core import cgutils, config, types
from numba.extending import intrinsic

from kleene.kernels.keeping import KernelCache

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


def compiled(function: F) -> F:
    """A kernel that Python calls."""
    return _kept(function, numba.njit(nogil=True, error_model="numpy")(function))


def inlined(function: F) -> F:
    """A part of kernels: its code is copied to where it is called.

    Passing twenty arrays to a function costs more (30 ns) than most conditions.
    """
    return _kept(function, numba.njit(nogil=True, error_model="numpy", forceinline=True)(function))


def _borrowed(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """The value without the counts of who holds its arrays."""
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        array.parent = cgutils.get_null_value(array.parent.type)
        return array._getvalue()
    if isinstance(kind, types.BaseTuple):  # type: ignore[attr-defined]
        parts = cgutils.unpack_tuple(builder, value, len(kind))
        made = [_borrowed(context, builder, one, part) for one, part in zip(kind.types, parts, strict=True)]
        return context.make_tuple(builder, kind, made)
    return value


if config.DISABLE_JIT:

    def borrowed(value: T) -> T:
        return value

else:

    @intrinsic  # type: ignore[untyped-decorator]
    def borrowed(typing: Any, value: Any) -> Any:
        """The same arrays, uncounted: a kernel's caller holds them as long as it runs.

        Otherwise each time that an array is handed to a part of a kernel, or taken out of a tuple, an atomic counter
        goes up and down again, which took half of the time of a run's step.
        """

        def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return _borrowed(context, builder, signature.args[0], arguments[0])

        return value(value), write


def _kept(function: F, dispatcher: Any) -> F:
    if dispatcher is not function:
        # Where no folder can be written, kernels are compiled anew in each process.
        with suppress(RuntimeError):
            dispatcher._cache = KernelCache(function)
    return cast(F, dispatcher)
