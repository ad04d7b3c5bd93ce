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
from tests.soaking import SOAKING

from kleene.engine import warming
from kleene.kernels import shipped

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
    shutil.copytree(
        ROOT / "src" / "kleene", package / "kleene", ignore=shutil.ignore_patterns("__pycache__", "shipped")
    )
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
    for cache in ({"NUMBA_CACHE_DIR": str(nowhere / "numba")}, {})[: 2 if SOAKING else 1]:
        made = answer(copy, tmp_path, **homeless, **cache)
        # The match ran uncompiled, and a kernel that is called is compiled in the process.
        assert (made["folder"], made["kept"], made["compiled"]) == (None, False, ["identity.mixed", "identity.mix"])
    assert sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*")) == before


@pytest.mark.slow
def test_kernels_of_an_image_serve_users_who_cannot_write_there(copy: Path, tmp_path: Path) -> None:
    """Compiled by `kleene warm` where Kleene is installed, and used where that cannot be written."""
    baseline = shipped.usable()
    if baseline is None or not warming.all_shipped():
        pytest.skip("kernels are not compiled: `python -m kleene.engine.baseline_kernels`")
    beside = copy / "kleene" / "kernels" / "__pycache__"
    shutil.copytree(shipped.FOLDER, beside, ignore=shutil.ignore_patterns("*.all"))
    # As if it were compiled for this processor, which has what the baseline has.
    processor = {"NUMBA_CPU_NAME": baseline.processor, "NUMBA_CPU_FEATURES": ""}
    stamp = "from kleene.kernels.stamp import stamp_name; print(stamp_name())"
    usual = {**os.environ, **processor, "PYTHONPATH": str(copy)}
    name = subprocess.run([sys.executable, "-c", stamp], env=usual, capture_output=True, text=True, check=True).stdout
    (beside / name.strip()).touch()
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
        made = answer(copy, home, before=cannot_write, HOME=str(home), **processor)
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


@pytest.fixture
def shipping(copy: Path) -> Path:
    """A copy with the kernels that a wheel brings along, though nothing can be written beside them."""
    if not warming.all_shipped():
        pytest.skip("kernels are not compiled: `python -m kleene.engine.baseline_kernels`")
    shutil.copytree(shipped.FOLDER, copy / "kleene" / "kernels" / "shipped")
    return copy


@pytest.mark.slow
def test_shipped_kernels_are_used_with_and_without_a_folder_of_ones_own(shipping: Path, tmp_path: Path) -> None:
    cache, nowhere = tmp_path / "cache", tmp_path / "no folder"
    nowhere.write_text("")
    for folder in [shipping / "kleene", *(path for path in (shipping / "kleene").rglob("*") if path.is_dir())]:
        (folder / "__pycache__").write_text("no folder")
    places = {"HOME": str(nowhere), "XDG_CACHE_HOME": str(nowhere / "cache")}
    for own in (cache, nowhere / "numba"):
        made = answer(shipping, tmp_path, **places, NUMBA_CACHE_DIR=str(own))
        assert (made["kept"], made["compiled"]) == (True, [])
    assert not list(cache.rglob("*.nbi")), "nothing was compiled, and nothing kept"


@pytest.mark.slow
@pytest.mark.parametrize("reason", ["the user", "another processor", "other sources"])
def test_shipped_kernels_that_do_not_fit_are_as_good_as_absent(shipping: Path, tmp_path: Path, reason: str) -> None:
    more = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    if reason == "the user":
        more["KLEENE_SHIPPED"] = "0"
    elif reason == "another processor":
        # A baseline that no processor has.
        file = shipping / "kleene" / "kernels" / "shipped.py"
        file.write_text(
            file.read_text().replace('"neon"', '"no such feature"').replace('"cx16', '"no-such-feature cx16')
        )
    else:
        file = shipping / "kleene" / "kernels" / "identity.py"
        file.write_text(file.read_text() + "\n# another version\n")
    made = answer(shipping, tmp_path, **more)
    assert (made["kept"], made["compiled"]) == (False, ["identity.mixed", "identity.mix"])


@pytest.mark.parametrize("has_wide", [True, False])
def test_wider_processors_have_kernels_of_their_own_where_these_pay(
    monkeypatch: pytest.MonkeyPatch, *, has_wide: bool
) -> None:
    usual, wide = shipped.baseline(), shipped.wider()
    if usual is None or wide is None or not warming.all_shipped():
        pytest.skip("no kernels are shipped for wider processors of this kind")
    features = dict.fromkeys(wide.features if has_wide else usual.features, True)
    monkeypatch.setattr("llvmlite.binding.get_host_cpu_features", lambda: features)
    fitting = shipped.fitting.__wrapped__
    assert fitting("kleene.kernels.identity") == ((wide, usual) if has_wide else (usual,))
    assert fitting("kleene.kernels.sequence") == (usual,)
    (index,) = shipped.FOLDER.glob("identity.ids_of_singles-*.nbi")
    with index.open("rb") as file:
        assert pickle.load(file) == numba.__version__
        _, kept = pickle.load(file)
    assert {magic[1] for _, magic, _ in kept} == {usual.processor, wide.processor}
