"""The Python that runs tasks on a session of this machine: it must have Kleene, which may be in a venv of its own.

PySpark's workers run PYSPARK_PYTHON, and without it the first `python3` on PATH, whatever Python the driver is. Where
the user named no Python, tasks of ours run this one. Where the user named one that lacks what tasks need, that is said
when a query meets the session, and not by Spark when a job fails. What runs on a cluster, or behind Spark Connect, is
not known here: there tasks say it themselves (`kleene.spark.sending`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from kleene.errors import WorkersWithoutKleene

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from kleene.spark.sending import Sent

# What PySpark runs where no Python is configured.
_UNNAMED = "python3"
_NEEDED = ("kleene", "lark", "numba", "numpy", "pandas", "pyarrow")
_PROBE = """
import importlib.util, json, sys
missing = [name for name in sys.argv[1:] if importlib.util.find_spec(name) is None]
print(json.dumps([list(sys.version_info[:2]), missing]))
"""
_PATIENCE = 60


def in_tasks(frame: DataFrame, sent: Sent, columns: StructType | str) -> DataFrame:
    """The batches of a data frame through a function of ours."""
    with fit_interpreter(frame.sparkSession):
        return frame.mapInArrow(sent, columns)


@contextmanager
def fit_interpreter(session: SparkSession) -> Iterator[None]:
    """Functions that are handed to Spark within this run in a Python that has Kleene; an error where there is none."""
    # Spark Connect has no context.
    context = getattr(session, "sparkContext", None)
    if context is None or not _is_local(context.master):
        yield
        return
    named = context.pythonExec
    path = context.environment.get("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    problem = unfitness(named, path)
    if problem is not None and named == _UNNAMED:
        # Spark reads it when it is handed a function; the user's own functions run where they would.
        context.pythonExec = sys.executable
    # Asked last: what was sent along is a dozen calls of the JVM.
    elif problem is not None and not _sent_along(context):
        check_interpreter(named, path)
    try:
        yield
    finally:
        context.pythonExec = named


def _is_local(master: str) -> bool:
    return master == "local" or master.startswith("local[")


def _sent_along(context: Any) -> bool:
    """Whether tasks may import what is not installed."""
    return bool(context.listFiles or context.listArchives)


def check_interpreter(python: str, path: str = "") -> None:
    problem = unfitness(python, path)
    if problem is not None:
        raise WorkersWithoutKleene.of(python, problem)


@cache
def unfitness(python: str, path: str) -> str | None:
    """Why tasks of ours cannot run in a Python, with this PYTHONPATH; None when they can."""
    if python == sys.executable:
        return None
    command = [python, "-c", _PROBE, *_NEEDED]
    environment = {**os.environ, "PYTHONPATH": path}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_PATIENCE, check=True)
        version, missing = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as problem:
        return f"it does not run ({type(problem).__name__})"
    if tuple(version) != sys.version_info[:2]:
        return "it is Python {}.{}, and this is {}.{}".format(*version, *sys.version_info[:2])
    return f"it lacks {', '.join(missing)}" if missing else None
