"""The jars that tests with Kafka need; run as a program it fetches them, so that no two workers do."""

from __future__ import annotations

import os
from pathlib import Path

from kleene.errors import MissingConnector
from kleene.spark.connectors import Release, kafka_jars
from kleene.spark.maven import copied, jars_folder

BROKER = "4.3.1"
# Not every copy of Maven Central has the connector of the newest Spark. Of the older ones this pair was seen to
# stream on Spark 4.3.0; 4.0.0 and 4.1.0-preview1 read and write in batches only. Tests name the one they ran with.
STAND_IN = Release(connector="4.2.0", token_provider="4.1.0-preview1")


def connector_jars() -> tuple[Path, ...]:
    """Spark's own connector wherever it can be had; what is in the cache goes first, so that tests need no network."""
    no_maven = {**os.environ, "PATH": ""}
    for release, environ in ((None, no_maven), (STAND_IN, no_maven), (None, None)):
        try:
            return kafka_jars(release, environ)
        except MissingConnector:
            continue
    return kafka_jars(STAND_IN)


def broker_jars() -> tuple[Path, ...]:
    # Kafka names no backend for its log, and without one a broker that fails says nothing.
    artifacts = (f"org.apache.kafka:kafka_2.13:{BROKER}", "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4")
    return copied(artifacts, jars_folder(os.environ) / f"kafka-broker-{BROKER}")


if __name__ == "__main__":
    print("Kafka's connector:", ", ".join(jar.name for jar in connector_jars()))
    print(f"Kafka's broker: {BROKER}, {len(broker_jars())} jars")
