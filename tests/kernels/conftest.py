"""The kernels twice: compiled, and as the plain Python functions that they are without a compiler."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kleene.kernels.interpreting import Kernel, interpreted


@dataclass(frozen=True)
class Kernels:
    arithmetic: ModuleType | SimpleNamespace
    expression: ModuleType | SimpleNamespace
    blocks: ModuleType | SimpleNamespace
    aggregates: ModuleType | SimpleNamespace
    counting: ModuleType | SimpleNamespace
    first_paths: ModuleType | SimpleNamespace


def _modules() -> list[ModuleType]:
    names = ("arithmetic", "expression", "blocks", "aggregates", "counting", "first_paths")
    return [importlib.import_module(f"kleene.kernels.{name}") for name in names]


@pytest.fixture(scope="session")
def compiled() -> Kernels:
    return Kernels(*_modules())


@pytest.fixture(scope="session")
def plain() -> Kernels:
    """The same kernels, called within `interpreted()`."""
    return Kernels(
        *(SimpleNamespace(**{name: _plain(value) for name, value in vars(module).items()}) for module in _modules())
    )


def _plain(value: Any) -> Any:
    if not isinstance(value, Kernel):
        return value

    def call(*arguments: Any, **named: Any) -> Any:
        with interpreted():
            return value(*arguments, **named)

    return call


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """NumPy warns of a division by zero where compiled code does not."""
    with np.errstate(all="ignore"):
        yield
