"""A user's script on a session with nothing set; prints what it found as JSON. Run it in the folder of the events.

python plain_session.py ANOTHER_TIME_ZONE PARTITIONS NAMES

The zone is set for a second run, the number for a stream; which queries are asked at which place is JSON.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

sys.path.append(str(Path(__file__).parents[2]))

from tests.users.day import SETTINGS, answers, plain, text

import kleene
from kleene.spark.batch_run import together

SHOWN = ("shuffle.partitions", "adaptive.enabled", "codegen.wholeStage", "ansi.enabled", "session.timeZone")


def settings(spark: SparkSession) -> dict[str, str]:
    return {row["key"]: row["value"] for row in spark.sql("SET").collect()}


def on_a_stream(spark: SparkSession, partitions: str) -> list[str]:
    """The ids of the matches of what has come, with a store for each of so many partitions."""
    spark.conf.set("spark.sql.shuffle.partitions", partitions)
    Path("arriving").mkdir()
    shutil.copy("zoned.parquet", "arriving")
    read = spark.read.parquet(str(Path("zoned.parquet").absolute()))
    arriving = spark.readStream.schema(read.schema).parquet(str(Path("arriving").absolute()))
    matches = kleene.match(arriving.withWatermark("ts", "1 second"), text("linked", zoned=True))
    written = matches.writeStream.format("json").option("checkpointLocation", str(Path("state").absolute()))
    stream = written.trigger(availableNow=True).start(str(Path("matches").absolute()))
    stream.awaitTermination()
    lines = [line for file in Path("matches").glob("part-*.json") for line in file.read_text().splitlines()]
    return sorted(json.loads(line)["match_id"] for line in lines)


def main(another: str, partitions: str, names: str) -> None:
    asked = json.loads(names)
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    before = settings(spark)
    found: dict[str, Any] = {"settings": {name: spark.conf.get(f"spark.sql.{name}") for name in SHOWN}}
    found["workers"] = spark.sparkContext.pythonExec
    for kind in ("zoned", "naive"):
        events = spark.read.parquet(str(Path(f"{kind}.parquet").absolute()))
        found[kind] = answers(events, zoned=kind == "zoned", names=asked[kind])
    events.createOrReplaceTempView("events")
    query = text("by key", zoned=False).replace("'", "''")
    found["sql"] = plain(kleene.sql(spark, f"SELECT match_id FROM KLEENE(events, '{query}')"))
    queries = [kleene.query(text(name, zoned=False), name=name) for name in ("by key", "sliced")]
    several = together(events, queries, settings=SETTINGS)
    found["in one pass"] = {"matches": dict(several.run().matches), "sliced": plain(several.matches("sliced"))}
    several.close()
    found["left alone"] = settings(spark) == before
    found["on a stream"] = on_a_stream(spark.newSession(), partitions)
    spark.conf.set("spark.sql.session.timeZone", another)
    events = spark.read.parquet(str(Path("zoned.parquet").absolute()))
    found["in another zone"] = answers(events, zoned=True, names=asked["in another zone"])
    # What a user's own function runs is the user's own affair.
    found["workers afterwards"] = spark.sparkContext.pythonExec
    spark.stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
