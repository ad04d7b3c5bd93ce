"""A Spark Connect session serves as well: everything on the user's road is public API."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.spark.comparing import random_events
from tests.users.places import briefly

import kleene

pytestmark = pytest.mark.spark

KEYED = "PATTERN SEQ(A a, !(C c), B b) WHERE [id] WITHIN 20"
LINKED = "PATTERN SEQ(A a, B b) WHERE a.v = b.v WITHIN 5"
SLICED = "PATTERN SEQ(A a, B b) WITHIN 3 OUTPUT NON_OVERLAP"

# In a process of its own: one process has either kind of session.
CLIENT = """
import json, os, sys
from kleene.spark.java import ensure_java
ensure_java()
os.environ["PYSPARK_PYTHON"] = sys.executable
from pyspark.sql import SparkSession
import kleene
from kleene.plan.settings import Exchange, Settings
from kleene.spark.batch_run import together
from tests.spark.comparing import random_events, to_spark

session = SparkSession.builder.remote("local[2]").getOrCreate()
assert session.conf.get("spark.sql.shuffle.partitions") == "200"
assert "connect" in type(session).__module__
events = to_spark(session, random_events(3))
settings = Settings(exchange=Exchange(slice_width=20))
queries = {name: kleene.query(text, name=name) for name, text in json.loads(sys.argv[1]).items()}

def ids(frame):
    return sorted(row.match_id for row in frame.select("match_id").collect())

found = {name: ids(kleene.match(events, query, settings=settings)) for name, query in queries.items()}
events.createOrReplaceTempView("events")
statement = f"SELECT match_id FROM KLEENE(events, '{queries['keyed'].text}')"
found["in SQL"] = ids(kleene.sql(session, statement))
several = together(events, list(queries.values()), settings=settings)
counts = several.run()
found["in one pass"] = ids(several.matches("sliced"))
found["bad rows"] = several.bad_rows.count()
found["flat"] = kleene.flat(several.matches("keyed")).count()
several.close()
print(json.dumps(found))
session.stop()
"""


def test_a_connect_session_gives_the_same_matches() -> None:
    queries = {"keyed": KEYED, "linked": LINKED, "sliced": SLICED}
    command = [sys.executable, "-c", CLIENT, json.dumps(queries)]
    root = Path(__file__).parents[2]
    done = subprocess.run(
        command, cwd=root, env={**os.environ, **briefly()}, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout.splitlines()[-1])
    events = random_events(3)
    here = {name: sorted(kleene.match(events, text).column("match_id").to_pylist()) for name, text in queries.items()}
    assert all(len(ids) > 10 for ids in here.values())
    assert {name: found[name] for name in queries} == here
    assert found["in SQL"] == here["keyed"]
    assert found["in one pass"] == here["sliced"]
    assert found["bad rows"] == kleene.outputs(events, KEYED).bad_rows.num_rows
    assert found["flat"] == 2 * len(here["keyed"])
