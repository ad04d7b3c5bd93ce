"""The first thing that a user runs, alone or (`spark`) on a plain session; prints what came out as JSON."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import kleene

READINGS = [
    {"type": "Shelf", "ts": 1, "tag_id": 7},
    {"type": "Shelf", "ts": 2, "tag_id": 8},
    {"type": "Register", "ts": 3, "tag_id": 8},
    {"type": "Exit", "ts": 5, "tag_id": 7},
    {"type": "Exit", "ts": 6, "tag_id": 8},
]
STOLEN = "PATTERN SEQ(Shelf a, !(Register b), Exit c) WHERE [tag_id] WITHIN 12"


def shown(match: Any) -> list[Any]:
    return [match["match_id"], match["key"]["tag_id"], match["start"], match["end"]]


def main(on: list[str]) -> None:
    if on == ["spark"]:
        from pyspark.sql import SparkSession

        session = SparkSession.builder.master("local[2]").getOrCreate()
        matches: Any = kleene.match(session.createDataFrame(READINGS), STOLEN).collect()
    else:
        matches = kleene.match(READINGS, STOLEN)
    found = {"kleene": kleene.__file__, "user": os.getuid(), "matches": [shown(match) for match in matches]}
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
