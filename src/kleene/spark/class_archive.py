"""An archive of the classes that Spark loads, so that Java need not read, check and link each of them at every start.

`kleene warm --spark` makes it, once for a Java and a PySpark; local sessions use it when it is there.
Java itself tells whether an archive is of this Java and these jars, and goes on without one that is not.
"""

from __future__ import annotations

import hashlib
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from kleene.durable import commit

# Otherwise Java would say on stdout that an archive is not used.
_SILENT = ("-Xlog:disable", "-Xlog:all=error:stderr")
_MINUTES = 10


def archive_file() -> Path | None:
    """The file of the archive for this Java and this PySpark, there or not; None where one of them is unknown."""
    home = os.environ.get("JAVA_HOME")
    try:
        release = (Path(home) / "release").read_text() if home else ""
        spark = version("pyspark")
    except (OSError, PackageNotFoundError):
        return None
    if not release:
        return None
    # The jars' place is part of what Java compares.
    known = f"{release}\n{spark}\n{sys.prefix}\n{os.environ.get('SPARK_HOME', '')}"
    return _folder() / f"spark-{spark}-{hashlib.sha256(known.encode()).hexdigest()[:12]}.jsa"


def _folder() -> Path:
    """A folder of the venv: its users share the archive, which goes away with the jars. Else in the user's cache."""
    if sys.prefix != sys.base_prefix:
        return Path(sys.prefix) / "share" / "kleene"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kleene"


def archive_options() -> Sequence[str]:
    """The options with which Java uses the archive; none where there is no archive."""
    file = archive_file()
    if file is None or not file.is_file() or any(character.isspace() for character in str(file)):
        return ()
    return (f"-XX:SharedArchiveFile={file}", *_SILENT)


def make_archive() -> Path | None:
    """Run Spark once, in a process of its own, and keep the classes that it loaded; None where Java cannot."""
    from kleene.engine.warming import VARIABLE
    from kleene.spark.java import ensure_java

    ensure_java()
    file = archive_file()
    if file is None:
        return None
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    with tempfile.TemporaryDirectory(dir=file.parent, prefix=".spark-") as folder:
        draft = Path(folder) / file.name
        # It starts nothing that compiles kernels.
        subprocess.run(
            [sys.executable, "-m", "kleene.spark.class_archive", str(draft)],
            env={**os.environ, VARIABLE: "0"},
            check=False,
            timeout=60 * _MINUTES,
        )
        if not draft.is_file():
            return None
        commit(draft, file)
    return file


def _run_spark(draft: Path) -> None:
    """Run what makes Spark load its classes: files, a batch, a stream. Java writes the archive as it ends."""
    from pyspark import SparkContext

    from kleene.pattern.query import Query
    from kleene.plan.settings import Settings, Stream
    from kleene.spark.batch import spark_outputs
    from kleene.spark.session import LOGGING, local_session
    from kleene.spark.streaming.live import MicroBatch, live

    # Kernels may be compiled beside this: what it matches is too little to wait for them.
    logging.getLogger("kleene").setLevel(logging.ERROR)
    options = " ".join([LOGGING, f"-XX:ArchiveClassesAtExit={draft}", "-XX:TieredStopAtLevel=1", *_SILENT])
    session = local_session(**{"spark.driver.extraJavaOptions": options})
    rows = [("A", 1, 5), ("B", 2, 5), ("Z", 99, 0)]
    events = session.createDataFrame(rows, "type string, ts long, x long")
    queries = [Query("PATTERN SEQ(A a, B b) WHERE [x] WITHIN 10", "pairs")]
    for kind in ("parquet", "json", "csv"):
        events.coalesce(1).write.format(kind).save(str(draft.parent / kind))
    read = session.read.parquet(str(draft.parent / "parquet"))
    spark_outputs(read, queries, schema=None, several=False).matches.toArrow()
    stream = session.readStream.schema(events.schema).json(str(draft.parent / "json"))

    def write(micro_batch: MicroBatch, batch: int) -> None:
        micro_batch.matches("pairs").write.mode("overwrite").json(str(draft.parent / f"batch={batch}"))

    running = live(stream, queries, settings=Settings(stream=Stream(delay=1)))
    running.start(write, checkpoint=str(draft.parent / "state"), available_now=True).awaitTermination()
    gateway = SparkContext._gateway
    session.stop()
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()


if __name__ == "__main__":
    _run_spark(Path(sys.argv[1]))
