"""A Spark session on this machine, for the demo, the tests and a first try; or on a cluster, with Kleene sent along."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from kleene.errors import MissingPackage
from kleene.spark.class_archive import archive_options
from kleene.spark.gateway import start_jvm
from kleene.spark.java import ensure_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOPBACK = "127.0.0.1"
_QUIET = Path(__file__).with_name("quiet.log4j2.properties").as_uri()
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
LOGGING = f"-Dlog4j2.configurationFile={_QUIET}"
# Java's second compiler spends more on code that soon is not run any more than it wins. In a session that may last it
# waits until code is ten times as hot as it usually would be; where one job is all, the first compiler does.
_PATIENT = (
    "-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 "
    "-XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=400000"
)
_BRIEF = "-XX:TieredStopAtLevel=1"
_QUIETLY = {
    _JAVA_OPTIONS: LOGGING,
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": "false",
}
_LOCALLY = {
    **_QUIETLY,
    "spark.driver.bindAddress": _LOOPBACK,
    "spark.driver.host": _LOOPBACK,
    "spark.python.daemon.module": "kleene.spark.daemon",
    # Otherwise workers of a stream's operator get another environment than those of functions on batches, and Spark
    # starts a second daemon for them, which loads everything again.
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.ui.enabled": "false",
}


def local_session(cores: str = "local[2]", **conf: str) -> SparkSession:
    """A session that runs in this process's machine only, quiet, and needs no setting up.

    cores   Spark's master: `local[2]`, `local[*]`, or `local[2,3]` to try a failed task again
    conf    further settings, which go before these: local_session(**{"spark.sql.shuffle.partitions": "8"})
    """
    return _on_this_machine(cores, _PATIENT, conf)


def brief_session(cores: str = "local[2]", **conf: str) -> SparkSession:
    """A `local_session` for one run over what is there: it starts faster, and would be slower only after minutes."""
    return _on_this_machine(cores, _BRIEF, conf)


def _on_this_machine(cores: str, compiling: str, conf: Mapping[str, str]) -> SparkSession:
    os.environ.setdefault("SPARK_LOCAL_IP", _LOOPBACK)
    # Otherwise tasks run the first `python3` on PATH, where Kleene is not installed.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    check_installed()
    options = " ".join([LOGGING, compiling, *archive_options()])
    session = _session(cores, {**_LOCALLY, _JAVA_OPTIONS: options, **conf})
    Thread(target=_start_workers, args=(session,), name="kleene-workers", daemon=True).start()
    return session


def _start_workers(session: SparkSession) -> None:
    """Have Spark start Python workers now, while queries are bound and planned, and not when the first job needs them.

    A failure is ignored, as in a session that is stopped at once: the first job starts them then.
    """
    with suppress(Exception):
        session.range(2, numPartitions=2).mapInArrow(lambda batches: batches, "id long").collect()


def cluster_session(master: str, archive: Path | None, **conf: str) -> SparkSession:
    """A session on a cluster. PYSPARK_PYTHON names the executors' Python, where it is not this one.

    master    for example `spark://host:7077`
    archive   brings Kleene to the executors (`kleene archive` makes one); None where it is installed there
    conf      further settings, which go before these
    """
    from kleene.spark.shipping import executor_options

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    check_installed()
    shipped = {} if archive is None else executor_options(archive)
    return _session(master, {**_QUIETLY, **shipped, **conf})


def check_installed() -> None:
    """Check for PySpark, then for a Java: without PySpark none is needed."""
    try:
        import pyspark.sql  # noqa: F401
    except ImportError:
        raise MissingPackage("PySpark is not installed", hint="pip install 'kleene[spark]'") from None
    ensure_java()


def _session(master: str, configuration: Mapping[str, str]) -> SparkSession:
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

    settings = {"spark.master": master, "spark.app.name": "kleene", **configuration}
    start_jvm(SparkConf().setAll(list(settings.items())))
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
