"""Spark's settings in a file that only this user can read, since everybody can read the arguments of a process.

PySpark gives settings to `spark-submit` as arguments, which stand in every list of processes for as long as Spark runs,
passwords among them. The file is read while the JVM starts, and removed then.
"""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
_SHELL = "pyspark-shell"
_FILE = "--properties-file"
# What Java's reader of properties would take for something else than itself.
_SPECIAL = re.compile(r"[^\x21-\x7e]|[\\=:#!]")
_SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t", "\f": r"\f"}


@contextmanager
def settings_in_file(settings: Mapping[str, str]) -> Iterator[bool]:
    """Have `spark-submit` read these settings from a file; False where its arguments name another one already."""
    before = os.environ.get(_ARGUMENTS)
    words = shlex.split(before or _SHELL)
    if any(word == _FILE or word.startswith(f"{_FILE}=") for word in words):
        yield False
        return
    # Only its owner can read a file that `mkstemp` makes.
    handle, path = tempfile.mkstemp(prefix="kleene-spark-", suffix=".conf")
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.writelines(f"{escaped(name)}={escaped(value)}\n" for name, value in settings.items())
        os.environ[_ARGUMENTS] = shlex.join(["--load-spark-defaults", _FILE, path, *words])
        yield True
    finally:
        if before is None:
            os.environ.pop(_ARGUMENTS, None)
        else:
            os.environ[_ARGUMENTS] = before
        with suppress(OSError):
            os.unlink(path)


def escaped(text: str) -> str:
    """A name or a value as Java reads it back from a file of properties."""

    def code(match: re.Match[str]) -> str:
        sign = match[0]
        if sign in _SHORT:
            return _SHORT[sign]
        if sign.isascii() and sign.isprintable():
            return f"\\{sign}"
        units = sign.encode("utf-16-be", "surrogatepass")
        return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))

    return _SPECIAL.sub(code, text)
