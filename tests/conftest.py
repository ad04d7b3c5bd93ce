"""One Spark session and one Kafka broker for all tests that ask for them; those carry the marker `spark` unwritten."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

# Kernels are what is tested: none runs uncompiled by accident, and no process compiles in the background.
os.environ.setdefault("KLEENE_WARM", "now")

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from tests.spark.broker import Broker


SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
# As users have it: plans that change while they run, and code that is generated for each.
SPARKS_OWN = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
}
# For thousands of tiny jobs: whole-stage code would be compiled for each, and planned again at each stage.
PLAIN = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Before `-m` chooses among the marks."""
    # Files with slow tests are begun first: one that a worker takes last keeps the other waiting.
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)
    for item in items:
        if not {"spark", "broker"}.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker("spark")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What tests counted: `record_property("counted", text)`, wherever the test ran."""
    reports = [report for listed in ("passed", "failed") for report in terminalreporter.stats.get(listed, ())]
    counted = [text for report in reports for name, text in getattr(report, "user_properties", ()) if name == "counted"]
    if counted:
        terminalreporter.section("counted")
    for text in counted:
        terminalreporter.write_line(str(text))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from kleene.errors import MissingPackage
    from kleene.spark.java import JavaNotFound
    from kleene.spark.session import brief_session

    tiny = {
        **PLAIN,
        SHUFFLE_PARTITIONS: "2",
        "spark.default.parallelism": "2",
        "spark.python.sql.dataFrameDebugging.enabled": "false",
    }
    try:
        session = brief_session("local[2]", **tiny, **_connector())
    except (MissingPackage, JavaNotFound) as problem:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(problem))
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def spark_as_it_was(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a test runs may ask for a session with its own settings, and gets that of all tests with them set."""
    if "spark" not in request.fixturenames:
        yield
        return
    spark = request.getfixturevalue("spark")
    before = spark.conf.get(SHUFFLE_PARTITIONS)
    for name, value in (SPARKS_OWN if request.node.get_closest_marker("sparks_own") else PLAIN).items():
        spark.conf.set(name, value)
    yield
    spark.conf.set(SHUFFLE_PARTITIONS, before)


def _connector() -> dict[str, str]:
    """Without its jars only the tests with Kafka fail; they ask again, and so say why."""
    from tests.spark.jars import connector_jars

    from kleene.errors import MissingConnector

    try:
        return {"spark.jars": ",".join(map(str, connector_jars()))}
    except MissingConnector:
        return {}


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A test that stops or kills it starts it again."""
    from tests.spark.broker import Broker

    started = Broker(tmp_path_factory.mktemp("kafka"))
    started.start()
    try:
        yield started
    finally:
        started.kill()
