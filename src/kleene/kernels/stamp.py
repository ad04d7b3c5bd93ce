"""The stamp: an empty file beside kept kernels, whose name says what they were compiled of and for.

It is written when the last of them is kept, so that one look tells whether any query would wait for the compiler.
"""

from __future__ import annotations

import sys
from functools import cache
from hashlib import blake2b
from pathlib import Path

import llvmlite.binding as llvm
import numba
from numba.core import config

from kleene.kernels.shipped import Baseline


@cache
def stamp_name() -> str:
    """The name for these sources, for this Python, this Numba and this kind of processor."""
    processor = config.CPU_NAME or llvm.get_host_cpu_name()
    features = config.CPU_FEATURES or llvm.get_host_cpu_features().flatten()
    return _name(sys.version, llvm.get_process_triple(), processor, features)


@cache
def shipped_stamp_name(baseline: Baseline) -> str:
    """The name for these sources, for every Python that runs the same machine code, and for a baseline."""
    return _name(str(sys.implementation.cache_tag), *baseline.magic)


def _name(*parts: str) -> str:
    digest = blake2b(digest_size=12)
    for part in (numba.__version__, *parts):
        digest.update(f"{part}\n".encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return f"kernels-{digest.hexdigest()}.all"
