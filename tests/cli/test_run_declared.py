"""`kleene run` of queries that declare their sources and sinks (NEXT §3.5)."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Kleene

ROOT = Path(__file__).parents[2]


def test_the_page_of_pipelines_shows_what_declared_sinks_get(spark: object, kleene: Kleene, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "pipeline.md").read_text(encoding="utf-8")
    section = page.split("### Sources and sinks that queries declare")[1].split("\n### ")[0]
    query, file, session = (part.split("\n", 1)[1] for part in section.split("```")[1::2])
    given, _, rest = session.removeprefix("$ cat payments.csv\n").partition("$ kleene run pipeline.toml\n")
    shown, _, alerts = rest.partition("$ cat alerts/*.csv\n")
    for name, text in (("large.kleene", query), ("pipeline.toml", file), ("payments.csv", given)):
        (tmp_path / name).write_text(text)
    ended = kleene("run", "pipeline.toml")
    assert ended.code == 0, ended.err
    assert [line for line in shown.splitlines() if line != "…" and line not in ended.err.splitlines()] == []
    (written,) = (tmp_path / "alerts").glob("*.csv")
    assert written.read_text() == alerts


def test_a_source_that_does_not_fit_is_found_when_it_is_opened(spark: object, kleene: Kleene, tmp_path: Path) -> None:
    (tmp_path / "day.csv").write_text("ts,account,amount\n1,7,50\n")
    (tmp_path / "pipeline.toml").write_text(
        '[[sources]]\nname = "t"\nkind = "csv"\npath = "day.csv"\n\n'
        '[[queries]]\nname = "q"\ntext = "DECLARE SOURCE t (acc int) SELECT * FROM t a"\n\n'
        '[[sinks]]\nkind = "console"\n'
    )
    ended = kleene("run", "pipeline.toml", "--dry-run")
    assert ended.code == 1
    assert "error[KL713]: source `t` has no column `acc`\n  --> pipeline.toml:8:24\n" in ended.err
    text = (tmp_path / "pipeline.toml").read_text().replace("acc int", "account string")
    (tmp_path / "pipeline.toml").write_text(text)
    ended = kleene("run", "pipeline.toml", "--dry-run")
    assert "error[KL713]: `account` of source `t` holds int, not string\n  --> pipeline.toml:8:24\n" in ended.err
