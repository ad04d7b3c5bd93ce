"""docs/spark.md: its examples run, and its picture of a plan is what `explain` prints."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kleene

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = (Path(__file__).parents[2] / "docs" / "spark.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)\n```$", PAGE, re.MULTILINE | re.DOTALL)
MORNING = datetime(2026, 3, 2, 9)


def readings() -> pa.Table:
    rows: list[dict[str, Any]] = []
    for tag in range(30):
        rows.append({"type": "Shelf", "ts": MORNING + timedelta(minutes=tag), "tag_id": tag, "door": None})
        if tag % 3:
            rows.append({"type": "Till", "ts": MORNING + timedelta(minutes=tag + 20), "tag_id": tag, "door": None})
        rows.append({"type": "Exit", "ts": MORNING + timedelta(minutes=tag + 30), "tag_id": tag, "door": 1 + tag % 3})
    return pa.Table.from_pylist([{**row, "store": f"S{row['tag_id'] % 2}"} for row in rows])


def test_examples(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "readings").mkdir()
    pq.write_table(readings(), tmp_path / "readings" / "all.parquet")
    spark.read.parquet(str(tmp_path / "readings")).createOrReplaceTempView("readings")
    query = "PATTERN SEQ(Shelf s, !(Till t), Exit e) WHERE [tag_id] WITHIN 12 hours"
    known: dict[str, Any] = {"spark": spark, "query": query}
    examples = [text for kind, text in BLOCKS if kind == "python"]
    assert len(examples) == 3
    # Paths are those of this machine's folder, whatever Spark's own is.
    first = (
        examples[0]
        .replace('"readings"', repr(str(tmp_path / "readings")))
        .replace('"thefts"', repr(str(tmp_path / "thefts")))
    )
    for example in [first, *examples[1:]]:
        exec(compile(example, "docs/spark.md", "exec"), known)
    assert known["thefts"].count() == 10
    assert sum(1 for _ in (tmp_path / "thefts").glob("part-*.csv")) >= 1
    statement = re.findall(r'"""\n(.*?)"""', examples[1], re.DOTALL)[0]
    assert sorted(tuple(row) for row in kleene.sql(spark, statement).collect()) == [("S0", 5), ("S1", 5)]
    shown = next(text for kind, text in BLOCKS if kind == "text")
    assert str(kleene.explain(query, events=known["readings"])).endswith(shown)


def test_the_settings_of_a_cluster_are_those_of_the_page() -> None:
    from kleene.spark.shipping import executor_options

    shell = next(text for kind, text in BLOCKS if kind == "bash")
    options = executor_options(Path("kleene.tar.gz"))
    assert f"--archives {options.pop('spark.archives')}" in shell
    assert all(f"--conf {name}={value}" in shell for name, value in options.items())
