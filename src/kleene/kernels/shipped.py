"""Machine code that comes with the wheel: kernels compiled for a baseline that most processors of a kind have.

Whoever has the baseline, and the Python and Numba of the wheel, never waits for a compiler. For everybody else the
files are as good as absent: kernels are then compiled as if nothing had been shipped. `KLEENE_SHIPPED=0` says so, too.
"""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path
from typing import NamedTuple

import llvmlite.binding as llvm
from numba.core import config

FOLDER = Path(__file__).parent / "shipped"
VARIABLE = "KLEENE_SHIPPED"


class Baseline(NamedTuple):
    """A processor as LLVM calls it, and what a host must have to run code for it."""

    processor: str
    features: frozenset[str]

    @property
    def magic(self) -> tuple[str, str, str]:
        """What Numba says of code that it compiles for it."""
        return llvm.get_process_triple(), self.processor, ""


_V2 = "cx16 popcnt sahf sse3 sse4.1 sse4.2 ssse3"
_V3 = "avx avx2 bmi bmi2 f16c fma lzcnt movbe xsave"
_BASELINES = {
    # Processors since 2013 (Haswell) and 2015 (Excavator).
    "x86_64": Baseline(
        "x86-64-v3",
        frozenset(_V2.split()) | frozenset(_V3.split()),
    ),
    "aarch64": Baseline("generic", frozenset({"neon"})),
}
_V4 = "avx512bw avx512cd avx512dq avx512f avx512vl"
# Kernels of these modules are shipped for wider processors as well (since 2017): they multiply integers of 64 bits,
# several of which are one instruction there and a dozen without it.
WIDE_MODULES = frozenset({"kleene.kernels.identity"})
_WIDER = {"x86_64": Baseline("x86-64-v4", _BASELINES["x86_64"].features | frozenset(_V4.split()))}
_NAMES = {"amd64": "x86_64", "arm64": "aarch64"}


def baseline() -> Baseline | None:
    """That of this kind of machine; None where nothing is shipped for it."""
    return _BASELINES.get(_machine())


def wider() -> Baseline | None:
    """That of wider processors of this kind; None where there are none."""
    return _WIDER.get(_machine())


def _machine() -> str:
    machine = platform.machine().lower()
    return _NAMES.get(machine, machine)


@cache
def usable() -> Baseline | None:
    """The baseline of shipped kernels, where there are some and this processor can run them."""
    known = baseline()
    refused = os.environ.get(VARIABLE) == "0" or config.CPU_NAME is not None
    if known is None or refused or not FOLDER.is_dir():
        return None
    return known if _has(known) else None


@cache
def fitting(module: str) -> tuple[Baseline, ...]:
    """The baselines of shipped kernels of a module that this processor can run, the better one first."""
    usual, wide = usable(), wider()
    if usual is None:
        return ()
    return (wide, usual) if wide is not None and module in WIDE_MODULES and _has(wide) else (usual,)


def _has(baseline: Baseline) -> bool:
    has = llvm.get_host_cpu_features()
    return all(has.get(feature, False) for feature in baseline.features)
