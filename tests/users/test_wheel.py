"""The built wheel, installed into a clean environment outside the repository, works there as a user has it.

In this order: by a user who may write neither the installation nor a home; then with an empty cache of kernels that can
be written; then everything that README and the documentation show; then a plain Spark session and the command.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.soaking import SOAKING
from tests.users.first_match import READINGS, STOLEN, shown
from tests.users.places import HERE, NOBODY, ROOT, can_be_nobody, environment, link_packages, results
from tests.users.places import run as in_place

import kleene
from kleene.engine import warming

pytestmark = pytest.mark.slow

QUERY = "PATTERN SEQ(A a, B b) WHERE a.x = b.x WITHIN 10\n"
RETAIL = ROOT / "examples" / "retail"


def run(*command: str | Path, cwd: Path, **more: str) -> str:
    """Standard output of a command that must succeed, in an environment that knows nothing of this one."""
    done = in_place(command, cwd=cwd, environ=outside(**more))
    assert done.returncode == 0, f"{command} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def outside(**more: str) -> dict[str, str]:
    """Nothing is compiled in the background, which takes a processor for minutes: `test_first_answer` has seen that."""
    more = {"KLEENE_WARM": "0", **more}
    return {name: value for name, value in environment(**more).items() if name != "PYTHONPATH" or name in more}


@pytest.fixture(scope="module")
def public() -> Iterator[Path]:
    """A folder that other users can look into, which those of pytest are not."""
    made = Path(tempfile.mkdtemp(prefix="kleene-users-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture(scope="module")
def wheel(public: Path) -> Path:
    out = public / "dist"
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, ROOT, cwd=public)
    (built,) = out.glob("kleene-*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, public: Path) -> Path:
    """The `bin` folder of an environment that holds the wheel and its core dependencies, no extras."""
    home = public / "clean"
    # The pip of this environment installs into that one: a pip of its own would take seconds more.
    venv.create(home)
    scripts = home / ("Scripts" if os.name == "nt" else "bin")
    pip = (sys.executable, "-m", "pip", "--python", scripts / "python")
    run(*pip, "install", "-q", "--no-compile", "-c", ROOT / "constraints.txt", wheel, cwd=home)
    return scripts


@pytest.fixture(scope="module")
def extras(public: Path) -> Path:
    """PySpark, pandas and whatever else this environment has, but not its Kleene: installing them takes minutes."""
    made = public / "extras"
    made.mkdir()
    link_packages(made)
    return made


@pytest.fixture(scope="module")
def script(public: Path) -> Path:
    return Path(shutil.copy(HERE / "first_match.py", public))


def expected() -> list[list[Any]]:
    return [shown(match) for match in kleene.match(READINGS, STOLEN)]


# Where nothing can be written --------------------------------------------------------------------------------------


def test_another_user_with_a_read_only_home_and_installation(installed: Path, public: Path, script: Path) -> None:
    """Nothing is compiled yet, and there is no place where kernels could be kept."""
    why_not = can_be_nobody(installed / "python")
    if why_not is not None:
        pytest.skip(why_not)
    home = public / "home"
    home.mkdir(mode=0o555)
    found = results([installed / "python", script], cwd=home, environ=outside(HOME=str(home)), nobody=True)
    assert found == {"kleene": found["kleene"], "user": NOBODY, "matches": expected()}
    assert Path(found["kleene"]).is_relative_to(installed.parent)
    assert list(home.iterdir()) == []


# Alone -------------------------------------------------------------------------------------------------------------


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


def test_the_first_match_with_an_empty_cache(installed: Path, tmp_path: Path, script: Path) -> None:
    found = results([installed / "python", script], cwd=tmp_path, environ=outside(HOME=str(tmp_path)))
    assert found["matches"] == expected()


def test_the_wheel_brings_its_kernels_along(wheel: Path, installed: Path, tmp_path: Path, record_property: Any) -> None:
    """The first answer over a thousand events, nothing compiled for it: another folder, an empty cache and home."""
    if not warming.all_shipped():
        pytest.skip("kernels are not compiled: `python -m kleene.engine.baseline_kernels`")
    tag = wheel.stem.split("-", 2)[2]
    assert tag.startswith(f"cp{sys.version_info[0]}{sys.version_info[1]}-none-")
    assert not tag.endswith("any")
    environ = outside(HOME=str(tmp_path), KLEENE_WARM="now")
    began = os.times()
    found = results([installed / "python", HERE / "thousand_events.py"], cwd=tmp_path, environ=environ)
    now = os.times()
    processor = now.children_user + now.children_system - began.children_user - began.children_system
    assert (found["compiled"], found["kept"]) == ([], True)
    assert found["matches"] > 0
    record_property("counted", f"a wheel's first answer over 1,000 events: {processor:.1f} s of processor; goal 3 s")
    assert processor <= 3.0
    # Not for this query only: none waits for a compiler, for whatever kind of data.
    every = results([installed / "python", HERE / "queries_of_every_kind.py"], cwd=tmp_path, environ=environ)
    assert every["compiled"] == []
    assert sum(number > 0 for number in every["found"]) > len(every["found"]) / 2
    assert not list(tmp_path.rglob("*.nb[ic]"))


def test_the_demo_runs_without_extras(installed: Path, tmp_path: Path) -> None:
    out = run(installed / "kleene", "demo", "--events", "200", "--output", "out", cwd=tmp_path)
    assert out.startswith("PySpark is not installed, so this runs in this process")
    assert "pip install 'kleene[spark]'" in out
    assert "3 found, 3 hidden" in out


# With extras -------------------------------------------------------------------------------------------------------


def test_what_readme_and_documentation_show(installed: Path, extras: Path, tmp_path: Path) -> None:
    """All pages in `make soak`; in the checkout `tests/docs` has seen them all."""
    pages = [] if SOAKING else ["README.md", "docs/errors.md"]
    (tmp_path / "pages").mkdir()
    environ = outside(HOME=str(tmp_path), PYTHONPATH=str(extras))
    found = results([installed / "python", HERE / "pages.py", *pages], cwd=tmp_path / "pages", environ=environ)
    assert Path(found.pop("kleene")).is_relative_to(installed.parent)
    assert {"README.md sessions", "docs/errors.md errors"} <= set(found)
    assert not SOAKING or "docs/explain.md commands" in found
    assert {place: differences for place, differences in found.items() if differences} == {}


def test_a_plain_session_in_a_venv_that_nobody_activated(
    installed: Path, extras: Path, public: Path, script: Path
) -> None:
    """By another user where that is possible; the first `python3` on PATH knows no Kleene."""
    pytest.importorskip("pyspark")
    nobody = can_be_nobody(installed / "python") is None
    folder = public / "spark"
    folder.mkdir()
    if nobody:
        os.chown(folder, NOBODY, NOBODY)
    environ = outside(HOME=str(folder), PYTHONPATH=str(extras))
    found = results([installed / "python", script, "spark"], cwd=folder, environ=environ, nobody=nobody)
    assert found["matches"] == expected()
    assert found["user"] == (NOBODY if nobody else os.getuid())


@pytest.mark.soak
def test_the_pipeline_of_the_readme(installed: Path, extras: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    shutil.copytree(RETAIL, tmp_path / "examples" / "retail", ignore=shutil.ignore_patterns("demo-output"))
    command: list[str | Path] = [installed / "kleene", "run", "examples/retail/pipeline.toml"]
    environ = outside(HOME=str(tmp_path), PYTHONPATH=str(extras), TZ="America/New_York", COLUMNS="200")
    done = in_place(command, cwd=tmp_path, environ=environ)
    assert done.returncode == 0, done.stderr
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = readme.split("$ kleene run examples/retail/pipeline.toml\n")[1].split("\n```")[0].splitlines()
    printed = {line.rstrip() for line in (done.stdout + done.stderr).splitlines()}
    assert [line for line in shown if line != "…" and line not in printed] == []
