"""A Spark session on this machine, for the demo, the tests and a first try; or on a cluster, with Kleene sent along."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kleene.errors import MissingPackage
from kleene.spark.java import ensure_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOPBACK = "127.0.0.1"
_QUIET = Path(__file__).with_name("quiet.log4j2.properties").as_uri()
_QUIETLY = {
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_QUIET}",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": "false",
}
_LOCALLY = {
    **_QUIETLY,
    "spark.driver.bindAddress": _LOOPBACK,
    "spark.driver.host": _LOOPBACK,
    "spark.python.daemon.module": "kleene.spark.daemon",
    "spark.sql.shuffle.partitions": "4",
    "spark.ui.enabled": "false",
}


def local_session(cores: str = "local[2]", **conf: str) -> SparkSession:
    """A session that runs in this process's machine only, quiet, and needs no setting up.

    cores   Spark's master: `local[2]`, `local[*]`, or `local[2,3]` to try a failed task again
    conf    further settings, which go before these: local_session(**{"spark.sql.shuffle.partitions": "8"})
    """
    os.environ.setdefault("SPARK_LOCAL_IP", _LOOPBACK)
    # Otherwise tasks run the first `python3` on PATH, where Kleene is not installed.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    return _session(cores, {**_LOCALLY, **conf})


def cluster_session(master: str, archive: Path | None, **conf: str) -> SparkSession:
    """A session on a cluster. PYSPARK_PYTHON names the executors' Python, where it is not this one.

    master    for example `spark://host:7077`
    archive   brings Kleene to the executors (`kleene archive` makes one); None where it is installed there
    conf      further settings, which go before these
    """
    from kleene.spark.shipping import executor_options

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    shipped = {} if archive is None else executor_options(archive)
    return _session(master, {**_QUIETLY, **shipped, **conf})


def _session(master: str, configuration: Mapping[str, str]) -> SparkSession:
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise MissingPackage("PySpark is not installed", hint="pip install 'kleene[spark]'") from None
    ensure_java()
    builder = SparkSession.builder.master(master).appName("kleene")
    for name, value in configuration.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
