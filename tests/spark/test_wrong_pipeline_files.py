"""A wrong pipeline file is one clear error, before Spark starts."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.spark.pipelines import RIGHT, changed, error_of, read, shown, written

from kleene.errors import KleeneError
from kleene.spark.pipeline.columns import check_columns
from kleene.spark.pipeline.reading import read_pipeline


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


# One test for each kind of wrong file --------------------------------------------------------------------------------


def test_no_toml() -> None:
    text = changed(('kind = "csv"', "kind = csv"))
    assert error_of(text) == shown("KL701", "invalid value", 3, 8, "kind = csv", 1, "a text stands in quotes")


def test_toml_that_ends_too_early() -> None:
    assert error_of('[[sources]]\nname = "x').startswith("error[KL701]: ")
    assert "pipeline.toml:2:" in error_of('[[sources]]\nname = "x')


def test_an_unknown_key() -> None:
    text = changed(('path = "day.csv"', 'pth = "day.csv"'))
    message = "[[sources]] has no key `pth`"
    assert error_of(text) == shown("KL702", message, 4, 1, 'pth = "day.csv"', 3, "did you mean `path`?")


def test_an_unknown_table() -> None:
    text = changed(added="[budgets]\nmatches_per_event = 1\n")
    message = "the pipeline has no key `budgets`"
    assert error_of(text) == shown("KL702", message, 14, 2, "[budgets]", 7, "did you mean `budget`?")


def test_an_unknown_kind_of_source() -> None:
    text = changed(('kind = "csv"', 'kind = "cvs"'))
    message = "`cvs` is no kind of [[sources]]"
    hint = "known here: `csv`, `json`, `kafka`, `orc`, `parquet`, `table`"
    assert error_of(text) == shown("KL703", message, 3, 8, 'kind = "cvs"', 5, hint)


def test_a_wrong_type() -> None:
    text = changed(('path = "day.csv"', "path = 5"))
    message = "`path` of [[sources]] must be a text, not a number"
    assert error_of(text) == shown("KL703", message, 4, 8, "path = 5", 1)
    text = changed(added='[settings]\nbuckets = "many"\n')
    message = "`buckets` of [settings] must be a whole number, not a text `many`"
    assert error_of(text) == shown("KL703", message, 15, 11, 'buckets = "many"', 6)


def test_a_missing_key() -> None:
    text = changed(('name = "readings"\n', ""))
    assert error_of(text) == shown("KL703", "[[sources]] needs `name`", 1, 3, "[[sources]]", 7)
    text = changed(('path = "day.csv"\n', ""))
    assert error_of(text) == shown("KL703", "a csv source needs a `path`", 1, 3, "[[sources]]", 7)
    assert (
        error_of(RIGHT.split("[[sinks]]")[0]) == "error[KL703]: `pipeline.toml` has no sinks\n  = hint: add `[[sinks]]`"
    )


def test_a_sink_for_an_unknown_query() -> None:
    text = changed(added='query = "pears"\n')
    message = "there is no query `pears`"
    assert error_of(text) == shown("KL704", message, 14, 9, 'query = "pears"', 7, "did you mean `pairs`?")


def test_a_value_for_a_parameter_that_the_query_does_not_have() -> None:
    text = changed(("WITHIN 10", "WITHIN :gap"), ('name = "pairs"', 'name = "pairs"\nparams = { gaps = 10 }'))
    message = "query `pairs` has no parameter `:gaps`"
    assert error_of(text) == shown("KL211", message, 9, 12, "params = { gaps = 10 }", 4, "did you mean `gap`?")


def test_a_missing_query_file() -> None:
    text = changed(('text = "PATTERN SEQ(A a, B b) WHERE [x] WITHIN 10"', 'file = "pears.kleene"'))
    message = "there is no query file `pears.kleene`"
    expected = shown("KL501", message, 9, 8, 'file = "pears.kleene"', 14, "did you mean `pairs.kleene`?")
    assert error_of(text, pairs_kleene="PATTERN A a") == expected


def test_a_wrong_query_shows_its_place_in_the_file() -> None:
    text = changed(("WITHIN 10", "WITHIN 10 hurs"))
    line = 'text = "PATTERN SEQ(A a, B b) WHERE [x] WITHIN 10 hurs"'
    assert error_of(text) == shown("KL102", "`hurs` is not a unit", 9, 51, line, 4, "did you mean `hours`?")
    text = changed(('"PATTERN SEQ(A a, B b) WHERE [x] WITHIN 10"', '"""\nPATTERN SEQ(A a, B b)\nWITHIN 5 hurs"""'))
    assert error_of(text) == shown(
        "KL102", "`hurs` is not a unit", 11, 10, 'WITHIN 5 hurs"""', 4, "did you mean `hours`?"
    )


