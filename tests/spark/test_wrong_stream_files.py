"""A wrong pipeline file of a stream is one clear error, before Spark starts."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.spark.pipelines import changed as bounded
from tests.spark.pipelines import error_of as error_of_file
from tests.spark.pipelines import shown
from tests.spark.stream_pipelines import STREAM, changed

from kleene.errors import KleeneError
from kleene.plan.settings import Stream
from kleene.spark.pipeline.reading import read_pipeline
from kleene.spark.pipeline.stream_places import check_places, checkpoint_of
from kleene.spark.pipeline.targets import targets_of

KAFKA = 'kind = "kafka"\nbootstrap = ["a:9092", "b:9092"]\ntopic = "readings"'
KAFKA_SINK = '[[sinks]]\nkind = "kafka"\nbootstrap = "a:9092"\ntopic = "found-{query}"\n'
FILES = 'kind = "json"\npath = "in"'


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()


def error_of(text: str) -> str:
    Path("pipeline.toml").write_text(text)
    with pytest.raises(KleeneError) as caught:
        check()
    return str(caught.value)


def check() -> None:
    """What is checked before Spark starts."""
    pipeline = read_pipeline("pipeline.toml")
    check_places(pipeline, targets_of(pipeline))


def test_a_right_file(tmp_path: Path) -> None:
    added = KAFKA_SINK + '[schema]\ntie_breaker = "x"\n'
    more = 'delay = "10 seconds"\nidle = "30 seconds"\nahead = "1 hour"\ndrop_duplicates = true\ntrigger = "1 second"'
    text = changed(("delay = 5\navailable_now = true", more), (FILES, KAFKA), added=added)
    Path("pipeline.toml").write_text(text)
    pipeline = read_pipeline("pipeline.toml")
    targets = targets_of(pipeline)
    check_places(pipeline, targets)
    assert pipeline.settings.stream == Stream("10 seconds", "30 seconds", drop_duplicates=True, ahead="1 hour")
    assert checkpoint_of(pipeline) == f"file://{tmp_path}/state"
    assert [(target.what, target.place) for target in targets] == [
        ("matches of pairs", f"file://{tmp_path}/out"),
        ("matches of pairs", "found-pairs"),
    ]


def test_no_delay() -> None:
    message = "[stream] needs `delay`"
    assert error_of(changed(("delay = 5\n", ""))) == shown("KL703", message, 15, 2, "[stream]", 6)


def test_no_checkpoint() -> None:
    message = "[stream] needs `checkpoint`"
    assert error_of(changed(('checkpoint = "state"\n', ""))) == shown("KL703", message, 15, 2, "[stream]", 6)


def test_duplicates_without_a_tie_breaker() -> None:
    message = "duplicates are known by their tie-breaker, and there is none"
    hint = "`[schema] tie_breaker` names its column"
    text = STREAM + "drop_duplicates = true\n"
    assert error_of(text) == shown("KL703", message, 19, 19, "drop_duplicates = true", 4, hint)


def test_a_length_of_time_that_is_none() -> None:
    text = changed(("delay = 5", 'delay = "10 secnds"'))
    hint = "did you mean `seconds`?"
    assert error_of(text) == shown("KL703", "`secnds` is not a unit", 17, 9, 'delay = "10 secnds"', 11, hint)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (changed(("delay = 5", "delay = true")), "`delay` of [stream] must be"),
        (changed(("delay = 5", "delay = -1")), "a delay is at least 0"),
        (changed(("delay = 5", "dely = 5")), "[stream] has no key `dely`"),
        (STREAM + 'trigger = "1 second"\n', "a stream that stops when everything there is done has no `trigger`"),
        (changed(("available_now = true", 'trigger = "1 ns"')), "a batch takes at least a millisecond"),
        (changed(("available_now = true", 'trigger = "5 ticks"')), "ticks mean nothing"),
        (STREAM + 'ahead = "5 ticks"\n', "ticks mean nothing"),
        (STREAM + "ahead = 5\n", "`ahead` of [stream] must be a text"),
        (STREAM + "prometheus = 70000\n", "`prometheus` is at most 65535"),
        (changed(('checkpoint = "state"', 'checkpoint = "out/state"')), "`out/state` is written, and cannot hold"),
        (changed(('checkpoint = "state"', 'checkpoint = "./in"')), "`./in` is read, and cannot hold"),
        (changed(('path = "in"', 'path = ["in", "in2"]')), "a source of a stream has one path"),
        (changed(('path = "in"', 'path = "pipeline.toml"')), "`pipeline.toml` is one file"),
        (changed(('schema = { type = "string", ts = "long", x = "long" }', "")), "a json source of a stream needs a"),
        (changed((FILES, 'kind = "table"\ntable = "t"')), "a table cannot be read as a stream"),
        (changed(('path = "out"', 'path = "out"\nmode = "overwrite"')), "what a stream finds is added batch by batch"),
        (changed(added="[settings]\nslice_width = 5\n"), "the time of a stream is not cut into slices"),
        (changed(added='[bad_rows]\npolicy = "fail"\n'), "a stream sets bad rows aside and goes on"),
        (
            changed(added='[[sinks]]\nkind = "json"\npath = "late"\noutput = "late"\nquery = "pairs"\n'),
            "late events are",
        ),
        (changed(added='[[sinks]]\nkind = "memory"\ntable = "a.b"\n'), "`a.b` cannot be a table's name"),
        (changed(added='[[sinks]]\nkind = "memory"\npath = "a"\n'), "a memory sink needs a `table`"),
        (changed(('path = "out"', 'path = "in/out"')), "is read from `in/out`, which this sink adds to"),
        # Kafka
        (changed((FILES, 'kind = "kafka"\ntopic = "t"')), "a kafka source needs a `bootstrap`"),
        (changed((FILES, 'kind = "kafka"\nbootstrap = "a:1"')), "a kafka source needs a `topic`"),
        (changed((FILES, KAFKA), ("schema = {", "casts = {")), "a kafka source needs a `schema`"),
        (changed((FILES, KAFKA + '\npath = "in"')), "a kafka source has a `topic`, not a `path`"),
        (changed((FILES, KAFKA + "\nbootstrap = []")), "not"),
        (changed((FILES, KAFKA.replace('["a:9092", "b:9092"]', "[]"))), "a list of brokers has at least one"),
        (changed((FILES, KAFKA + '\noptions = { subscribe = "x" }')), "`subscribe` is set by `topic`"),
        (changed((FILES, FILES + '\nstarting_offsets = "latest"')), "a json source has no `starting_offsets`"),
        (changed((FILES, KAFKA), added=KAFKA_SINK.replace("found-{query}", "readings")), "which this sink adds to"),
        (changed(added=KAFKA_SINK.replace("found-", "found/")), "`found/pairs` cannot be a topic's name"),
    ],
)
def test_other_wrong_files(text: str, message: str) -> None:
    said = error_of(text)
    assert message in said
    assert "pipeline.toml:" in said


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (bounded(('kind = "csv"\npath = "day.csv"', KAFKA)), "a topic of Kafka is read as a stream"),
        (bounded(added=KAFKA_SINK), "a kafka sink is for streams"),
        (bounded(added='[[sinks]]\nkind = "memory"\ntable = "t"\n'), "a memory sink is for streams"),
        (
            bounded(added='[[sinks]]\nkind = "json"\npath = "l"\noutput = "late"\n'),
            "only events of a stream can be late",
        ),
        (bounded(('kind = "csv"\n', 'kind = "orc"\n')), "a orc source has a schema of its own"),
    ],
)
def test_what_only_streams_have(text: str, message: str) -> None:
    assert message in error_of_file(text)


def test_a_login_of_kafka_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", "hunter22")
    login = (
        "org.apache.kafka.common.security.plain.PlainLoginModule required username='me' password='${KAFKA_PASSWORD}';"
    )
    options = f'options = {{ "kafka.sasl.jaas.config" = "{login}" }}'
    Path("pipeline.toml").write_text(changed((FILES, f"{KAFKA}\n{options}")))
    pipeline = read_pipeline("pipeline.toml")
    assert "hunter22" in str(pipeline.model.sources[0].options)
    assert "hunter22" in pipeline.secrets
    from kleene.spark.pipeline.values import scrubbed
    from kleene.spark.pipeline.values import shown as shown_options

    assert shown_options(pipeline.model.sources[0].options) == {"kafka.sasl.jaas.config": "***"}
    assert scrubbed("login of me with hunter22 failed", pipeline.secrets) == "login of me with ******** failed"
    assert "password" not in error_of(changed((FILES, f"{KAFKA}\n{options[:-2]}, x = [] }}")))
