"""A wrong pipeline file is one clear error, before Spark starts."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.spark.pipelines import RIGHT, changed, read, written

from kleene.errors import BadRowLimit, KleeneError
from kleene.plan.settings import Budget, Exchange, Policy
from kleene.spark.pipeline.bad_rows import check_limit
from kleene.spark.pipeline.columns import check_columns
from kleene.spark.pipeline.places import places
from kleene.spark.pipeline.reading import Pipeline, read_pipeline
from kleene.spark.pipeline.targets import check_sources, check_targets, recover, staging, swap_in, targets_of

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def error_of(text: str, **files: str) -> str:
    """The whole message for a pipeline file in this folder."""
    written(Path(), text, **files)
    with pytest.raises(KleeneError) as caught:
        check(read_pipeline("pipeline.toml"))
    return str(caught.value)


def check(pipeline: Pipeline) -> None:
    """What is checked of a file before Spark starts."""
    targets = targets_of(pipeline)
    check_sources(pipeline)
    check_targets(pipeline, targets)


def shown(code: str, message: str, line: int, column: int, source: str, width: int, hint: str | None = None) -> str:
    gutter = " " * len(str(line))
    lines = [
        f"error[{code}]: {message}",
        f" {gutter}--> pipeline.toml:{line}:{column}",
        f" {gutter} |",
        f" {line} | {source}",
        f" {gutter} | {' ' * (column - 1)}{'^' * width}",
    ]
    return "\n".join([*lines, *([f"  = hint: {hint}"] if hint else [])])


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
    hint = "known here: `csv`, `json`, `orc`, `parquet`, `table`"
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


# What a right file says ----------------------------------------------------------------------------------------------


def test_settings_and_schema(tmp_path: Path) -> None:
    text = changed(
        added="""
[schema]
time = "at"
tie_breaker = "seq"
types = { A = { x = "int" } }
classes = { Big = "A WHERE x > 5" }

[settings]
buckets = 8
slice_width = 500
without = ["push_window"]