def test_a_wrong_query_with_escapes_shows_its_own_text() -> None:
    text = changed(("WHERE [x] WITHIN 10", 'WHERE a.n = \\"x\\" WITHIN 10 hurs'))
    assert "--> pipeline.toml: query `pairs`:1:" in error_of(text)


def test_a_wrong_query_file_shows_that_file() -> None:
    text = changed(('text = "PATTERN SEQ(A a, B b) WHERE [x] WITHIN 10"', 'file = "pairs.kleene"'))
    assert "--> pairs.kleene:2:8\n" in error_of(text, pairs_kleene="PATTERN A a\nWITHIN hurs")


def test_a_missing_source() -> None:
    text = changed(('path = "day.csv"', 'path = "dey.csv"'))
    message = "source `readings`: there is no `dey.csv`"
    assert error_of(text) == shown("KL706", message, 4, 8, 'path = "dey.csv"', 9, "did you mean `day.csv`?")
    text = changed(('path = "day.csv"', 'path = ["day.csv", "more/*.csv"]'))
    assert error_of(text).startswith("error[KL706]: source `readings`: there is no `more/*.csv`\n")


def test_a_missing_environment_variable() -> None:
    text = changed(('path = "day.csv"', 'path = "${KLEENE_NOWHERE}/day.csv"'))
    line = 'path = "${KLEENE_NOWHERE}/day.csv"'
    message = "there is no environment variable `KLEENE_NOWHERE`"
    assert error_of(text) == shown("KL705", message, 4, 8, line, 27)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (changed(added='output = "timeouts"\n'), "no query has TIMEOUTS INTO …"),
        (changed(added='query = "pairs"\noutput = "timeouts"\n'), "query `pairs` has no TIMEOUTS INTO …"),
        (changed(added='query = "pairs"\noutput = "bad_rows"\n'), "bad rows are of the sources, not of a query"),
        (changed(added='output = "compressed"\n'), '`compressed` is for `[budget] policy = "emit_compressed"`'),
        (changed(added='[budget]\npolicy = "emit_compressed"\n'), "no sink takes them"),
        (changed(added='table = "t"\n'), "a parquet sink has a `path`, not a `table`"),
        (changed(added='[[sinks]]\nkind = "console"\npath = "x"\n'), "the console has no path"),
        (changed(added='[[sinks]]\nkind = "json"\npath = "out/more"\n'), "is written by another sink already"),
        (changed(added='[[sinks]]\nkind = "json"\npath = "day.csv"\n'), "which this sink replaces"),
        (changed(added='[[sinks]]\nkind = "json"\npath = "./x/../day.csv"\n'), "which this sink replaces"),
        (changed(added='[[sinks]]\nkind = "json"\npath = "x"\nmode = "append"\n'), "a json sink cannot append"),
        (changed(added='mode = "append"\nform = "flat"\n'), "only matches can be appended, not flat rows"),
        (changed(added='mode = "append"\noutput = "bad_rows"\n'), "only matches can be appended, not bad rows"),
        (changed(('"parquet"\n', '"csv"\n'), added='form = "nested"\n'), "CSV holds flat rows only"),
        (changed(('"parquet"\n', '"table"\n'), ('path = "out"', 'table = "a; drop"')), "cannot be a table's name"),
        (changed(('x = "long"', 'x = "lung"')), "`lung` is no type of a column"),
        (changed(('x = "long" }', 'x = "long" }\noptions = { mode = "DROPMALFORMED" }')), "`mode` is set by Kleene"),
        (changed(('name = "pairs"\n', "")), "a query with `text` needs a `name`"),
        (changed(('name = "pairs"', 'name = "pairs"\nfile = "x"')), "a query has either `text` or `file`"),
        (changed(('name = "pairs"', 'name = "a/b"')), "`a/b` cannot be a name"),
        (
            changed(added='[[sources]]\nname = "readings"\nkind = "orc"\npath = "x"\n'),
            "two sources are called `readings`",
        ),
        (changed(added='[[queries]]\nname = "pairs"\ntext = "PATTERN A a"\n'), "two queries are called `pairs`"),
        (changed(added="[bad_rows]\nlimit = 5\n"), 'a limit is for `policy = "fail"`'),
        (changed(added='[bad_rows]\npolicy = "fail"\nlimit = 1.5\n'), "a share is below 1"),
        (changed(added='[settings]\nwithout = ["push_windw"]\n'), "there is no rule `push_windw`"),
        (changed(added="[settings]\nbuckets = 0\n"), "`buckets` is at least 1"),
        (changed(added='[schema]\ntick = "1 secnd"\n'), "`secnd` is not a unit"),
        (changed(added='[schema.types.A]\nx = "lung"\n'), "unknown type of values `lung`"),
        (changed(added='[schema]\nclasses = { Big = "A WHERE x >" }\n'), "the query ends too early"),
        ("sources = []\nqueries = []\nsinks = []\n", "`sources` is empty"),
        ("sources = 5\nqueries = []\nsinks = []\n", "`sources` of the pipeline must be a list, not a number"),
    ],
)
def test_other_wrong_files(text: str, message: str) -> None:
    said = error_of(text)
    assert message in said
    assert "pipeline.toml:" in said


