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

_NAMES = ("kleene.kernels", "kleene.kernels.arithmetic", "kleene.kernels.expression", "kleene.kernels.aggregates")


@dataclass(frozen=True)
class Kernels:
    arithmetic: ModuleType
    expression: ModuleType
    aggregates: ModuleType


def _loaded() -> Kernels:
    return Kernels(*(importlib.import_module(name) for name in _NAMES[1:]))


@pytest.fixture(scope="session")
def compiled() -> Kernels:
    return _loaded()


@pytest.fixture(scope="session")
def plain(compiled: Kernels) -> Iterator[Kernels]:
    """What NUMBA_DISABLE_JIT=1 gives, beside the compiled kernels in one process."""
    kept = {name: sys.modules.pop(name) for name in list(sys.modules) if name.startswith("kleene.kernels")}
    numba.config.DISABLE_JIT = 1
    try:
        made = _loaded()
    finally:
        numba.config.DISABLE_JIT = 0
        for name in [name for name in sys.modules if name.startswith("kleene.kernels")]:
            del sys.modules[name]
        sys.modules.update(kept)
        kleene.kernels = kept["kleene.kernels"]  # type: ignore[attr-defined]
    assert not hasattr(made.expression.holds, "py_func")
    with np.errstate(all="ignore"):
        yield made
