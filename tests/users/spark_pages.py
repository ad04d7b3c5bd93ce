"""Runs what the pages about Spark show, on a session with nothing set; prints what came out as JSON.

Run it in a folder with `readings/` for docs/spark.md and `stream/` for docs/streaming.md. An argument is the number of
partitions of streams, where it is not the session's own.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import kleene

DOCS = Path(__file__).parents[2] / "docs"
HERE = Path.cwd()
QUERY = "PATTERN SEQ(Shelf s, !(Till t), Exit e) WHERE [tag_id] WITHIN 12 hours"


def blocks(page: str) -> list[tuple[str, str]]:
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(r"^```(\w+)\n(.*?)\n```$", text, re.MULTILINE | re.DOTALL)


def of_batches(spark: SparkSession) -> dict[str, Any]:
    """docs/spark.md."""
    spark.read.parquet(str(HERE / "readings")).createOrReplaceTempView("readings")
    known: dict[str, Any] = {"spark": spark, "query": QUERY}
    examples = [text for kind, text in blocks("spark.md") if kind == "python"]
    # Paths are those of this folder, whatever Spark's own is.
    first = re.sub(r'"(readings|thefts)"', lambda found: repr(str(HERE / found[1])), examples[0])
    for example in [first, *examples[1:]]:
        exec(compile(example, "docs/spark.md", "exec"), known)
    statement = re.findall(r'"""\n(.*?)"""', examples[1], re.DOTALL)[0]
    shown = next(text for kind, text in blocks("spark.md") if kind == "text")
    return {
        "examples": len(examples),
        "thefts": known["thefts"].count(),
        "files": len(list((HERE / "thefts").glob("part-*.csv"))),
        "in SQL": sorted(list(row) for row in kleene.sql(spark, statement).collect()),
        "explained": str(kleene.explain(QUERY, events=known["readings"])).endswith(shown),
    }


def of_streams(spark: SparkSession) -> dict[str, Any]:
    """docs/streaming.md."""
    known: dict[str, Any] = {"spark": spark}
    folder = HERE / "stream"
    examples = [text for kind, text in blocks("streaming.md") if kind == "python"]
    if len(sys.argv) > 1:
        spark.conf.set("spark.sql.shuffle.partitions", sys.argv[1])
    for example in examples:
        here = re.sub(r'json\("readings"\)', f"json({str(folder / 'readings')!r})", example)
        here = re.sub(r'("path"|"checkpointLocation"), "(\w+)"', rf'\1, "{folder}/\2"', here)
        here = re.sub(r'"(live/[^"]+)"', rf'"{folder}/\1"', here)
        exec(compile(here, "docs/streaming.md", "exec"), known)
        known["stream"].awaitTermination()
    return {
        "examples": len(examples),
        "thefts": rows(folder / "thefts"),
        "live thefts": rows(folder / "live" / "thefts"),
        "live bad": rows(folder / "live" / "bad"),
        "live late": rows(folder / "live" / "late"),
    }


def rows(folder: Path) -> int:
    files = list(folder.rglob("part-*"))
    tables: list[int] = [pq.read_metadata(file).num_rows for file in files if file.suffix == ".parquet"]
    return sum(tables) + sum(len(file.read_text().splitlines()) for file in files if file.suffix == ".json")


def main() -> None:
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    zone = spark.conf.get("spark.sql.session.timeZone")
    found = {"zone": zone, "spark": of_batches(spark), "streaming": of_streams(spark)}
    spark.stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
