"""Finds the jars of Spark's Kafka connector, which PySpark does not bring: Maven fetches them once.

The connector belongs to one version of Spark and calls its inside: 4.0.0's reads a topic on Spark 4.3.0, but every
stream of it ended in a NoSuchMethodError. So the version asked for is always Spark's own, unless the caller names one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from kleene.errors import MissingConnector, MissingPackage
from kleene.spark.maven import JarsNotFound, NoMaven, copied, jars_folder

_GROUP = "org.apache.spark"


@dataclass(frozen=True, slots=True)
class Release:
    """Other versions of the connector than Spark's own, for users who have tried that they work together."""

    connector: str
    token_provider: str


def kafka_conf(release: Release | None = None, environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The setting that gives a session the Kafka connector."""
    return {"spark.jars": ",".join(str(jar) for jar in kafka_jars(release, environ))}


def kafka_jars(release: Release | None = None, environ: Mapping[str, str] | None = None) -> tuple[Path, ...]:
    """The jars of the Kafka connector that Spark does not hold itself; raises `MissingConnector` if there are none."""
    environ = os.environ if environ is None else environ
    spark = _installed_spark(environ)
    release = release or Release(spark.version, spark.version)
    artifacts = spark.artifacts(release)
    try:
        return copied(artifacts, jars_folder(environ) / _folder(release, spark), spark.holds, environ)
    except JarsNotFound as problem:
        first = "install Maven" if isinstance(problem, NoMaven) else "let Maven reach a repository that has it"
        raise MissingConnector(
            f"Spark's Kafka connector is not in the cache, and {problem}",
            hint=f"{first}, or set `spark.jars` or `spark.jars.packages` yourself; it is {artifacts[0]}",
        ) from None


@dataclass(frozen=True, slots=True)
class _Spark:
    version: str
    scala: str
    holds: frozenset[str]

    def artifacts(self, release: Release) -> tuple[str, str]:
        return (
            f"{_GROUP}:spark-sql-kafka-0-10_{self.scala}:{release.connector}",
            f"{_GROUP}:spark-token-provider-kafka-0-10_{self.scala}:{release.token_provider}",
        )


def _folder(release: Release, spark: _Spark) -> str:
    if release == Release(spark.version, spark.version):
        return f"kafka-{spark.version}"
    return f"kafka-{release.connector}-{release.token_provider}-on-{spark.version}"


def _installed_spark(environ: Mapping[str, str]) -> _Spark:
    """The Spark that the names of its own jars show; SPARK_HOME goes first, as it does for PySpark."""
    names = [jar.name for jar in (_home(environ) / "jars").glob("*.jar")]
    for name in names:
        if core := re.fullmatch(r"spark-core_([\d.]+)-(.+)\.jar", name):
            return _Spark(version=core[2], scala=core[1], holds=frozenset().union(*map(_possible_artifacts, names)))
    raise MissingConnector(
        "Spark's own jars are not here, so its version is not known",
        hint="pip install 'kleene[spark]', or give the session the connector by `spark.jars.packages`",
    )


def _home(environ: Mapping[str, str]) -> Path:
    if home := environ.get("SPARK_HOME"):
        return Path(home)
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise MissingPackage("PySpark is not installed", hint="pip install 'kleene[spark]'")
    return Path(spec.origin).parent


def _possible_artifacts(jar: str) -> frozenset[str]:
    """A version may hold a hyphen and so may a name (zstd-jni-1.5.7-7): every cut before a digit."""
    return frozenset(jar[: cut.start()] for cut in re.finditer(r"-(?=\d)", jar))
