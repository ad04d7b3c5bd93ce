"""How a kernel is compiled: once for all queries, kept on disk, without Python's lock.

`NUMBA_DISABLE_JIT=1` leaves every kernel a plain Python function; results are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba.core import cgutils, config, types
from numba.core.registry import CPUDispatcher
from numba.extending import lower_builtin, type_callable

from kleene.kernels.copies import KernelCompiler
from kleene.kernels.interpreting import Kernel
from kleene.kernels.kernel_cache import KernelCache, Unkept

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

# Nobody calls a kernel from C.
_OPTIONS = {"nopython": True, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}

# Every kernel of the modules that are loaded; steps are parts of them.
kernels: list[Kernel] = []


def compiled(function: F) -> F:
    """A kernel that Python calls."""
    return _kernel(function, {})


def inlined(function: F) -> F:
    """A part of kernels: its code is copied to where it is called.

    Passing twenty arrays to a function costs more (30 ns) than most conditions.
    """
    return _kernel(function, {"forceinline": True})


def step(function: F) -> F:
    """A step of one kernel under a name of its own: Numba reads its statements as if they stood in the kernel.

    Unlike what is `inlined` it is not compiled by itself as well, which would double the compiler's work for a long
    one; and nothing is passed to it, however many arrays it names.
    """
    return _kernel(function, {"inline": "always"})


class KernelDispatcher(CPUDispatcher):  # type: ignore[misc]
    """Numba's dispatcher, which compiles less often: for fewer kinds of arguments, and in one process at a time."""

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """What another kernel calls: for integers of any width, or known beforehand, that of 64 bits is compiled.

        Otherwise `f(0)`, `f(n)` and `f(array_of_int32[n])` would be three kernels.
        """
        return super().get_call_template(tuple(map(_widened, args)), {name: _widened(kws[name]) for name in kws})

    def compile(self, sig: Any) -> Any:
        try:
            return super().compile(sig)
        finally:
            self._cache.done()


def _widened(kind: Any) -> Any:
    plain = types.unliteral(kind)  # type: ignore[attr-defined]
    signed = isinstance(plain, types.Integer) and plain.signed  # type: ignore[attr-defined]
    return types.int64 if signed else plain


def _kernel(function: F, options: dict[str, Any]) -> F:
    if config.DISABLE_JIT:
        return function
    dispatcher = KernelDispatcher(function, targetoptions={**_OPTIONS, **options}, pipeline_class=KernelCompiler)
    try:
        dispatcher._cache = KernelCache(function)
    except RuntimeError:
        dispatcher._cache = Unkept(function)
    kernel = Kernel(function, dispatcher)
    if "inline" not in options:
        kernels.append(kernel)
    return cast(F, kernel)


def borrowed(value: T) -> T:
    """The same arrays, uncounted: a kernel's caller holds them as long as it runs.

    Otherwise each time that an array is handed to a part of a kernel, or taken out of a tuple, an atomic counter
    goes up and down again, which took half of the time of a run's step.
    """
    return value


@type_callable(borrowed)  # type: ignore[untyped-decorator]
def _type_borrowed(context: Any) -> Any:
    def typer(value: Any) -> Any:
        return value

    return typer


@lower_builtin(borrowed, types.Any)  # type: ignore[untyped-decorator]
def _lower_borrowed(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return _uncounted(context, builder, signature.args[0], arguments[0])


def highest_bit(bits: int) -> int:
    """The number of the highest bit of some, of which at least one is set."""
    return int(bits).bit_length() - 1


def lowest_bit(bits: int | np.uint64) -> int:
    """The number of the lowest bit of 64; 64 where none is set."""
    return (int(bits) & -int(bits)).bit_length() - 1 if bits else 64


def count_bits(bits: int | np.uint64) -> int:
    """How many of 64 bits are set."""
    return int(bits).bit_count()


def _type_bits(function: Callable[[Any], int]) -> None:
    @type_callable(function)  # type: ignore[untyped-decorator]
    def _type(context: Any) -> Any:
        def typer(bits: Any) -> Any:
            return types.int64

        return typer


for _of_bits in (highest_bit, lowest_bit, count_bits):
    _type_bits(_of_bits)


@lower_builtin(highest_bit, types.int64)  # type: ignore[untyped-decorator]
def _lower_highest_bit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    zeros = builder.ctlz(arguments[0], context.get_constant(types.boolean, False))
    return builder.sub(context.get_constant(types.int64, 63), zeros)


@lower_builtin(lowest_bit, types.uint64)  # type: ignore[untyped-decorator]
def _lower_lowest_bit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return builder.cttz(arguments[0], context.get_constant(types.boolean, False))


@lower_builtin(count_bits, types.uint64)  # type: ignore[untyped-decorator]
def _lower_count_bits(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return builder.ctpop(arguments[0])


def write_past(out: npt.NDArray[Any], place: int, value: Any) -> None:
    """Write what nobody reads soon past the caches: half of the traffic, since its line of memory is not read first.

    Places must not be negative, and follow each other. A kernel that has written so ends with `written_past`.
    """
    out[place] = value


@type_callable(write_past)  # type: ignore[untyped-decorator]
def _type_write_past(context: Any) -> Any:
    def typer(out: Any, place: Any, value: Any) -> Any:
        return types.none

    return typer


@lower_builtin(write_past, types.Array, types.Integer, types.Any)  # type: ignore[untyped-decorator]
def _lower_write_past(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    kind, _, given = signature.args
    array = context.make_array(kind)(context, builder, arguments[0])
    at = cgutils.get_item_pointer(context, builder, kind, array, [arguments[1]], wraparound=False)
    stored = builder.store(context.cast(builder, arguments[2], given, kind.dtype), at, align=kind.dtype.bitwidth // 8)
    stored.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)]))
    return context.get_dummy_value()


def written_past() -> None:
    """Everybody sees what was written past the caches before what is written from here on."""


@type_callable(written_past)  # type: ignore[untyped-decorator]
def _type_written_past(context: Any) -> Any:
    def typer() -> Any:
        return types.none

    return typer


@lower_builtin(written_past)  # type: ignore[untyped-decorator]
def _lower_written_past(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    builder.fence("seq_cst")
    return context.get_dummy_value()


def _uncounted(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """The value without the reference counts of its arrays."""
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        array.parent = cgutils.get_null_value(array.parent.type)
        return array._getvalue()
    if isinstance(kind, types.BaseTuple):  # type: ignore[attr-defined]
        parts = cgutils.unpack_tuple(builder, value, len(kind))
        uncounted = [_uncounted(context, builder, one, part) for one, part in zip(kind.types, parts, strict=True)]
        return context.make_tuple(builder, kind, uncounted)
    return value
