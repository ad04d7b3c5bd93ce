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
# Files that take longest are begun first: one that a worker takes last keeps the other waiting.
LONG = (
    *("test_kill.py", "test_cases_on_streams.py", "test_pairs_on_streams.py", "test_streams.py", "test_cluster.py"),
    *("test_spark_pages.py", "test_plain_session.py", "test_unfit_workers.py", "test_cases_on_spark.py"),
    *("test_stream_pipeline.py", "test_stream_telling.py", "test_kafka.py", "test_random_pairs.py"),
    *(
        "test_first_answer.py",
        "test_warm.py",
        "test_large_queries.py",
        "test_engine_agrees.py",
        "test_engine_agrees_on_outputs.py",
    ),
    *("test_trees_agree.py", "test_tree_mutations.py", "test_mutations.py", "test_trees_on_streams.py"),
    *(
        "test_neighbours.py",
        "test_disjunctions_agree.py",
        "test_cache.py",
        "test_several_queries.py",
        "test_fuzz.py",
        "test_wheel.py",
    ),
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Before `-m` chooses among the marks."""
    items.sort(key=lambda item: LONG.index(item.path.name) if item.path.name in LONG else len(LONG))
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
    from kleene.spark.session import local_session

    # Thousands of tiny jobs: whole-stage code would be compiled for each, and planned again at each stage.
    tiny = {
        SHUFFLE_PARTITIONS: "2",
        "spark.default.parallelism": "2",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.python.sql.dataFrameDebugging.enabled": "false",
    }
    try:
        session = local_session("local[2]", **tiny, **_connector())
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
