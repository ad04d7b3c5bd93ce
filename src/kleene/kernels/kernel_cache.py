"""How compiled kernels are kept on disk, so that a new process has them within milliseconds.

Numba's own cache looks at a kernel's file only, although a kernel holds constants and code of those it imports; and it
prepares the compiler whenever it loads, which takes longer than loading every kernel that a query needs.
"""

from __future__ import annotations

import os
import re
import sys
import zlib
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import cache, partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, NullCache
from numba.core.compiler import CompileResult
from numba.core.runtime import rtsys

from kleene.kernels import shipped
from kleene.kernels.locking import Regions
from kleene.kernels.stamp import stamp_name

_LOCATORS = tuple(CompileResultCacheImpl._locator_classes)
(_IN_TREE,) = (locator for locator in _LOCATORS if locator.__name__.lstrip("_") == "InTreeCacheLocator")


class _BesideSources(_IN_TREE):  # type: ignore[misc, valid-type]
    """`__pycache__` beside the kernels, also where it cannot be written but holds all kernels: a system's image."""

    def ensure_cache_path(self) -> None:
        if not _holds_all(self.get_cache_path()):
            super().ensure_cache_path()


@cache
def _holds_all(folder: str) -> bool:
    return os.path.exists(os.path.join(folder, stamp_name()))


class _Kernels(CompileResultCacheImpl):  # type: ignore[misc]
    """Machine code is loaded at once, LLVM's code only when another kernel is compiled and linked with it."""

    _locator_classes = tuple(_BesideSources if locator is _IN_TREE else locator for locator in _LOCATORS)

    def reduce(self, cres: Any) -> Any:
        (name, kind, (machine_code, bitcode)), function, *others, environments = super().reduce(cres)
        # Numba looks up the names of functions in LLVM's code, and this is the one that Python calls.
        entry = llvm.parse_assembly(f'define void @"{function.llvm_cpython_wrapper_name}"() {{ unreachable }}')
        # Those without constants are never read, and to load one imports the module that it belongs to.
        read = tuple(environment for environment in environments if environment.consts)
        return ((name, kind, (machine_code, entry.as_bitcode())), function, *others, read), bitcode

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        return _rebuilt(target_context, payload)


def _rebuilt(target_context: Any, payload: Any) -> Any:
    reduced, bitcode = payload
    cres = CompileResult._rebuild(target_context, *reduced)
    cres.library._get_module_for_linking = cache(partial(llvm.parse_bitcode, bitcode))
    return cres


class _KernelFiles(IndexDataCacheFile):  # type: ignore[misc]
    """The files of one kernel. Those that cannot be read count as none, and are written anew.

    Another version of Kleene wrote them, with types that this one does not have, or a process that was killed.
    """

    def __init__(self, folder: str, name: str) -> None:
        # When a source was written does not matter: what it says is in the key.
        super().__init__(folder, name, None)

    def load(self, key: Any) -> Any:
        return _read_or(None, partial(super().load, key))

    def _load_index(self) -> dict[Any, str]:
        index: dict[Any, str] = _read_or({}, super()._load_index)
        return index


def _read_or(nothing: Any, read: Callable[[], Any]) -> Any:
    try:
        return read()
    except OSError:
        raise
    except Exception:
        return nothing  # reading runs what the file says, which may raise anything


# Called with the name of each kernel that is not kept, before it is compiled.
observers: list[Callable[[str], None]] = []


