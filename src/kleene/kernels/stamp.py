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


@cache
def stamp_name() -> str:
    """The name for these sources, for this Python, this Numba and this kind of processor."""
    processor = config.CPU_NAME or llvm.get_host_cpu_name()
    features = config.CPU_FEATURES or llvm.get_host_cpu_features().flatten()
    digest = blake2b(digest_size=12)
    for part in (sys.version, numba.__version__, llvm.get_process_triple(), processor, features):
        digest.update(f"{part}\n".encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return f"kernels-{digest.hexdigest()}.all"
