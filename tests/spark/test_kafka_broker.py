"""The broker that tests start, and Spark's connector to it: in short, `test_kafka` shows both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from tests.spark.broker import Broker
from tests.spark.jars import connector_jars

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.soak

EVENTS = [(f"tag-{number % 7}".encode(), f'{{"seq": {number}}}'.encode()) for number in range(50)]
VALUES = Counter(value for _, value in EVENTS)


@pytest.fixture
def topic(broker: Broker) -> str:
    return _new_topic(broker)


def _new_topic(broker: Broker) -> str:
    name = f"events-{uuid4().hex}"
    broker.create_topic(name, partitions=3)
    return name


def test_messages_come_back(broker: Broker, topic: str) -> None:
    assert broker.consume(topic) == []
    broker.produce(topic, EVENTS)
    assert Counter(broker.consume(topic)) == VALUES


def test_a_message_may_lack_its_key_or_its_value(broker: Broker, topic: str) -> None:
    broker.produce(topic, [(None, b"no key"), (b"no value", None)])
    assert Counter(broker.consume(topic)) == Counter([b"no key", None])


@pytest.mark.parametrize("end", [pytest.param(Broker.stop, id="stop"), pytest.param(Broker.kill, id="kill")])
def test_a_restart_keeps_address_and_data(broker: Broker, topic: str, end: Callable[[Broker], None]) -> None:
    before = broker.bootstrap
    broker.produce(topic, EVENTS[:30])
    end(broker)
    broker.start()
    assert broker.bootstrap == before
    broker.produce(topic, EVENTS[30:])
    assert Counter(broker.consume(topic)) == VALUES


def test_spark_reads_a_topic_and_writes_another(
    broker: Broker, topic: str, spark: SparkSession, record_property: Callable[[str, object], None]
) -> None:
    record_property("counted", "Kafka's connector: " + ", ".join(jar.stem for jar in connector_jars()))
    broker.produce(topic, EVENTS)
    other = _new_topic(broker)
    read = _read(spark, broker, topic)
    read.select("key", "value").write.format("kafka").options(**_address(broker)).option("topic", other).save()
    assert Counter(broker.consume(other)) == VALUES
    assert {(bytes(row.key), bytes(row.value)) for row in _read(spark, broker, other).collect()} == set(EVENTS)


def test_spark_streams_from_a_topic(broker: Broker, topic: str, spark: SparkSession, tmp_path: object) -> None:
    broker.produce(topic, EVENTS)
    events = spark.readStream.format("kafka").options(**_address(broker))
    name = f"seen_{uuid4().hex}"
    stream = (
        events.option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", "20")
        .load()
        .writeStream.format("memory")
        .queryName(name)
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    assert stream.awaitTermination(120), "the stream did not end"
    assert Counter(bytes(row.value) for row in spark.table(name).collect()) == VALUES


def _address(broker: Broker) -> dict[str, str]:
    return {"kafka.bootstrap.servers": broker.bootstrap}


def _read(spark: SparkSession, broker: Broker, topic: str) -> DataFrame:
    return spark.read.format("kafka").options(**_address(broker)).option("subscribe", topic).load()
