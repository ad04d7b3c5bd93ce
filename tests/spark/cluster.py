"""A standalone cluster on loopback: a master and two workers of one core, each a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
from tests.users.places import briefly

from kleene.spark.java import ensure_java

_MASTER, _WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"
_PATIENCE = 60


@contextmanager
def standalone(folder: Path, workers: int = 2) -> Iterator[str]:
    """The address of the master."""
    ensure_java()
    started: list[subprocess.Popen[bytes]] = []
    try:
        log = folder / "master.log"
        started.append(_start([_MASTER, "--host", "127.0.0.1", "--port", "0", "--webui-port", "0"], folder, log))
        address = _wait(log, r"Starting Spark master at (spark://127\.0\.0\.1:\d+)")
        for number in range(workers):
            own = folder / f"worker-{number}"
            given = [
                "--host",
                "127.0.0.1",
                "--cores",
                "1",
                "--memory",
                "1g",
                "--webui-port",
                "0",
                "--work-dir",
                str(own),
            ]
            log = folder / f"worker-{number}.log"
            started.append(_start([_WORKER, *given, address], folder, log))
            _wait(log, r"Successfully registered with master")
        yield address
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait(timeout=_PATIENCE)


def _start(arguments: list[str], folder: Path, log: Path) -> subprocess.Popen[bytes]:
    home = Path(pyspark.__file__).parent
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        **briefly(),
    }
    # What executors import must come to them with the job, and they leave traces of it.
    environment.pop("PYTHONPATH", None)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with log.open("wb") as output:
        command = [str(home / "bin" / "spark-class"), *arguments]
        return subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT)


def _wait(log: Path, wanted: str) -> str:
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        found = re.search(wanted, log.read_text(errors="replace"))
        if found is not None:
            return found[found.lastindex or 0]
        time.sleep(0.2)
    raise TimeoutError(f"nothing like {wanted!r} in:\n{log.read_text(errors='replace')}")
