"""Processes as users have them: nothing of the tests is set, the folder is another one, and the user may be, too."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kleene.spark.class_archive import archive_options
from kleene.spark.java import ensure_java

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
_OURS = ("PYSPARK_", "SPARK_", "KLEENE_", "NUMBA_", "PYTEST_", "VIRTUAL_ENV", "TZ", "XDG_", "PYTHONDONTWRITEBYTECODE")
NOBODY = 65534


def briefly() -> dict[str, str]:
    """Java without what takes as much of a short run as the run: its second compiler, and loading class by class.

    Neither changes an answer. The archive of classes is that of `make setup`, where there is one.
    """
    ensure_java()
    return {"JDK_JAVA_OPTIONS": " ".join(["-XX:TieredStopAtLevel=1", *archive_options()])}


def environment(**more: str) -> dict[str, str]:
    """This process's, less what a user would not have set: settings of Spark, an activated venv, a time zone."""
    ensure_java()
    own = str(Path(sys.executable).parent)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
    path = [folder for folder in kept.get("PATH", "").split(os.pathsep) if folder != own]
    return {**kept, "PATH": os.pathsep.join(path), **briefly(), **more}


def run(
    command: Sequence[str | Path], *, cwd: Path, environ: Mapping[str, str], nobody: bool = False, timeout: float = 900
) -> subprocess.CompletedProcess[str]:
    """A command and what it printed; as the user `nobody` where that is asked for."""
    other = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"] if nobody else []
    return subprocess.run(
        [*other, *map(str, command)],
        cwd=cwd,
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def link_packages(folder: Path) -> None:
    """Put all packages of this environment but Kleene into a folder, where it lacks them; installing takes minutes."""
    import pyarrow

    for package in Path(pyarrow.__file__).parents[1].iterdir():
        if "kleene" not in package.name and package.suffix != ".pth" and not (folder / package.name).exists():
            (folder / package.name).symlink_to(package)


def results(command: Sequence[str | Path], **options: Any) -> dict[str, Any]:
    """What a script printed last, which is JSON."""
    done = run(command, **options)
    assert done.returncode == 0, f"{command} ended with {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-6000:]}"
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def can_be_nobody(python: Path) -> str | None:
    """Why commands cannot be run as another user; None when they can."""
    if os.name != "posix" or os.geteuid() != 0:
        return "only root can become another user"
    if shutil.which("setpriv") is None:
        return "there is no setpriv"
    done = run([python, "-c", "import kleene"], cwd=Path("/"), environ=environment(), nobody=True)
    return None if done.returncode == 0 else f"another user cannot run {python}"
