"""Kernels compiled beside a user's work: whether all are kept, and a process in the background that makes it so.

The first query after an installation does not wait for the compiler (docs/decisions/013-first-answer.md); this is what
spares the next one the wait.
"""

from __future__ import annotations

import importlib
import logging
import os
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from numba.core import config

from kleene import kernels as package
from kleene.kernels import locking, shipped
from kleene.kernels.arithmetic import add
from kleene.kernels.interpreting import Kernel
from kleene.kernels.jit import kernels
from kleene.kernels.stamp import shipped_stamp_name, stamp_name

_LOG = logging.getLogger("kleene")

# 0: no process in the background. `now`: what is needed is compiled at once, and nothing runs uncompiled meanwhile.
VARIABLE = "KLEENE_WARM"
# Found where this package is, after everything else; nothing beside the working directory is imported.
_PROGRAM = "import sys; sys.path.append({0!r}); from kleene.engine.warm import {1}; {1}()"
_LOCK = "warm-up.lock"
_ready = False


def folder() -> Path | None:
    """Where compiled kernels are kept; None where no folder can be written."""
    return add.dispatcher._cache.folder if isinstance(add, Kernel) else None


def all_kept() -> bool:
    """Whether every kernel came with the wheel or is kept, or compiling is switched off. Looks for one file."""
    global _ready
    if not _ready:
        _ready = bool(config.DISABLE_JIT) or all_shipped() or _all_compiled_here()
    return _ready


def all_shipped() -> bool:
    """Whether every kernel came with the wheel, for a processor like this one."""
    baseline = shipped.usable()
    return baseline is not None and (shipped.FOLDER / shipped_stamp_name(baseline)).exists()


def _all_compiled_here() -> bool:
    cache = folder()
    return cache is not None and (cache / stamp_name()).exists()


def count_kept() -> tuple[int, int]:
    """How many kernels are kept, for some arguments at least, and how many there are."""
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return sum(kernel.dispatcher._cache.holds_some for kernel in kernels), len(kernels)


def stamp() -> None:
    """Say that every kernel is kept."""
    cache = folder()
    if cache is None:
        return
    with suppress(OSError):
        for old in cache.glob("kernels-*.all"):
            old.unlink()
        (cache / stamp_name()).touch()


def is_under_way() -> bool:
    """Whether a process compiles in the background now."""
    cache = folder()
    return cache is not None and locking.is_taken(cache / _LOCK)


def begin() -> bool:
    """Start a process that compiles all kernels with low priority; False when none is started, or one runs already."""
    cache = folder()
    if cache is None or not _may_begin():
        return False
    try:
        lock = locking.take(cache / _LOCK)
    except OSError:
        return False
    if lock is None:
        return False
    try:
        # It holds the lock from its first moment to its last, however it ends.
        _start("beside", cache, start_new_session=True, pass_fds=(lock,))
    except OSError:
        return False
    finally:
        os.close(lock)
    _LOG.info("kernels are compiled in the background, once, and kept in %s", cache)
    return True


@contextmanager
def helped() -> Iterator[None]:
    """Run a second process that compiles in reverse order, where there is a processor for it."""
    cache = folder()
    helper = None
    if cache is not None and (os.cpu_count() or 1) > 1 and _can_start():
        with suppress(OSError):
            helper = _start("help_from_the_end", cache)
    try:
        yield
    finally:
        if helper is not None:
            helper.kill()
            helper.wait()


def _start(function: str, cwd: Path, **options: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-P", "-c", _PROGRAM.format(str(Path(__file__).parents[2]), function)],
        cwd=cwd,
        env={**os.environ, VARIABLE: "now"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        **options,
    )


def _can_start() -> bool:
    """Whether `sys.executable` is Python itself: of a frozen program, it would start the program a second time."""
    return not getattr(sys, "frozen", False) and "python" in Path(sys.executable or "").name.lower()


def _may_begin() -> bool:
    if os.environ.get(VARIABLE) in ("0", "now") or os.environ.get("CI"):
        return False
    spark = sys.modules.get("pyspark")
    return _can_start() and (spark is None or spark.TaskContext.get() is None)
