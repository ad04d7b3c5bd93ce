"""`kleene doctor`: what this installation consists of, what is wrong with it, and one line of advice for each fault.

Versions are read from package metadata: what is optional is never imported, so a broken or slow import of it (pyspark
above all) cannot break the report.
"""

from __future__ import annotations

import importlib
import io
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata

from rich.console import Console
from rich.table import Table
from rich.text import Text

from kleene.spark.java import JavaNotFound, find_java

CORE = ("pyarrow", "lark", "numpy", "numba", "rich", "typer")
MINIMUM_PYTHON = (3, 11)
_INTERPRETER_SECONDS = 20


@dataclass(frozen=True)
class Check:
    """One line of the report; a fault in something that is not `needed` is a warning."""

    name: str
    value: str
    ok: bool
    advice: str = ""
    needed: bool = True

    @property
    def mark(self) -> str:
        return "✓" if self.ok else "✗" if self.needed else "!"


def report() -> list[Check]:
    """Looks at everything, once, without importing pyspark, pandas or polars."""
    bounds = _bounds()
    has_spark = _installed("pyspark") is not None
    optional = [("pandas", "spark" if has_spark else "pandas"), ("polars", "polars"), ("pyspark", "spark")]
    return [
        _python(),
        _kleene(),
        *(_core(name, bounds.get((name, ""), "")) for name in CORE),
        _kernels(),
        *(_optional(name, extra, bounds.get((name, extra), "")) for name, extra in optional),
        _java(needed=has_spark),
        *([_worker_python(os.environ)] if has_spark else []),
    ]


def exit_code(checks: Sequence[Check]) -> int:
    """0 if all that is needed works, 1 otherwise; warnings do not count."""
    return int(any(check.needed and not check.ok for check in checks))


def render(checks: Sequence[Check]) -> str:
    """The report as text: a line for each check, and the advice below what is wrong; no line is broken, so that
    a command can be copied."""
    table = Table.grid(padding=(0, 1))
    for check in checks:
        table.add_row(check.mark, check.name, Text(check.value))
        if not check.ok:
            table.add_row("", "", Text(f"→ {check.advice}"))
    out = io.StringIO()
    console = Console(file=out, width=10_000, color_system=None, highlight=False)
    console.print(table)
    console.print(_verdict(checks))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def _verdict(checks: Sequence[Check]) -> str:
    broken = [check.name for check in checks if check.needed and not check.ok]
    warned = [check.name for check in checks if not check.needed and not check.ok]
    if broken:
        return f"Needs repair: {', '.join(broken)}."
    return f"Works, with a warning on {', '.join(warned)}." if warned else "All is well."


def _python() -> Check:
    wanted = ".".join(map(str, MINIMUM_PYTHON))
    value = f"{platform.python_version()} ({sys.executable})"
    return Check("Python", value, sys.version_info >= MINIMUM_PYTHON, f"Kleene needs Python {wanted} or newer.")


def _kleene() -> Check:
    version = _installed("kleene")
    return Check("Kleene", version or "not installed", version is not None, "Install it: pip install kleene")


def _core(name: str, wanted: str) -> Check:
    version = _installed(name)
    repair = f"pip install --force-reinstall '{name}{wanted}'"
    if version is None:
        return Check(name, "not installed", False, f"Kleene cannot work without it: {repair}")
    if not _satisfies(version, wanted):
        return Check(name, version, False, f"Kleene needs {name}{wanted}: {repair}")
    try:
        importlib.import_module(name)
    except Exception as problem:  # a damaged package may raise anything on import
        return Check(name, f"{version}, but cannot be imported: {problem}", False, f"Install it again: {repair}")
    return Check(name, version, True)


def _kernels() -> Check:
    """How many kernels are compiled, and the folder that keeps them."""
    try:
        from kleene.engine import warming

        folder = warming.folder()
        if warming.all_shipped():
            return Check("kernels", "all compiled, they came with the installation", True)
        if folder is None:
            advice = "Each process compiles what it needs: set NUMBA_CACHE_DIR to a folder that can be written"
            return Check("kernels", "no folder can be written to keep them", False, advice, needed=False)
        if warming.all_kept():
            return Check("kernels", f"all compiled, kept in {folder}", True)
        compiled, total = warming.count_kept()
        number = f"{compiled} of {total} compiled" if compiled else "none compiled yet"
        if warming.is_under_way():
            return Check("kernels", f"{number}, being compiled now, kept in {folder}", True)
    except Exception as problem:  # damaged packages, which other lines of the report name
        return Check("kernels", f"cannot be loaded: {problem}", False, "Repair the packages above first.", needed=False)
    advice = "The first queries run uncompiled, or wait; to compile now: kleene warm"
    return Check("kernels", f"{number}, kept in {folder}", False, advice, needed=False)


