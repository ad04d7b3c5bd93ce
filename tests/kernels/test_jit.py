"""What is compiled is kept on disk, and not longer than it is true; and it does what its text says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numba
import numpy as np

from kleene.kernels.copies import KernelCompiler
from kleene.kernels.jit import highest_bit
from kleene.kernels.kernel_cache import sources


def test_a_kernel_is_stale_when_a_kernel_that_it_imports_changes(tmp_path: Path) -> None:
    for name, text in {
        "opcodes": "ADD = 1",
        "arithmetic": "from kleene.kernels import opcodes as op",
        "expression": "from kleene.kernels.arithmetic import add",
        "other": "from kleene.kernels import jit",
        "jit": "",
    }.items():
        (tmp_path / f"{name}.py").write_text(text)
    paths = [tmp_path / f"{name}.py" for name in ("expression", "arithmetic", "other")]
    before = [sources(path) for path in paths]
    (tmp_path / "opcodes.py").write_text("ADD = 2")
    sources.cache_clear()
    after = [sources(path) for path in paths]
    assert [old == new for old, new in zip(before, after, strict=True)] == [False, False, True]


def _turned(following: Any, node: Any) -> Any:
    newer = -1
    while node >= 0:
        older = following[node]
        following[node] = newer
        newer = node
        node = older
    return newer


def test_a_variable_that_a_loop_goes_on_with_keeps_its_former_value_until_then() -> None:
    """Numba assigns what a loop goes on with early: a copy that is left out would change the node that is turned."""
    following = np.array([-1, 0, 1, 2], np.int32)
    assert numba.njit(_turned, pipeline_class=KernelCompiler)(following, np.int32(3)) == 0
    assert following.tolist() == [1, 2, 3, -1]


def test_the_highest_bit_is_the_same_compiled_and_plain() -> None:
    compiled = numba.njit(lambda bits: highest_bit(bits))
    for bits in (1, 2, 3, 5, 2**31, 2**32 - 1, 2**62, 2**62 + 1, 2**63 - 1):
        assert compiled(bits) == highest_bit(bits) == bits.bit_length() - 1
