"""What a right pipeline file says, and what is done with it before Spark starts and after it wrote."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.spark.pipelines import RIGHT, changed, error_of, read, shown, written

from kleene.errors import BadRowLimit, KleeneError
from kleene.plan.settings import Budget, Exchange, Policy
from kleene.spark.pipeline.bad_rows import check_limit
from kleene.spark.pipeline.reading import read_pipeline
from kleene.spark.pipeline.targets import recover, staging, swap_in, targets_of
from kleene.spark.pipeline.toml_positions import places

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


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
    # The old result is renamed, the new one replaces nothing.
    monkeypatch.setattr(os, "replace", _killed)
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


# Start-up -----------------------------------------------------------------------------------------------------------


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
