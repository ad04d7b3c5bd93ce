"""DECLARE SOURCE and DECLARE SINK in pipelines (NEXT §3.5): which sources and sinks of the file they are."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.spark.pipelines import changed, error_of, read, shown

from kleene.spark.pipeline.targets import targets_of

FILE = """\
[[sources]]
name = "t"
kind = "json"
path = "day.json"
schema = { ts = "timestamp_ntz", account = "long", amount = "decimal(10,2)", note = "string", raw = "binary" }
columns = { acc = "account" }
casts = { note = "boolean" }

[[queries]]
name = "large"
file = "large.kleene"

[[sinks]]
name = "alerts"
kind = "parquet"
path = "out/{query}"
"""
LARGE = """\
DECLARE SOURCE t (acc int, amount float, ts timestamp)
DECLARE SINK alerts (acc int)
SELECT L.acc AS acc FROM t L WHERE L.amount > 250"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_results_go_to_the_declared_sink(here: Path) -> None:
    more = """
[[queries]]
name = "every"
text = "SELECT * FROM t a"

[[queries]]
name = "small"
text = "DECLARE SINK alerts (acc int) SELECT a.acc AS acc FROM t a WHERE a.amount < 100"

[[sinks]]
kind = "json"
path = "all/{query}"

[[sinks]]
name = "other"
query = "every"
kind = "json"
path = "every"
"""
    targets = targets_of(read(here, FILE + more, large_kleene=LARGE))
    assert [(target.query, target.place.rpartition(f"{here.name}/")[2]) for target in targets] == [
        ("large", "out/large"),
        ("small", "out/small"),
        ("large", "all/large"),
        ("every", "all/every"),
        ("small", "all/small"),
        ("every", "every"),
    ]


def test_a_sink_may_be_named_by_its_query_and_declared_by_another(here: Path) -> None:
    more = '[[queries]]\nname = "every"\ntext = "SELECT * FROM t a"\n'
    text = FILE.replace('name = "alerts"\n', 'name = "alerts"\nquery = "every"\n')
    targets = targets_of(read(here, text + more, large_kleene=LARGE))
    assert [target.query for target in targets] == ["large", "every"]


@pytest.mark.parametrize(
    "attributes", ["", "acc", "acc float, amount int, note bool, raw", "type string, ts timestamp"]
)
def test_declarations_that_fit(here: Path, attributes: str) -> None:
    text = f"DECLARE SOURCE t ({attributes})\nDECLARE SINK alerts ()\nPATTERN t a"
    assert len(read(here, FILE, large_kleene=text).queries) == 1


@pytest.mark.parametrize(
    ("attributes", "message", "hint"),
    [
        ("amont float", "source `t` has no column `amont`", "did you mean `amount`?"),
        ("account int", "source `t` has no column `account`", "did you mean `amount`?"),
        ("acc string", "`acc` of source `t` holds int, not string", None),
        ("note string", "`note` of source `t` holds bool, not string", None),
        ("ts timestamptz", "`ts` of source `t` holds timestamp, not timestamp with time zone", None),
        ("raw string", "`raw` of source `t` holds nested or binary, not string", None),
    ],
)
def test_declarations_that_do_not_fit_what_the_file_tells(attributes: str, message: str, hint: str | None) -> None:
    line = f"DECLARE SOURCE t ({attributes})"
    hint = hint or "declare what it holds, or let `casts` of the source change it"
    expected = shown("KL713", message, 1, 16, line, 1, hint).replace("pipeline.toml", "large.kleene")
    assert error_of(FILE, large_kleene=f"{line}\nDECLARE SINK alerts ()\nPATTERN t a") == expected


def test_of_files_with_a_header_only_what_is_named_is_known(here: Path) -> None:
    query = "DECLARE SOURCE t (x int, other string) PATTERN t a"
    csv = changed(('name = "readings"', 'name = "t"'), ("PATTERN SEQ(A a, B b) WHERE [x] WITHIN 10", query))
    assert len(read(here, csv).queries) == 1
    assert "`x` of source `t` holds int, not string" in error_of(csv.replace("x int", "x string"))
    assert "has no column `other`" in error_of(csv.replace("schema = ", "options = { header = false }\nschema = "))


def test_a_source_that_is_not_there() -> None:
    text = LARGE.replace("SOURCE t (", "SOURCE payments (")
    expected = shown(
        "KL704",
        "the pipeline has no source `payments`",
        1,
        16,
        text.splitlines()[0],
        8,
        '`[[sources]]` with `name = "payments"` is missing; there is `t`',
    ).replace("pipeline.toml", "large.kleene")
    assert error_of(FILE, large_kleene=text) == expected


def test_a_sink_that_is_not_there() -> None:
    assert "= hint: did you mean `alerts`?" in error_of(FILE, large_kleene=LARGE.replace("alerts", "alert"))
    nameless = FILE.replace('name = "alerts"\n', "")
    expected = shown(
        "KL704",
        "the pipeline has no sink `alerts`",
        2,
        14,
        LARGE.splitlines()[1],
        6,
        '`[[sinks]]` with `name = "alerts"` is missing',
    ).replace("pipeline.toml", "large.kleene")
    assert error_of(nameless, large_kleene=LARGE) == expected


def test_a_text_in_the_file_shows_its_place_there() -> None:
    text = FILE.replace('file = "large.kleene"', 'text = "DECLARE SOURCE u (x int) PATTERN u a"')
    line = text.splitlines()[10]
    hint = '`[[sources]]` with `name = "u"` is missing; there is `t`'
    assert error_of(text) == shown("KL704", "the pipeline has no source `u`", 11, 24, line, 1, hint)


def test_a_named_sink_that_nothing_goes_to() -> None:
    message = error_of(FILE, large_kleene="PATTERN t a")
    hint = "write `DECLARE SINK alerts (…)` before a query, or name one here: `query = …`"
    wanted = "nothing goes to sink `alerts`: no query declares it"
    assert message == shown("KL703", wanted, 14, 8, 'name = "alerts"', 8, hint)


def test_names_of_sinks_are_their_own() -> None:
    twice = FILE + '[[sinks]]\nname = "alerts"\nkind = "console"\n'
    assert "two sinks are called `alerts`" in error_of(twice, large_kleene=LARGE)
    late = FILE.replace('kind = "parquet"', 'kind = "parquet"\noutput = "bad_rows"')
    assert "only a sink of matches has a name" in error_of(late, large_kleene=LARGE)


def test_two_queries_say_the_same_of_a_sink() -> None:
    more = '[[queries]]\nname = "b"\ntext = "DECLARE SINK alerts (acc string) SELECT a.acc AS acc FROM t a"\n'
    assert "`alerts` is declared twice" in error_of(FILE + more, large_kleene=LARGE)
