"""Match ids are part of what users see (CONTRIBUTING, Versions): 200 queries with the ids that their matches had.

`data/match_ids.jsonl` was written by the commit before the code was divided into contracts; a change here is a change
of version.
"""

from __future__ import annotations

import json
from pathlib import Path

import kleene
from kleene.pattern.types import ValueType

STORED = Path(__file__).parent / "data" / "match_ids.jsonl"


def test_ids_are_what_they_were() -> None:
    known = [json.loads(line) for line in STORED.read_text(encoding="utf-8").splitlines()]
    assert len(known) == 200
    assert len({one["stratum"] for one in known}) > 20
    for one in known:
        columns = {name: ValueType(kind) for name, kind in one["schema"].pop("columns").items()}
        found = kleene.match(one["events"], one["query"], schema=kleene.Schema(**one["schema"], columns=columns))
        assert sorted(match["match_id"] for match in found) == one["ids"], one["query"]
