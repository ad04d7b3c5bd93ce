"""What is compiled is kept on disk, and not longer than it is true."""

from __future__ import annotations

from pathlib import Path

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
