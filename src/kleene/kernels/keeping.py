"""How compiled kernels are kept on disk, so that a new process has them within milliseconds.

Numba's own cache looks at a kernel's file only, although a kernel holds constants and code of those it imports; and it
makes ready to compile whenever it loads, which takes longer than to load every kernel that a query needs.
"""

from __future__ import annotations

import re
from functools import cache, partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.runtime import rtsys


class _Kernels(CompileResultCacheImpl):  # type: ignore[misc]
    """Machine code is loaded at once, LLVM's code only when another kernel is compiled and linked with it."""

    def reduce(self, cres: Any) -> Any:
        (name, kind, (machine_code, bitcode)), function, *others, environments = super().reduce(cres)
        # Numba looks up the names of functions in LLVM's code, and this is the one that Python calls.
        entry = llvm.parse_assembly(f'define void @"{function.llvm_cpython_wrapper_name}"() {{ unreachable }}')
        # Those without constants are never read, and to load one imports the module that it belongs to.
        read = tuple(environment for environment in environments if environment.consts)
        return ((name, kind, (machine_code, entry.as_bitcode())), function, *others, read), bitcode

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        kept, bitcode = payload
        cres = super().rebuild(target_context, kept)
        cres.library._get_module_for_linking = cache(partial(llvm.parse_bitcode, bitcode))
        return cres


class KernelCache(FunctionCache):  # type: ignore[misc]
    _impl_class = _Kernels

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """A kept kernel needs Numba's runtime; what compiling needs is loaded only when none is kept."""
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            kept = self._load_overload(sig, target_context)
            if kept is not None:
                return kept
        return super().load_overload(sig, target_context)

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return (*super()._index_key(sig, codegen), sources(Path(self._py_func.__code__.co_filename)))


# `from kleene.kernels.x import …`, and `from kleene.kernels import x, y as z`.
_IMPORTED = re.compile(r"^from kleene\.kernels(?:\.(\w+)| import (.+))", re.MULTILINE)


@cache
def sources(path: Path) -> str:
    """What stands in a kernel's file and in those of the kernels that it imports."""
    text = path.read_text(encoding="utf-8")
    made = blake2b(text.encode(), digest_size=16)
    for module, listed in _IMPORTED.findall(text):
        for name in [module] if module else re.findall(r"(\w+)(?: as \w+)?", listed):
            made.update(sources(path.with_name(f"{name}.py")).encode())
    return made.hexdigest()
