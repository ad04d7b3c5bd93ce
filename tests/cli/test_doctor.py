"""`kleene doctor` on healthy, poor and broken installations."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

import pytest

from kleene.cli import doctor
from kleene.cli.doctor import Check, exit_code, render, report
from kleene.engine import warming
from kleene.spark.java import Java, JavaNotFound


class Installation:
    """A pretended set of installed packages: unchanged unless named here; None means absent."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.versions: dict[str, str | None] = {}
        real = metadata.version

        def version(name: str) -> str:
            if name not in self.versions:
                return real(name)
            found = self.versions[name]
            if found is None:
                raise metadata.PackageNotFoundError(name)
            return found

        monkeypatch.setattr(metadata, "version", version)


@pytest.fixture
def installation(monkeypatch: pytest.MonkeyPatch) -> Installation:
    monkeypatch.setattr(doctor, "find_java", lambda: Java(Path("/opt/java"), "17.0.9", "JAVA_HOME"))
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setattr(warming, "_ready", True)
    packages = Installation(monkeypatch)
    packages.versions |= {"pyspark": "4.3.0", "pandas": "2.3.3", "polars": "1.5.0"}
    return packages


def checked(name: str) -> Check:
    return {check.name: check for check in report()}[name]


def fake_python(folder: Path, answer: str) -> Path:
    folder.mkdir()
    python = folder / "python3"
    python.write_text(f"#!/bin/sh\n{answer}\n")
    python.chmod(0o755)
    return python


def test_a_healthy_installation_has_nothing_to_say(installation: Installation) -> None:
    checks = report()
    assert [check for check in checks if not check.ok] == []
    assert exit_code(checks) == 0
    assert render(checks).endswith("All is well.")
    assert "17.0.9 (/opt/java, from JAVA_HOME)" in render(checks)


def test_an_absent_spark_extra_is_a_warning(installation: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_java() -> Java:
        raise JavaNotFound.after_looking([])

    monkeypatch.setattr(doctor, "find_java", no_java)
    installation.versions |= {"pyspark": None, "pandas": None, "polars": None}
    checks = report()
    assert exit_code(checks) == 0
    assert {check.name for check in checks if not check.ok} == {"pandas", "polars", "pyspark", "Java"}
    assert "→ To use it with Kleene: pip install 'kleene[spark]'" in render(checks)
    assert render(checks).endswith("Works, with a warning on pandas, polars, pyspark, Java.")


def test_spark_without_java_is_broken(installation: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    def only_old() -> Java:
        raise JavaNotFound.after_looking(["Java 11.0.2 (PATH)"])

    monkeypatch.setattr(doctor, "find_java", only_old)
    assert "only Java 11.0.2 (PATH) was found" in checked("Java").advice
    assert exit_code(report()) == 1


def test_pandas_3_is_refused_beside_spark_only(installation: Installation) -> None:
    installation.versions["pandas"] = "3.0.0"
    assert checked("pandas").mark == "✗"
    assert "<3" in checked("pandas").advice
    installation.versions["pyspark"] = None
    assert checked("pandas").ok


def test_a_core_package_that_is_absent_too_old_or_damaged_is_broken(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    installation.versions["lark"] = None
    assert (checked("lark").value, exit_code(report())) == ("not installed", 1)
    installation.versions["lark"] = "1.1.9"
    assert "lark>=1.2" in checked("lark").advice
    installation.versions["lark"] = "1.10"
    assert checked("lark").ok

    monkeypatch.setitem(sys.modules, "lark", None)  # makes an import of it fail
    assert checked("lark").value.startswith("1.10, but cannot be imported: ")
    assert exit_code(report()) == 1


@pytest.mark.parametrize(
    ("version", "bounds", "expected"),
    [
        ("17", ">=17.0.0", True),
        ("16.9.1", ">=17", False),
        ("2.10.0", ">=2.2,<3", True),
        ("3.0.0rc1", ">=2.2,<3", False),
        ("2.2", "<3,>=2.2", True),
        ("2026.6.post0", ">=2026.6", True),
        ("1.0", "", True),
    ],
)
def test_bounds(version: str, bounds: str, expected: bool) -> None:
    assert doctor._satisfies(version, bounds) is expected


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        ("echo 3.9 1", "it is Python 3.9, this is"),
        (f"echo {sys.version_info.major}.{sys.version_info.minor} 0", "it has no kleene"),
        ("exit 1", "it does not start"),
    ],
)
def test_a_worker_python_that_cannot_run_kleene_is_reported(
    installation: Installation, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, answer: str, fault: str
) -> None:
    python = fake_python(tmp_path / "bin", answer)
    monkeypatch.setenv("PYSPARK_PYTHON", str(python))
    check = checked("PYSPARK_PYTHON")
    assert fault in check.value
    assert check.advice.endswith(f"export PYSPARK_PYTHON={sys.executable}")
    assert exit_code(report()) == 1


def test_an_unset_worker_python_that_would_be_another_is_a_warning(
    installation: Installation, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake_python(tmp_path / "bin", "echo 3.9 1")
    monkeypatch.delenv("PYSPARK_PYTHON")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert checked("PYSPARK_PYTHON").mark == "!"
    assert exit_code(report()) == 0


def test_another_python_is_really_asked(tmp_path: Path) -> None:
    link = tmp_path / "python3"
    link.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    link.chmod(0o755)
    assert doctor._ask_interpreter(str(link)) == (f"{sys.version_info.major}.{sys.version_info.minor}", True)


def test_a_missing_worker_python_is_broken(installation: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "/no/such/python")
    assert checked("PYSPARK_PYTHON").value == "/no/such/python: /no/such/python does not exist"


def test_brackets_in_values_and_advice_are_not_taken_for_markup() -> None:
    text = render([Check("pyspark", "[red]4[/red]", False, "pip install 'kleene[spark]'")])
    assert text.splitlines() == [
        "✗ pyspark [red]4[/red]",
        "          → pip install 'kleene[spark]'",
        "Needs repair: pyspark.",
    ]
