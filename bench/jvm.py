"""Peers in Java: their jars from Maven and a driver compiled against them, both kept in the user's cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from kleene.spark.java import find_java
from kleene.spark.maven import copied


class DriverFailed(RuntimeError):
    """A driver ended with an error; the message has the last of what it said."""


def java_tool(name: str) -> str:
    """The path of `java`, `javac` and the like."""
    return str(find_java(os.environ).home / "bin" / name)


def class_path(peer: str, artifacts: Sequence[str], sources: Path) -> str:
    """The compiled driver and the jars of a peer, made the first time.

    peer        its name and version: the folder in the cache
    artifacts   `group:name:version`
    sources     the folder of the driver's Java files
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kleene-bench" / peer
    jars = os.pathsep.join(map(str, copied(artifacts, cache / "jars")))
    files = sorted(sources.glob("*.java"))
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]
    classes = cache / f"classes-{digest}"
    if not classes.exists():
        draft = Path(tempfile.mkdtemp(prefix=".classes-", dir=cache))
        try:
            compiler = [java_tool("javac"), "-Xlint:-deprecation", "-cp", jars, "-d", str(draft), *map(str, files)]
            subprocess.run(compiler, check=True)
            draft.rename(classes)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return os.pathsep.join([str(classes), jars])


def driven(command: Sequence[str], timeout: float) -> str:
    """What a driver prints."""
    answer = subprocess.run([java_tool("java"), *command], capture_output=True, text=True, timeout=timeout)
    if answer.returncode != 0:
        raise DriverFailed(f"the driver failed: {answer.stderr[-2_000:].strip()}")
    return answer.stdout
