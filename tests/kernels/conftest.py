"""The kernels twice: compiled, and as the plain Python functions that they are without a compiler."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType

import numba
import numpy as np
import pytest

import kleene


@dataclass(frozen=True)
class Kernels:
    arithmetic: ModuleType
    expression: ModuleType
    blocks: ModuleType
    aggregates: ModuleType
    counting: ModuleType
    first_paths: ModuleType


def _loaded() -> Kernels:
    names = ("arithmetic", "expression", "blocks", "aggregates", "counting", "first_paths")
    return Kernels(*(importlib.import_module(f"kleene.kernels.{name}") for name in names))


@pytest.fixture(scope="session")
def compiled() -> Kernels:
    return _loaded()


@pytest.fixture(scope="session")
def plain(compiled: Kernels) -> Kernels:
    """What NUMBA_DISABLE_JIT=1 gives, beside the compiled kernels in one process."""
    kept = {name: sys.modules.pop(name) for name in list(sys.modules) if name.startswith("kleene.kernels")}
    before = numba.config.DISABLE_JIT
    numba.config.DISABLE_JIT = 1
    try:
        made = _loaded()
    finally:
        numba.config.DISABLE_JIT = before
        for name in [name for name in sys.modules if name.startswith("kleene.kernels")]:
            del sys.modules[name]
        sys.modules.update(kept)
        kleene.kernels = kept["kleene.kernels"]
    assert not hasattr(made.expression.holds, "py_func")
    return made


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """NumPy warns of a division by zero where compiled code does not."""
    with np.errstate(all="ignore"):
        yield