def _optional(name: str, extra: str, wanted: str) -> Check:
    """Absent is a warning; present in a version that Kleene does not work with is a fault."""
    version = _installed(name)
    if version is None:
        return Check(
            name, "not installed", False, f"To use it with Kleene: pip install 'kleene[{extra}]'", needed=False
        )
    return Check(
        name, version, _satisfies(version, wanted), f"Kleene needs {name}{wanted}: pip install 'kleene[{extra}]'"
    )


def _java(*, needed: bool) -> Check:
    try:
        java = find_java()
    except JavaNotFound as problem:
        return Check("Java", "not found", False, str(problem), needed)
    return Check("Java", f"{java.version} ({java.home}, from {java.source})", True)


def _worker_python(environ: Mapping[str, str]) -> Check:
    """Spark's workers start `PYSPARK_PYTHON`, or `python3` from PATH, which may be another Python without Kleene."""
    configured = environ.get("PYSPARK_PYTHON")
    command = configured or "python3"
    executable = shutil.which(command, path=environ.get("PATH"))
    fault = _interpreter_fault(executable) if executable else f"{command} does not exist"
    value = configured or f"not set, workers start {executable or command}"
    return Check(
        "PYSPARK_PYTHON",
        f"{value}: {fault}" if fault else value,
        not fault,
        f"Let Spark's workers run this Python: export PYSPARK_PYTHON={sys.executable}",
        needed=configured is not None,
    )


def _interpreter_fault(executable: str) -> str:
    """Why a worker under this Python could not run Kleene's code; empty if it can."""
    if os.path.abspath(executable) == os.path.abspath(sys.executable):
        return ""
    answer = _ask_interpreter(executable)
    if answer is None:
        return "it does not start"
    version, has_kleene = answer
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    if version != here:
        return f"it is Python {version}, this is {here}"
    return "" if has_kleene else "it has no kleene"


def _ask_interpreter(executable: str) -> tuple[str, bool] | None:
    """Version (as "3.11") of another Python, and whether it can find Kleene."""
    question = (
        "import sys, importlib.util as u; "
        "sys.stdout.write('%d.%d %d' % (sys.version_info[0], sys.version_info[1], u.find_spec('kleene') is not None))"
    )
    try:
        answer = subprocess.run(
            [executable, "-c", question],
            capture_output=True,
            text=True,
            timeout=_INTERPRETER_SECONDS,
            stdin=subprocess.DEVNULL,
            cwd=os.path.dirname(os.path.abspath(executable)),  # not here, where a folder may be called kleene
        )
    except (OSError, subprocess.SubprocessError):
        return None
    words = answer.stdout.split()
    return (words[0], words[1] == "1") if answer.returncode == 0 and len(words) == 2 else None


def _installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


_REQUIREMENT = re.compile(r"""^([\w.-]+)\s*([<>=!~,.\d\s]*)(?:;\s*extra\s*==\s*['"](\w+)['"])?""")


def _bounds() -> dict[tuple[str, str], str]:
    """Kleene's own bounds by (package, extra): said once, in pyproject.toml, and read back from the metadata."""
    try:
        lines = metadata.requires("kleene") or []
    except metadata.PackageNotFoundError:
        return {}
    matches = (_REQUIREMENT.match(line) for line in lines)
    return {(match[1], match[3] or ""): match[2].strip() for match in matches if match}


def _satisfies(version: str, bounds: str) -> bool:
    """Whether a version lies within bounds such as ">=2.2,<3" (only these two signs are used here)."""
    numbers = _numbers(version)
    for sign, bound in re.findall(r"(>=|<)\s*([\d.]+)", bounds):
        if (numbers >= _numbers(bound)) != (sign == ">="):
            return False
    return True


def _numbers(version: str) -> tuple[int, ...]:
    """The release numbers, without trailing zeros: 17.0.0 is 17, and 3.0.0rc1 counts as 3."""
    released = re.match(r"[\d.]*\d", version)
    numbers = [int(part) for part in released[0].split(".")] if released else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)
