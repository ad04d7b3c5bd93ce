"""The start of Spark's JVM: what it says is passed on, but for what is no news; the options it is started with."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kleene.spark import class_archive
from kleene.spark.gateway import news

WORKER = "Streaming TransformWithStateInPandas Python worker"
CHATTER = [
    "WARNING: Using incubator modules: jdk.incubator.vector",
    f"Starting {WORKER}.",
    "",
    f"{WORKER} finish init stage of Python runner. Received UDF from JVM: <bound method f>, received return type …",
    "",
    f"{WORKER} received parameters for UDF. State server port/path: 4321, key schema: StructType([]).",
    "",
    f"{WORKER} Starting execution of UDF: <bound method f>.",
    "",
    f"{WORKER} Completed execution of UDF: <bound method f>.",
    "",
]
NEWS = [
    "java.lang.OutOfMemoryError: Java heap space",
    "",
    "Traceback (most recent call last):",
    f"RuntimeError: {WORKER} died",
    "WARNING: Using incubator modules: jdk.incubator.foreign",
]


def test_chatter_is_dropped_and_everything_else_is_not() -> None:
    lines = [f"{line}\n".encode() for line in [*CHATTER[:5], *NEWS, *CHATTER[5:], "", "last"]]
    assert [line.decode().rstrip("\n") for line in news(lines)] == [*NEWS, "", "last"]


@pytest.mark.spark
@pytest.mark.soak
def test_a_stream_prints_nothing_of_pysparks_own(tmp_path: Path) -> None:
    """In a process of its own; what a worker writes to its error output comes through.

    Functions on batches and the stream's operator have one daemon: a second one would load everything again. And Java
    maps the archive of classes that `make setup` made: it says nothing about one that it does not take.
    """
    program = """
import os, sys
import kleene
from kleene.plan.settings import Settings, Stream
from kleene.spark.class_archive import archive_file, make_archive
from kleene.spark.java import ensure_java
from kleene.spark.session import local_session

ensure_java()
archive_file().is_file() or make_archive()

def loud(batches):
    os.write(2, b"a worker speaks\\n")
    yield from batches

session = local_session()
events = session.createDataFrame([("A", 1, 5), ("B", 2, 5), ("Z", 99, 0)], "type string, ts long, x long")
events.mapInArrow(loud, events.schema).write.json("in")
stream = session.readStream.schema(events.schema).json("in")
run = kleene.live(stream, "PATTERN SEQ(A a, B b) WHERE [x] WITHIN 10", settings=Settings(stream=Stream(delay=1)))
found = []
going = run.start(lambda made, _: found.append(made.number("matches")), checkpoint="state", available_now=True)
going.awaitTermination()
java = session.sparkContext._jvm.java.lang.ProcessHandle.current()
commands = [child.info().commandLine().orElse("") for child in java.children().toArray()]
daemons = sum("kleene.spark.daemon" in command for command in commands)
print(sum(found), daemons, str(archive_file()) in open(f"/proc/{java.pid()}/maps").read())
"""
    ended = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    said = ended.stderr
    assert (ended.returncode, ended.stdout) == (0, "1 1 True\n"), said
    assert "a worker speaks" in said
    assert WORKER not in said
    assert "incubator" not in said


# The class archive ---------------------------------------------------------------------------------------------------


def test_an_archive_is_used_when_it_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is of one Java and one PySpark; without a Java that says what it is there is none."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    assert class_archive.archive_file() is None
    (tmp_path / "java").mkdir()
    (tmp_path / "java" / "release").write_text('JAVA_VERSION="17.0.15"\n')
    file = class_archive.archive_file()
    assert file is not None
    assert class_archive.archive_options() == ()
    file.parent.mkdir(parents=True)
    file.touch()
    assert f"-XX:SharedArchiveFile={file}" in class_archive.archive_options()
    (tmp_path / "java" / "release").write_text('JAVA_VERSION="21.0.1"\n')
    assert class_archive.archive_options() == ()
