"""A Kafka broker on loopback: one node without ZooKeeper, a process of its own, from jars that Maven fetches."""

from __future__ import annotations

import atexit
import base64
import os
import random
import shutil
import socket
import subprocess
import time
import uuid
from collections.abc import Iterable
from pathlib import Path

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic
from tests.spark.jars import broker_jars

from kleene.spark.java import find_java

_FLAGS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_HOST = "127.0.0.1"
_PATIENCE = 60
# Below the ports that a system gives to clients: one that reconnects during a restart could take the broker's own.
_PORTS = range(20_000, 32_000)

_SETTINGS = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller}
advertised.listeners=PLAINTEXT://{host}:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}
auto.create.topics.enable=false
broker.heartbeat.interval.ms=500
broker.session.timeout.ms=2000
group.initial.rebalance.delay.ms=0
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.min.isr=1
transaction.state.log.replication.factor=1
"""

_LOGGING = """\
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d %p %c: %m%n
rootLogger.level = info
rootLogger.appenderRef.out.ref = out
"""


class Broker:
    """Keeps its ports and its data, in `folder`, over stops and kills."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._settings = folder / "server.properties"
        self._port, self._controller = _free_ports()
        self._process: subprocess.Popen[bytes] | None = None
        self._starts = 0

    @property
    def bootstrap(self) -> str:
        return f"{_HOST}:{self._port}"

    def start(self) -> None:
        """Returns when the broker serves."""
        assert self._process is None, "the broker runs already"
        if not self._settings.exists():
            self._format()
        self._starts += 1
        log = self._folder / f"broker-{self._starts}.log"
        atexit.register(self.kill)
        with log.open("wb") as output:
            command = [*_dying_with_us(), *self._java("kafka.Kafka"), str(self._settings)]
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, cwd=self._folder
            )
        try:
            _wait(self._process, log, "Kafka Server started")
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """As an operator would: what is open is closed."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(timeout=_PATIENCE)
            finally:
                self.kill()

    def kill(self) -> None:
        """As a crash would: nothing is closed."""
        atexit.unregister(self.kill)
        if self._process is not None:
            self._process.kill()
            self._process.wait(timeout=_PATIENCE)
            self._process = None

    def create_topic(self, name: str, partitions: int = 1) -> None:
        admin = KafkaAdminClient(bootstrap_servers=self.bootstrap)
        try:
            admin.create_topics([NewTopic(name, partitions, 1)], wait_for_metadata=True)
        finally:
            admin.close()

    def produce(self, topic: str, messages: Iterable[tuple[bytes | None, bytes | None]]) -> None:
        """Keys and values; all are acknowledged on return."""
        producer = KafkaProducer(bootstrap_servers=self.bootstrap, acks="all")
        try:
            sent = [producer.send(topic, key=key, value=value) for key, value in messages]
            for message in sent:
                message.get(timeout=_PATIENCE)
        finally:
            producer.close()

    def consume(self, topic: str) -> list[bytes | None]:
        """The values of all committed messages up to now, by partition and offset."""
        consumer = KafkaConsumer(
            bootstrap_servers=self.bootstrap, isolation_level="read_committed", enable_auto_commit=False
        )
        try:
            partitions = [TopicPartition(topic, number) for number in sorted(consumer.partitions_for_topic(topic))]
            return [value for partition in partitions for value in _values(consumer, partition)]
        finally:
            consumer.close()

    def _format(self) -> None:
        logging = self._folder / "log4j2.properties"
        logging.write_text(_LOGGING)
        identity = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        # A name of its own until the storage is ready, since `start` takes the settings' file as the sign of that.
        draft = self._folder / "server.properties.draft"
        draft.write_text(
            _SETTINGS.format(host=_HOST, port=self._port, controller=self._controller, data=self._folder / "data")
        )
        command = [*self._java("kafka.tools.StorageTool"), "format", f"--cluster-id={identity}", f"--config={draft}"]
        answer = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, stdin=subprocess.DEVNULL)
        assert answer.returncode == 0, answer.stdout + answer.stderr
        draft.rename(self._settings)

    def _java(self, main: str) -> list[str]:
        classes = os.pathsep.join(str(jar) for jar in broker_jars())
        logging = f"-Dlog4j2.configurationFile={(self._folder / 'log4j2.properties').as_uri()}"
        return [str(find_java().home / "bin" / "java"), *_FLAGS, logging, "-cp", classes, main]


def _values(consumer: KafkaConsumer, partition: TopicPartition) -> list[bytes | None]:
    consumer.assign([partition])
    consumer.seek_to_beginning(partition)
    end = consumer.end_offsets([partition])[partition]
    values: list[bytes | None] = []
    patience = time.monotonic() + _PATIENCE
    while consumer.position(partition) < end:
        if time.monotonic() > patience:
            raise TimeoutError(f"{partition} was read to {consumer.position(partition)} of {end}")
        for records in consumer.poll(timeout_ms=200).values():
            values += [record.value for record in records if record.offset < end]
    return values


def _free_ports() -> tuple[int, int]:
    found: list[int] = []
    for port in random.SystemRandom().sample(_PORTS, 100):
        with socket.socket() as probe:
            try:
                probe.bind((_HOST, port))
            except OSError:
                continue
        found.append(port)
        if len(found) == 2:
            return found[0], found[1]
    raise RuntimeError("no free ports")


def _dying_with_us() -> list[str]:
    """A test run that is killed can clean up nothing; Linux can end a child with its parent."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL"] if setpriv else []


def _wait(process: subprocess.Popen[bytes], log: Path, wanted: str) -> None:
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end and process.poll() is None:
        if wanted in log.read_text(errors="replace"):
            return
        time.sleep(0.1)
    raise TimeoutError(f"the broker did not start:\n{log.read_text(errors='replace')[-5000:]}")
