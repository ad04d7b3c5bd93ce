"""Jars from Maven, kept in the user's cache: a folder of them is there whole, or not at all."""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from kleene.durable import commit
from kleene.spark.java import find_java

_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
_PATIENCE = 900

_log = logging.getLogger("kleene.spark.maven")

# A version that is managed goes before the one that another artifact asks for.
_POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>kleene</groupId>
  <artifactId>jars</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencyManagement><dependencies>{dependencies}</dependencies></dependencyManagement>
  <dependencies>{dependencies}</dependencies>
</project>
"""


class JarsNotFound(RuntimeError):
    """Maven could not get the jars; the message says why, as half a sentence."""


class NoMaven(JarsNotFound):
    """There is no Maven to ask."""


def jars_folder(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kleene" / "jars"


def copied(
    artifacts: Sequence[str], folder: Path, without: Iterable[str] = (), environ: Mapping[str, str] | None = None
) -> tuple[Path, ...]:
    """The jars of some artifacts and of all that they need at run time; Maven is asked only the first time.

    artifacts   `group:name:version`; these versions go before those that the artifacts ask of each other
    folder      where the jars are kept
    without     names of artifacts to leave out
    """
    if not _jars(folder):
        _copy(artifacts, folder, without, os.environ if environ is None else environ)
    return _jars(folder)


def _jars(folder: Path) -> tuple[Path, ...]:
    return tuple(sorted(folder.glob("*.jar")))


def _copy(artifacts: Sequence[str], folder: Path, without: Iterable[str], environ: Mapping[str, str]) -> None:
    maven = shutil.which("mvn", path=environ.get("PATH", ""))
    if maven is None:
        raise NoMaven("Maven is not installed")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        # Beside the folder, since only a rename on the same disk is one step.
        draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError as problem:
        raise JarsNotFound(f"the cache cannot be written ({problem})") from None
    try:
        (draft / "pom.xml").write_text(_pom(artifacts), encoding="utf-8")
        _ask(maven, draft, without, environ)
        _settle(draft / "jars", folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _pom(artifacts: Sequence[str]) -> str:
    entries = []
    for artifact in artifacts:
        group, name, version = map(escape, artifact.split(":"))
        entries.append(
            f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId>"
            f"<version>{version}</version></dependency>"
        )
    return _POM.format(dependencies="".join(entries))


def _ask(maven: str, draft: Path, without: Iterable[str], environ: Mapping[str, str]) -> None:
    command = [
        maven,
        "--quiet",
        "--batch-mode",
        "--update-snapshots",  # or what a repository lacked yesterday is not looked for today
        "-Dstyle.color=never",
        f"--file={draft / 'pom.xml'}",
        _COPY,
        "-DincludeScope=runtime",
        f"-DexcludeArtifactIds={','.join(sorted(without))}",
        f"-DoutputDirectory={draft / 'jars'}",
    ]
    environment = {**environ, "JAVA_HOME": str(find_java(environ).home)}
    _log.info("Maven copies jars: %s", draft)
    try:
        answer = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_PATIENCE,
        )
    except (OSError, subprocess.SubprocessError) as problem:
        raise JarsNotFound(f"Maven did not finish ({problem})") from None
    if answer.returncode != 0:
        raise JarsNotFound(f"Maven failed: {_reason(answer.stdout)}")


def _reason(output: str) -> str:
    """The first error of Maven, without its pointers to help and without credentials in an address."""
    match = re.search(r"\[ERROR\] (.+)", output)
    said = match[1] if match else output.strip()[-500:] or "it said nothing"
    said = re.sub(r"Failed to execute goal .*? for project kleene:jars:pom:1: | -> \[Help \d+\].*", "", said)
    return re.sub(r"(?<=://)[^/@\s]*@", "", said)


def _settle(draft: Path, folder: Path) -> None:
    try:
        commit(draft, folder)
    except OSError as problem:
        if not _jars(folder):
            raise JarsNotFound(f"the jars could not be put into the cache ({problem})") from None
        _log.debug("%s was made by another process meanwhile", folder)
