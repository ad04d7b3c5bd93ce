"""`kleene run`: what it prints, where, and what it ends with."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from tests.cli.conftest import Kleene
from tests.spark.pipelines import changed, written

from kleene.cli.pipeline import _summed_up
from kleene.frames.supermarket import supermarket
from kleene.spark.batch_run import RunTotals
from kleene.spark.pipeline.running import SourceCount, Summary

ROOT = Path(__file__).parents[2]
RETAIL = ROOT / "examples" / "retail"
LOCAL = '[spark]\nmaster = "local[2]"\n'


def timeless(text: str) -> str:
    return re.sub(r"[\d,]+ events/s", "0 events/s", re.sub(r"\d+\.\d s", "0.0 s", text))


def test_a_run_says_what_it_does(spark: object, kleene: Kleene, tmp_path: Path) -> None:
    written(tmp_path, changed(added='[[sinks]]\nkind = "console"\n' + LOCAL), day="type,ts,x\nA,1,5\nB,2,5\nB,soon,5\n")
    ended = kleene("run", "pipeline.toml")
    assert ended.code == 0, ended.err
    assert "pairs: 1 match" in ended.out
    assert timeless(ended.err) == (
        "after 0.0 s: starting Spark\nafter 0.0 s: opening the sources\nafter 0.0 s: binding the queries\n"
        "after 0.0 s: counting the rows\nafter 0.0 s: finding matches\nafter 0.0 s: writing matches of pairs\n"
        "after 0.0 s: fetching matches of pairs\n"
        "\nread     readings  3 rows\nbad      1 row\n           1 × cannot be read as CSV\n"
        "kept     2 events that a query can use\nmatched  pairs: 1 match\nwrote    matches of pairs → parquet out\n"
        "took     0.0 s, of which finding matches 0.0 s\n"
    )


@pytest.mark.parametrize(("rows", "rate"), [(1_000, ""), (999_999, ""), (2_000_000, ": 500,000 events/s")])
def test_a_rate_is_said_only_of_many_rows(rows: int, rate: str) -> None:
    """Of a thousand rows it would be the rate at which Spark starts."""
    counts = RunTotals(rows, {"pairs": 1}, {}, 0)
    summary = Summary((SourceCount("readings", rows),), counts, 0, (), (), finding=4.0, seconds=21.5)
    assert [*_summed_up(summary)][-1] == f"took     21.5 s, of which finding matches 4.0 s{rate}"


def test_a_dry_run_explains_and_writes_nothing(
    spark: object, kleene: Kleene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KLEENE_TEST_SECRET", "hunter22")
    options = 'x = "long" }\noptions = { sep = ",", my_password = "${KLEENE_TEST_SECRET}" }'
    conf = '[spark.conf]\n"spark.hadoop.fs.s3a.secret.key" = "hunter23"\n[bad_rows]\npath = "bad"\n'
    written(tmp_path, changed(('x = "long" }', options), added=LOCAL + conf))
    before = sorted(tmp_path.rglob("*"))
    ended = kleene("run", "pipeline.toml", "--dry-run")
    assert ended.code == 0, ended.err
    assert sorted(tmp_path.rglob("*")) == before
    assert "hunter2" not in ended.out + ended.err
    assert ended.out.startswith(
        "source readings: csv day.csv\n  option sep = ,\n  option my_password = ***\n"
        "  columns type string, ts bigint, x bigint\n\nquery pairs\n"
    )
    assert "scan a     A\n" in ended.out
    assert "\n  on Spark: " in ended.out
    assert "sink matches of pairs → parquet out, overwrite\n" in ended.out
    assert "spark.hadoop.fs.s3a.secret.key = ***\n" in ended.out
    assert ended.out.endswith("bad rows: kept in bad\nNothing was written: this was a dry run.\n")


def test_exit_codes(spark: object, kleene: Kleene, tmp_path: Path) -> None:
    written(tmp_path, changed(added=LOCAL + '[bad_rows]\npolicy = "fail"\n'), day="type,ts,x\nA,1,5\nA,soon,5\n")
    limit = kleene("run", "pipeline.toml")
    assert limit.code == 3
    assert "error[KL603]: 1 of 2 rows are bad, and at most 0 may be; nothing was matched" in limit.err
    assert not (tmp_path / "out").exists()
    assert kleene("run").code == 2
    assert kleene("run", "none.toml").code == 1
    written(tmp_path, changed(("WITHIN 10", "WITHIN 10 hurs")))
    wrong = kleene("run", "pipeline.toml")
    assert (wrong.code, wrong.out) == (1, "")
    assert wrong.err.startswith("error[KL102]: `hurs` is not a unit\n  --> pipeline.toml:9:51\n")


def test_the_example_finds_what_was_hidden_and_prints_what_the_readme_shows(
    spark: object, kleene: Kleene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    shown = _block((ROOT / "README.md").read_text(encoding="utf-8"), "kleene run examples/retail/pipeline.toml")
    folder = tmp_path / "examples" / "retail"
    folder.mkdir(parents=True)
    for file in RETAIL.iterdir():
        if file.is_file():
            (folder / file.name).write_bytes(file.read_bytes())
    ended = kleene("run", "examples/retail/pipeline.toml")
    assert ended.code == 0, ended.err
    truth = supermarket(1_000, 1).planted.column("case").to_pylist()
    for name in ("shoplifting", "misplaced", "overdose"):
        assert pq.read_table(folder / "demo-output" / name).num_rows == truth.count(name)
    assert "bad      2 rows\n           2 × cannot be read as CSV\n" in ended.err
    assert "read     readings  1,002 rows\n" in ended.err
    assert "shoplifting: 3 matches on 2026-03-02" in ended.out
    printed = {line.rstrip() for line in f"{ended.out}{ended.err}".splitlines()}
    assert [line for line in shown if line != "…" and line not in printed] == []


def test_the_page_shows_what_its_pipeline_prints(spark: object, kleene: Kleene, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "pipeline.md").read_text(encoding="utf-8")
    for name in ("day.csv", "shoplifting.kleene"):
        (tmp_path / name).write_bytes((RETAIL / name).read_bytes())
    (tmp_path / "pipeline.toml").write_text(page.split("```toml\n")[1].split("```")[0])
    ended = kleene("run", "pipeline.toml")
    assert (
        timeless(ended.err).splitlines() == timeless("\n".join(_block(page, "kleene run pipeline.toml"))).splitlines()
    )


def _block(page: str, command: str) -> list[str]:
    return page.split(f"$ {command}\n")[1].split("\n```")[0].splitlines()


def test_the_day_of_the_example_is_the_generated_one(tmp_path: Path) -> None:
    lines = (RETAIL / "day.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "day.csv").write_text("".join(lines[:-2]))
    made = supermarket(1_000, 1).events
    kept = pa_csv.read_csv(tmp_path / "day.csv")
    assert kept.column("id").to_pylist() == [value or "" for value in made.column("id").to_pylist()]
    assert kept.num_rows == made.num_rows