[budget]
matches_per_event = 10
policy = "drop_oldest"
"""
    )
    made = read(tmp_path, text)
    assert (made.schema.time, made.schema.tie_breaker, set(made.schema.classes)) == ("at", "seq", {"Big"})
    assert made.settings.exchange == Exchange(buckets=8, slice_width=500)
    assert made.settings.budget == Budget(matches_per_event=10, policy=Policy.DROP_OLDEST)
    assert made.settings.without == {"push_window"}


def test_queries_that_declare_the_same_go_together() -> None:
    made = read_pipeline(ROOT / "examples" / "retail" / "pipeline.toml")
    assert [query.name for query in made.queries] == ["shoplifting", "misplaced", "overdose"]
    assert set(made.schema.types) == {"SHELF-READING", "COUNTER-READING", "EXIT-READING", "MEDICINE-TAKEN"}


def test_values_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAY", "day")
    monkeypatch.setenv("A", "not this")
    text = changed(('path = "day.csv"', 'path = "${DAY}.csv"'), ("(A a,", "(A a, Z? ${A}"))
    assert read(tmp_path, changed(('path = "day.csv"', 'path = "${DAY}.csv"'))).model.sources[0].paths == ("day.csv",)
    with pytest.raises(KleeneError, match="unexpected"):  # a query's text is left as it is
        read(tmp_path, text)
    literal = changed(('path = "day.csv"', 'path = "$${DAY}.csv"'))
    assert read(tmp_path, literal).model.sources[0].paths == ("${DAY}.csv",)


def test_one_sink_for_every_query(tmp_path: Path) -> None:
    more = '[[queries]]\nname = "late-ones"\ntext = "PATTERN SEQ(A a, B b) WITHIN 5 TIMEOUTS INTO late"\n'
    tables = '[[sinks]]\nkind = "table"\ntable = "db.{query}"\noutput = "timeouts"\n'
    made = read(tmp_path, changed(('path = "out"', 'path = "out/{query}"'), added=more + tables))
    assert [(target.what, target.place) for target in targets_of(made)] == [
        ("matches of pairs", f"file://{tmp_path}/out/pairs"),
        ("matches of late-ones", f"file://{tmp_path}/out/late-ones"),
        ("timeouts of late-ones", "db.late_ones"),
    ]


def test_places_on_a_cluster(tmp_path: Path) -> None:
    added = '[spark]\nmaster = "yarn"\n[bad_rows]\npath = "s3a://bucket/bad"\n'
    made = read(tmp_path, changed(('path = "out"', 'path = "/data/out"'), added=added))
    assert [(target.place, target.local) for target in targets_of(made)] == [
        ("/data/out", None),
        ("s3a://bucket/bad", None),
    ]


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
    message = "query `pairs` reads `A`, and there is no source of that name"
    hint = "no source has the column `type`, so each is a stream of its own name"
    assert column_error({"readings": ["kind", "ts", "x"]}) == shown("KL704", message, 7, 3, "[[queries]]", 7, hint)


def test_streams_by_name() -> None:
    text = changed(('name = "readings"', 'name = "A"'), added='[[sources]]\nname = "Bee"\nkind = "orc"\npath = "b"\n')
    message = "query `pairs` reads `B`, and there is no source of that name"
    assert message in column_error({"A": ["ts", "x"], "Bee": ["ts", "x"]}, text)
    check_columns(read(Path(), text.replace('"Bee"', '"B"')), {"A": ["ts", "x"], "B": ["ts", "x"]})
    # A source that no query reads needs no columns.
    more = '[[sources]]\nname = "C"\nkind = "orc"\npath = "c"\n'
    check_columns(read(Path(), text.replace('"Bee"', '"B"') + more), {"A": ["ts", "x"], "B": ["ts", "x"], "C": []})


# Limits, targets, the swap -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "bad", "said"),
    [
        ("0", 1, "1 of 1,000 rows are bad, and at most 0 may be; nothing was matched"),
        ("10", 11, "11 of 1,000 rows are bad, and at most 10 may be; nothing was matched"),
        ("0.01", 11, "11 of 1,000 rows are bad, and at most 1.00% of the rows may be; nothing was matched"),
        ("10", 10, None),
        ("0.01", 10, None),
    ],
)
def test_limits_of_bad_rows(tmp_path: Path, limit: str, bad: int, said: str | None) -> None:
    pipeline = read(tmp_path, changed(added=f'[bad_rows]\npolicy = "fail"\nlimit = {limit}\n'))
    if said is None:
        check_limit(pipeline, 1000, bad)
        return
    with pytest.raises(BadRowLimit) as caught:
        check_limit(pipeline, 1000, bad)
    assert caught.value.message == said


def test_kept_bad_rows_have_no_limit(tmp_path: Path) -> None:
    check_limit(read(tmp_path), 1000, 1000)


def test_mode_error_refuses_what_is_there() -> None:
    Path("out").mkdir()
    (Path("out") / "_SUCCESS").touch()
    hint = 'mode = "overwrite" replaces it'
    said = error_of(changed(added='mode = "error"\n'))
    assert said == shown("KL708", "`out` is there already", 13, 8, 'path = "out"', 5, hint)


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_what_no_run_made_is_not_replaced(kind: str) -> None:
    if kind == "folder":
        Path("out").mkdir()
        (Path("out") / "thesis.txt").write_text("years of work")
    else:
        Path("out").write_text("years of work")
    assert "`out` is no result of an earlier run, and would be replaced" in error_of(RIGHT)


def result(folder: Path, content: str) -> None:
    folder.mkdir()
    (folder / "part-0").write_text(content)
    (folder / "_SUCCESS").touch()


def test_the_swap_replaces_the_whole_folder(tmp_path: Path) -> None:
    out = tmp_path / "out"
    result(out, "old")
    result(staging(out), "new")
    swap_in(out)
    assert (out / "part-0").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_run_killed_between_the_two_moves_of_the_swap_has_lost_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    result(out, "old")
    result(staging(out), "new")
    moves = iter([Path.rename, _killed])
    monkeypatch.setattr(Path, "rename", lambda self, to, rename=Path.rename: next(moves)(self, to))
    with pytest.raises(KeyboardInterrupt):
        swap_in(out)
    monkeypatch.undo()
    assert not out.exists()
    recover(out)
    assert (out / "part-0").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def _killed(*_: Any) -> None:
    raise KeyboardInterrupt


# The scanner ---------------------------------------------------------------------------------------------------------


TOML = '''\
# a comment with [brackets] and "quotes"
top.dotted = 1 # [not.this]
"quoted key" = 'it''s'
[[a]]
x = """one
[[b]] = "no" """
y = [ "p", # ] comment
  { z = '#', "w" = [1, [2, 3]] }, 1979-05-27 07:32:00 ]
[a.inner.deep]
k = \'\'\'no "escape" \\\'\'\'
[[a]]
x = "two \\" ]"
[ b . "c d" ]
e = { f = { g = -1.5e3 } }
'''.replace("it''s", "its")


def test_every_key_is_found_at_its_place() -> None:
    found = places(TOML)

    def each(value: Any, path: tuple[str | int, ...]) -> None:
        if path:
            place = found[path]
            assert TOML[place.key.start : place.key.end].strip()
        if isinstance(value, dict):
            for name, part in value.items():
                each(part, (*path, name))
        elif isinstance(value, list):
            for number, part in enumerate(value):
                each(part, (*path, number))
        elif not isinstance(value, str) or "\n" not in value:
            text = TOML[found[path].value.start : found[path].value.end]
            assert tomllib.loads(f"v = {text}")["v"] == value

    each(tomllib.loads(TOML), ())
    line = {path: TOML.count("\n", 0, place.key.start) + 1 for path, place in found.items()}
    assert line["a", 1, "x"] == 12
    assert line["a", 0, "inner", "deep", "k"] == 10
    assert line["a", 0, "y", 1, "w", 1, 0] == 8
    assert line["b", "c d", "e", "f", "g"] == 14


# Start-up and secrets ------------------------------------------------------------------------------------------------


def test_the_command_starts_without_spark_and_pydantic() -> None:
    code = (
        "import sys; import kleene.cli.app; print('pydantic' in sys.modules);"
        "from kleene.cli.running import run; run(['run', '--help']);"
        "print(sorted({'pyspark', 'pyarrow', 'kleene.spark.pipeline'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout.splitlines()[0], done.stdout.splitlines()[-1]) == ("False", "[]"), done.stderr


def test_a_wrong_file_is_found_without_spark() -> None:
    written(Path(), changed(('path = "day.csv"', 'path = "dey.csv"')))
    code = (
        "import sys; from kleene.spark.pipeline.reading import read_pipeline; read_pipeline('pipeline.toml');"
        "import kleene.spark.pipeline.targets; print('pyspark' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr


def test_an_error_beside_a_secret_does_not_show_it() -> None:
    options = 'options = { header = [], password = "hunter2" }'
    said = error_of(changed(('path = "day.csv"', f'path = "day.csv"\n{options}')))
    assert "options = { header = [], password = " in said
    assert "hunter2" not in said
    assert "hunter2" not in error_of(changed(('path = "day.csv"', 'path = "day.csv"\n"my.token" = "hunter2')))
    wrong = changed(('path = "day.csv"', 'path = "day.csv"\noptions = { api_key = ["hunter2"] }'))
    assert "hunter2" not in error_of(wrong)
