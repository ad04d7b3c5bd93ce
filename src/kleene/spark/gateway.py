"""Starts Spark's JVM with its error output passed on line by line, but for lines of no interest.

PySpark runs a processor of a stream once on the driver, in a Python process that prints what it does; Spark sends that
to its own error output, which is ours. Java announces the incubator module that Spark asks for at every start. Both
would stand between the lines of a run. Everything else is passed on as it is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING

from kleene.pattern.secrets import is_secret
from kleene.spark.run_lock import handed_on
from kleene.spark.settings_file import settings_in_file

if TYPE_CHECKING:
    from pyspark import SparkConf

_CHATTER = re.compile(
    rb"(Starting )?Streaming TransformWithStateInPandas Python worker"
    rb"(\.| finish init stage of Python runner\. | received parameters for UDF\. | Starting execution of UDF: "
    rb"| Completed execution of UDF: )"
    rb"|WARNING: Using incubator modules: jdk\.incubator\.vector$"
)
_STDERR = 2


def start_jvm(conf: SparkConf) -> None:
    """Start the JVM and its Spark context, unless this process has one; a session that is made next takes it."""
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway

    started_elsewhere = "PYSPARK_GATEWAY_PORT" in os.environ or "SPARK_REMOTE" in os.environ
    if started_elsewhere or getattr(SparkContext, "_gateway", None) is not None:
        return
    settings = dict(conf.getAll())
    reading, writing = os.pipe()
    Thread(target=_pass_on, args=(reading,), name="kleene-jvm-errors", daemon=True).start()
    try:
        with settings_in_file(settings) as in_file:
            arguments = None if in_file else _without_secrets(settings)
            how = {"stderr": writing, "pass_fds": handed_on()}
            gateway = launch_gateway(arguments, how)  # type: ignore[no-untyped-call]
    finally:
        os.close(writing)
    # Here they go through a socket that only this process knows the key of.
    SparkContext(conf=conf, gateway=gateway)


def _without_secrets(settings: Mapping[str, str]) -> SparkConf:
    from pyspark import SparkConf

    return SparkConf().setAll([(name, value) for name, value in settings.items() if not is_secret(name)])


def _pass_on(reading: int) -> None:
    with os.fdopen(reading, "rb") as lines, suppress(OSError):
        for line in news(lines):
            os.write(_STDERR, line)


def news(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The lines without the chatter, and without the empty line that ends each piece of it."""
    after_chatter = False
    for line in lines:
        chatter = _CHATTER.match(line.rstrip()) is not None
        if not chatter and not (after_chatter and not line.strip()):
            yield line
        after_chatter = chatter
