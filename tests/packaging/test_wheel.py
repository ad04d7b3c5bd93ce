"""The built wheel, installed alone into a clean environment, works from outside the repository."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
QUERY = "PATTERN SEQ(A a, B b) WHERE a.x = b.x WITHIN 10\n"


def run(*command: str | Path, cwd: Path) -> str:
    """Standard output of a command that must succeed, in an environment that knows nothing of this one."""
    environ = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, env=environ, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, f"{command} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, ROOT, cwd=out)
    (built,) = out.glob("kleene-*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` folder of an environment that holds the wheel and its core dependencies, no extras."""
    home = tmp_path_factory.mktemp("clean")
    venv.create(home, with_pip=True)
    scripts = home / ("Scripts" if os.name == "nt" else "bin")
    run(scripts / "python", "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt", wheel, cwd=home)
    return scripts


def test_the_wheel_holds_grammars_and_type_marker_and_nothing_foreign(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    package = ROOT / "src" / "kleene"
    grammars = {path.relative_to(package.parent).as_posix() for path in package.rglob("*.lark")}
    assert grammars
    assert grammars <= names
    assert "kleene/py.typed" in names
    assert {name.split("/")[0] for name in names} == {"kleene", wheel.name.rsplit("-", 3)[0] + ".dist-info"}
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_package_is_imported_from_the_clean_environment(installed: Path, tmp_path: Path) -> None:
    code = "import kleene, sys; print(kleene.__version__, kleene.__file__, 'pyspark' in sys.modules)"
    version, file, has_pyspark = run(installed / "python", "-c", code, cwd=tmp_path).split()
    assert version == "0.1.0"
    assert Path(file).is_relative_to(installed.parent)
    assert has_pyspark == "False"


def test_the_command_helps_and_checks_a_query(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "pair.kleene").write_text(QUERY)
    assert "check" in run(installed / "kleene", "--help", cwd=tmp_path)
    run(installed / "kleene", "check", "pair.kleene", cwd=tmp_path)


def test_the_doctor_is_content_without_extras(installed: Path, tmp_path: Path) -> None:
    code = "from kleene.cli import doctor; checks = doctor.report(); print(doctor.exit_code(checks), len(checks))"
    assert run(installed / "python", "-c", code, cwd=tmp_path).split()[0] == "0"