class KernelCache(FunctionCache):  # type: ignore[misc]
    _impl_class = _Kernels

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self.folder = Path(self._cache_path)
        self._cache_file = _KernelFiles(self._cache_path, self._impl.filename_base)
        self._region = zlib.crc32(self._impl.filename_base.encode())
        self._lock = ExitStack()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """A kept kernel needs Numba's runtime; what compiling needs is loaded only when none is kept.

        Of all processes that share the folder, one at a time compiles a kernel, and the others then find it kept.
        Kernels call each other in no circle, so that no two processes wait for each other.
        """
        rtsys.initialize(target_context)
        overload = _load_shipped(self._py_func, sig, target_context)
        if overload is not None:
            return overload
        with self._guard_against_spurious_io_errors():
            overload = self._load_overload(sig, target_context)
            if overload is not None:
                return overload
        _observe(self._py_func)
        self._lock.enter_context(_regions(self.folder).locked(self._region))
        return super().load_overload(sig, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Where a folder is full, or holds an image's kernels and cannot be written, this process has it alone."""
        with suppress(OSError):
            super().save_overload(sig, data)

    def done(self) -> None:
        """Release the lock: the kernel is compiled and kept, or that failed."""
        self._lock.close()

    @property
    def holds_some(self) -> bool:
        """Whether the kernel is kept, for whatever arguments."""
        return _holds_some(self._cache_file, self._py_func) or _ships_some(self._py_func)

    @property
    def signatures(self) -> set[Any]:
        """The kinds of arguments for which it is kept, compiled for whatever processor."""
        return {signature for signature, *_ in self._cache_file._load_index()}

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return _key(self._py_func, sig, codegen.magic_tuple())


class Unkept(NullCache):  # type: ignore[misc]
    """Where no folder can be written, kernels are compiled anew in each process."""

    folder = None

    def __init__(self, function: Any) -> None:
        self._function = function

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        rtsys.initialize(target_context)
        overload = _load_shipped(self._function, sig, target_context)
        if overload is None:
            _observe(self._function)
        return overload

    @property
    def holds_some(self) -> bool:
        return _ships_some(self._function)

    def done(self) -> None:
        pass


def _key(function: Any, sig: Any, magic: Any) -> Any:
    """The kinds of a kernel's arguments, the processor that it is compiled for, and what it says."""
    return sig, magic, sources(Path(function.__code__.co_filename))


def _holds_some(files: _KernelFiles, function: Any) -> bool:
    current = sources(Path(function.__code__.co_filename))
    return any(key[-1] == current for key in files._load_index())


def _shipped_files(function: Any) -> _KernelFiles:
    """Those of the wheel, under the name that the cache gave them."""
    code = function.__code__
    python = f"py{sys.version_info[0]}{sys.version_info[1]}{getattr(sys, 'abiflags', '')}"
    name = f"{Path(code.co_filename).stem}.{function.__qualname__}-{code.co_firstlineno}.{python}"
    return _KernelFiles(str(shipped.FOLDER), name)


def _load_shipped(function: Any, sig: Any, target_context: Any) -> Any:
    """A kernel that came with the wheel; None where none did, or where it is not for this processor."""
    for baseline in shipped.fitting(function.__module__):
        try:
            payload = _shipped_files(function).load(_key(function, sig, baseline.magic))
        except OSError:
            return None
        if payload is not None:
            return _rebuilt(target_context, payload)
    return None


def _ships_some(function: Any) -> bool:
    """Whether the kernel came with the wheel, for whatever arguments."""
    return shipped.usable() is not None and _holds_some(_shipped_files(function), function)


def _observe(function: Any) -> None:
    for observer in observers:
        observer(f"{function.__module__.rpartition('.')[2]}.{function.__name__}")


@cache
def _regions(folder: Path) -> Regions:
    return Regions(folder / "kernels.lock")


# `from kleene.kernels.x import …`, and `from kleene.kernels import x, y as z`.
_IMPORTED = re.compile(r"^from kleene\.kernels(?:\.(\w+)| import (.+))", re.MULTILINE)


@cache
def sources(path: Path) -> str:
    """The digest of a kernel's file and of the files of the kernels that it imports."""
    text = path.read_text(encoding="utf-8")
    digest = blake2b(text.encode(), digest_size=16)
    for module, listed in _IMPORTED.findall(text):
        for name in [module] if module else re.findall(r"(\w+)(?: as \w+)?", listed):
            digest.update(sources(path.with_name(f"{name}.py")).encode())
    return digest.hexdigest()
