"""The connector's jars: asked of Maven once, whole or not at all, and an error that says what to do."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from kleene.errors import MissingConnector
from kleene.spark.connectors import Release, kafka_conf, kafka_jars
from kleene.spark.maven import JarsNotFound, copied

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Maven is played by a shell script")

GIVES_TWO = """
echo called >> "$CALLS"
for argument do case "$argument" in -DoutputDirectory=*) out="${argument#*=}";; esac; done
mkdir -p "$out"; echo a > "$out/a-1.jar"; echo b > "$out/b-1.jar"
"""
HALF_THEN_FAILS = """
for argument do case "$argument" in -DoutputDirectory=*) out="${argument#*=}";; esac; done
mkdir -p "$out"; echo a > "$out/a-1.jar"
echo "[ERROR] Failed to execute goal on project jars: Could not find x in mine (https://me:pw@host/m2) -> [Help 1]"
exit 1
"""


def _maven(folder: Path, script: str) -> dict[str, str]:
    """An environment in which `mvn` is this script, with a cache of its own."""
    program = folder / "bin" / "mvn"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}")
    program.chmod(0o755)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "CALLS": str(folder / "calls"), "XDG_CACHE_HOME": str(folder / "cache")}


def test_maven_is_asked_once(tmp_path: Path) -> None:
    environ = _maven(tmp_path, GIVES_TWO)
    folder = tmp_path / "cache" / "jars"
    first = copied(["g:a:1"], folder, environ=environ)
    assert [jar.name for jar in first] == ["a-1.jar", "b-1.jar"]
    assert copied(["g:a:1"], folder, environ={"PATH": ""}) == first
    assert (tmp_path / "calls").read_text().split() == ["called"]
    assert [entry.name for entry in folder.parent.iterdir()] == ["jars"]


def test_a_failure_leaves_nothing_and_tells_no_password(tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "jars"
    with pytest.raises(JarsNotFound) as caught:
        copied(["g:a:1"], folder, environ=_maven(tmp_path, HALF_THEN_FAILS))
    assert str(caught.value).endswith("Could not find x in mine (https://host/m2)")
    assert list(folder.parent.iterdir()) == []


def test_two_at_once_get_the_same(tmp_path: Path) -> None:
    environ = _maven(tmp_path, f"sleep 0.5\n{GIVES_TWO}")
    folder = tmp_path / "cache" / "jars"
    found: list[tuple[Path, ...]] = []
    callers = [threading.Thread(target=lambda: found.append(copied(["g:a:1"], folder, (), environ))) for _ in range(3)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert found == [(folder / "a-1.jar", folder / "b-1.jar")] * 3
    assert [entry.name for entry in folder.parent.iterdir()] == ["jars"]


def test_the_connector_of_the_spark_that_is_there(tmp_path: Path) -> None:
    environ = _maven(tmp_path, f'echo "$@" > "$CALLS.said"; cp "${{5#--file=}}" "$CALLS.pom"\n{GIVES_TWO}')
    spark = tmp_path / "spark" / "jars"
    spark.mkdir(parents=True)
    for name in ("spark-core_2.14-9.8.7.jar", "zstd-jni-1.5.7-7.jar", "jline-3.29.0-jdk8.jar"):
        (spark / name).touch()
    environ["SPARK_HOME"] = str(spark.parent)
    kept = tmp_path / "cache" / "kleene" / "jars" / "kafka-9.8.7"
    assert kafka_conf(environ=environ) == {"spark.jars": f"{kept / 'a-1.jar'},{kept / 'b-1.jar'}"}
    pom = (tmp_path / "calls.pom").read_text()
    assert "<artifactId>spark-sql-kafka-0-10_2.14</artifactId><version>9.8.7</version>" in pom
    excluded = next(word for word in (tmp_path / "calls.said").read_text().split() if word.startswith("-DexcludeA"))
    assert {"spark-core_2.14", "zstd-jni", "jline"} <= set(excluded.partition("=")[2].split(","))


def test_another_release_has_a_folder_of_its_own(tmp_path: Path) -> None:
    environ = _maven(tmp_path, GIVES_TWO)
    assert kafka_jars(environ=environ)[0].parent != kafka_jars(Release("1.0", "2.0"), environ)[0].parent


def test_without_maven_the_hint_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(MissingConnector, match="Maven is not installed") as caught:
        kafka_jars(environ={"XDG_CACHE_HOME": str(tmp_path)})
    assert "install Maven, or set `spark.jars`" in str(caught.value.hint)
