"""Where nothing can be written, kernels are compiled anew and everything works."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = """
import kleene, kleene.kernels.sequence as kernel
rows = [{"type": "A", "ts": 1, "id": 7}, {"type": "B", "ts": 2, "id": 7}, {"type": "B", "ts": 3, "id": 8}]
found = kleene.match(rows, "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 10")
print(kleene.__file__)
print([(match["a"]["ts"], match["b"]["ts"]) for match in found])
print(type(kernel.construct._cache).__name__)
"""


@pytest.mark.slow
def test_a_match_where_no_folder_can_be_written(tmp_path: Path) -> None:
    """A file stands where each folder would be, which stops the superuser too."""
    copy = tmp_path / "package"
    shutil.copytree(ROOT / "src" / "kleene", copy / "kleene", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [copy / "kleene", *(path for path in (copy / "kleene").rglob("*") if path.is_dir())]:
        (folder / "__pycache__").write_text("no folder")
    nowhere = tmp_path / "no folder"
    nowhere.write_text("")
    places = {"HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "TMPDIR", "IPYTHONDIR"}
    environment = {name: value for name, value in os.environ.items() if name not in places and "KLEENE" not in name}
    environment |= {"PYTHONPATH": str(copy), "HOME": str(nowhere), "XDG_CACHE_HOME": str(nowhere / "cache")}
    before = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*"))
    for cache in ("", str(nowhere / "numba")):
        chosen = {**environment, "NUMBA_CACHE_DIR": cache} if cache else environment
        run = subprocess.run(
            [sys.executable, "-c", SCRIPT], cwd=tmp_path, env=chosen, capture_output=True, text=True, check=False
        )
        assert run.returncode == 0, run.stderr
        assert run.stdout.splitlines() == [str(copy / "kleene" / "__init__.py"), "[(1, 2)]", "NullCache"]
    assert sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*")) == before