def test_queries_that_contradict_each_other() -> None:
    declared = 'text = "DECLARE TYPE A (x int) PATTERN A a"'
    other = '[[queries]]\nname = "other"\ntext = "DECLARE TYPE A (y int) PATTERN A a"\n'
    text = changed(('text = "PATTERN SEQ(A a, B b) WHERE [x] WITHIN 10"', declared), added=other)
    assert error_of(text).startswith("error[KL209]: `A` is declared twice\n   --> pipeline.toml:16:")


def test_no_file() -> None:
    written(Path())
    with pytest.raises(KleeneError) as caught:
        read_pipeline("pipelin.toml")
    assert str(caught.value) == "error[KL501]: there is no file `pipelin.toml`\n  = hint: did you mean `pipeline.toml`?"


def test_an_error_beside_a_secret_does_not_show_it() -> None:
    options = 'options = { header = [], password = "hunter2" }'
    said = error_of(changed(('path = "day.csv"', f'path = "day.csv"\n{options}')))
    assert "options = { header = [], password = " in said
    assert "hunter2" not in said
    assert "hunter2" not in error_of(changed(('path = "day.csv"', 'path = "day.csv"\n"my.token" = "hunter2')))
    wrong = changed(('path = "day.csv"', 'path = "day.csv"\noptions = { api_key = ["hunter2"] }'))
    assert "hunter2" not in error_of(wrong)


# Columns -------------------------------------------------------------------------------------------------------------


def column_error(columns: dict[str, list[str]], text: str = RIGHT) -> str:
    written(Path(), text)
    with pytest.raises(KleeneError) as caught:
        check_columns(read_pipeline("pipeline.toml"), columns)
    return str(caught.value)


def test_a_missing_time_column() -> None:
    message = "source `readings` has no column `ts` for the time"
    rename = "`[schema] time` names another column, `columns` renames one"
    expected = shown("KL707", message, 1, 3, "[[sources]]", 7, f"did you mean `TS`? {rename}")
    assert column_error({"readings": ["type", "TS", "x"]}) == expected
    text = changed(added='[schema]\ntime = "at"\n')
    hint = f"known here: `ts`, `type`, `x`; {rename}"
    assert column_error({"readings": ["type", "ts", "x"]}, text) == shown(
        "KL707", message.replace("`ts`", "`at`"), 15, 8, 'time = "at"', 4, hint
    )


def test_a_query_that_names_an_unknown_source() -> None:
    message = "query `pairs` reads `A`: there is no source of that name, and no query makes it"
    hint = "no source has the column `type`, so each is a stream of its own name"
    assert column_error({"readings": ["kind", "ts", "x"]}) == shown("KL704", message, 7, 3, "[[queries]]", 7, hint)


def test_streams_by_name() -> None:
    text = changed(('name = "readings"', 'name = "A"'), added='[[sources]]\nname = "Bee"\nkind = "orc"\npath = "b"\n')
    message = "query `pairs` reads `B`: there is no source of that name, and no query makes it"
    assert message in column_error({"A": ["ts", "x"], "Bee": ["ts", "x"]}, text)
    check_columns(read(Path(), text.replace('"Bee"', '"B"')), {"A": ["ts", "x"], "B": ["ts", "x"]})
    # A source that no query reads needs no columns.
    more = '[[sources]]\nname = "C"\nkind = "orc"\npath = "c"\n'
    check_columns(read(Path(), text.replace('"Bee"', '"B"') + more), {"A": ["ts", "x"], "B": ["ts", "x"], "C": []})
