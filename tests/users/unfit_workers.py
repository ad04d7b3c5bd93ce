"""Workers that lack Kleene, as a user meets them: the Python that the environment names is another one; prints JSON."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import kleene
from kleene.cli.running import run

QUERY = "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 10"
PIPELINE = f"""
[[sources]]
name = "events"
kind = "json"
path = "events.json"
schema = {{ type = "string", ts = "long", id = "long" }}

[[queries]]
name = "pairs"
text = "{QUERY}"

[[sinks]]
kind = "console"
"""


def raised(action: Callable[[], Any]) -> dict[str, str]:
    try:
        action()
    except Exception as problem:
        return {"type": type(problem).__name__, "text": str(problem)}
    return {"type": "none", "text": ""}


def commanded(*arguments: str) -> dict[str, Any]:
    """The command, which takes the session that is there."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        code = run(list(arguments))
    return {"code": code, "text": said.getvalue()}


def main() -> None:
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    rows = [{"type": "A", "ts": 1, "id": 1}, {"type": "B", "ts": 2, "id": 1}]
    Path("events.json").write_text("\n".join(map(json.dumps, rows)))
    Path("pipeline.toml").write_text(PIPELINE)
    events = spark.createDataFrame(rows)
    stream = spark.readStream.schema(events.schema).json(str(Path.cwd()))
    settings = kleene.Settings(stream=kleene.Stream(delay=0))
    found: dict[str, Any] = {"match": raised(lambda: kleene.match(events, QUERY))}
    found["live"] = raised(lambda: kleene.live(stream, QUERY, settings=settings))
    found["run"] = commanded("run", "pipeline.toml")
    # What was sent along could hold Kleene, as an archive does on a cluster: now only the tasks can tell.
    spark.sparkContext.addFile(__file__)
    found["tasks"] = raised(lambda: kleene.match(events, QUERY).collect())
    found["run in tasks"] = commanded("run", "pipeline.toml")

    def streamed() -> None:
        begun = kleene.live(stream, QUERY, settings=settings).start(
            lambda found, batch: None, checkpoint=str(Path("state").absolute()), available_now=True
        )
        begun.awaitTermination()

    found["stream"] = raised(streamed)
    spark.stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
