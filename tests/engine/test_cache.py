"""Where nothing can be written, kernels are compiled anew and everything works; where all are kept, nothing need be."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numba
import pytest

ROOT = Path(__file__).parents[2]
# A kernel, and a match whose query is small enough to run uncompiled.
SCRIPT = """
import json
import numpy as np
import kleene
from kleene.engine import warming
from kleene.kernels import kernel_cache
from kleene.kernels.identity import mixed
compiled = []
kernel_cache.observers.append(compiled.append)
rows = [{"type": "A", "ts": 1, "id": 7}, {"type": "B", "ts": 2, "id": 7}, {"type": "B", "ts": 3, "id": 8}]
matches = kleene.match(rows, "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 10")
found = [(match["a"]["ts"], match["b"]["ts"]) for match in matches]
mixed(np.zeros(1, np.uint64))
folder = None if warming.folder() is None else str(warming.folder())
print(json.dumps({"file": kleene.__file__, "found": found, "folder": folder, "kept": warming.all_kept(),
                  "compiled": compiled}))
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    package = tmp_path / "package"
    shutil.copytree(ROOT / "src" / "kleene", package / "kleene", ignore=shutil.ignore_patterns("__pycache__"))
    return package


def answer(copy: Path, cwd: Path, *, before: Sequence[str] = (), **environment: str) -> dict[str, Any]:
    places = {"HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "TMPDIR", "IPYTHONDIR"}
    usual = {name: value for name, value in os.environ.items() if name not in places and "KLEENE" not in name}
    run = subprocess.run(
        [*before, sys.executable, "-c", SCRIPT],
        cwd=cwd,
        env={**usual, "PYTHONPATH": str(copy), "KLEENE_WARM": "0", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    made: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    assert made["file"] == str(copy / "kleene" / "__init__.py")
    assert made["found"] == [[1, 2]]
    return made


@pytest.mark.slow
def test_a_match_where_no_folder_can_be_written(copy: Path, tmp_path: Path) -> None:
    """A file stands where each folder would be, which stops the superuser too."""
    for folder in [copy / "kleene", *(path for path in (copy / "kleene").rglob("*") if path.is_dir())]:
        (folder / "__pycache__").write_text("no folder")
    nowhere = tmp_path / "no folder"
    nowhere.write_text("")
    homeless = {"HOME": str(nowhere), "XDG_CACHE_HOME": str(nowhere / "cache")}
    before = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*"))
    for cache in ({}, {"NUMBA_CACHE_DIR": str(nowhere / "numba")}):
        made = answer(copy, tmp_path, **homeless, **cache)
        # The match ran uncompiled, and a kernel that is called is compiled in the process.
        assert (made["folder"], made["kept"], made["compiled"]) == (None, False, ["identity.mixed", "identity.mix"])
    assert sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*")) == before


@pytest.mark.slow
def test_kernels_of_an_image_serve_users_who_cannot_write_there(copy: Path, tmp_path: Path) -> None:
    """Compiled by `kleene warm` where Kleene is installed, and used where that cannot be written."""
    from kleene.engine import warming

    kept = warming.folder()
    if kept is None or not warming.all_kept():
        pytest.skip("kernels are not compiled: `kleene warm`")
    beside = copy / "kleene" / "kernels" / "__pycache__"
    shutil.copytree(kept, beside, ignore=shutil.ignore_patterns("*.pyc", "*.lock"))
    home = tmp_path / "home"
    home.mkdir()
    cannot_write: Sequence[str] = ()
    if os.geteuid() == 0:
        # The superuser may write everywhere.
        if shutil.which("setpriv") is None:
            pytest.skip("no way to run as another user")
        cannot_write = ("setpriv", "--bounding-set", "-all", "--inh-caps", "-all", "--ambient-caps", "-all")
    for folder, _, _ in os.walk(copy):
        os.chmod(folder, 0o555)
    try:
        made = answer(copy, home, before=cannot_write, HOME=str(home))
    finally:
        for folder, _, _ in os.walk(copy):
            os.chmod(folder, 0o755)
    assert made == {**made, "folder": str(beside), "kept": True, "compiled": []}
    assert not list(beside.glob("*.lock"))


@pytest.mark.slow
def test_what_cannot_be_read_is_compiled_again(copy: Path, tmp_path: Path) -> None:
    """As after an upgrade in place: the files of the version before lie beside the kernels of this one."""
    cache = tmp_path / "cache"
    answer(copy, tmp_path, NUMBA_CACHE_DIR=str(cache))
    (index,) = cache.rglob("identity.mixed-*.nbi")
    (code,) = cache.rglob("identity.mix-*.nbc")
    index.write_bytes(pickle.dumps(numba.__version__, protocol=-1) + b"cnumba.core.types\nNoSuchType\n.")
    code.write_bytes(b"\x80\x04\x95")
    for expected in (["identity.mixed", "identity.mix"], []):
        assert answer(copy, tmp_path, NUMBA_CACHE_DIR=str(cache))["compiled"] == expected
