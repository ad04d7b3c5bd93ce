"""Pipeline files of streams for tests, and a report that remembers what it was told."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.spark.pipelines import Told

from kleene.spark.pipeline.measures import BatchMeasures, Counted, Totals

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kleene.pattern.clock import Clock

STREAM = """\
[[sources]]
name = "readings"
kind = "json"
path = "in"
schema = { type = "string", ts = "long", x = "long" }

[[queries]]
name = "pairs"
text = "PATTERN SEQ(A a, B b) WHERE [x] WITHIN 10"

[[sinks]]
kind = "parquet"
path = "out"

[stream]
checkpoint = "state"
delay = 5
available_now = true
"""


def changed(*changes: tuple[str, str], added: str = "") -> str:
    """The file with replacements, each of which must find its place, and something before `[stream]`."""
    text = STREAM.replace("[stream]", f"{added}\n[stream]") if added else STREAM
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


def event(kind: str, ts: int | None, x: int) -> str:
    return json.dumps({"type": kind, "ts": ts, "x": x})


def put(folder: Path, number: int, *lines: str) -> None:
    """A file that a stream sees whole or not at all, and after those before it."""
    folder.mkdir(exist_ok=True)
    draft = folder / f".{number}.json"
    draft.write_text("".join(f"{line}\n" for line in lines))
    os.utime(draft, (1_700_000_000 + number, 1_700_000_000 + number))
    draft.rename(folder / f"{number}.json")


def lines(folder: Path) -> list[dict[str, Any]]:
    """What a JSON sink holds, all batches together."""
    return [
        json.loads(line) for part in sorted(folder.glob("batch=*/part-*")) for line in part.read_text().splitlines()
    ]


class Watched(Told):
    """`on_batch` is called when a batch is done."""

    def __init__(self, on_batch: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.said: list[str] = []
        self.batches: list[Mapping[str, Any]] = []
        self._on_batch = on_batch

    def say(self, text: str) -> None:
        self.said.append(text)

    def batch(self, batch: BatchMeasures, totals: Totals) -> None:
        self.batches.append(batch.plain(totals))
        self._on_batch()


def batch(
    clock: Clock, matches: int = 2, late: int = 4, bad_rows: int = 1, timeouts: int = 1
) -> tuple[BatchMeasures, Totals]:
    """A batch as it is told of, and the first one."""
    outputs = {"matches": {"pairs": matches}, "timeouts": {"pairs": timeouts}, "compressed": {"pairs": 0}}
    done = {"events": 90, "duplicates": 0, "dropped": 0, "plan_changes": 0}
    slots = {0: {"held": 5, "runs": 3, "state_bytes": 2_500_000, "kept_bytes": 9}}
    progress = {
        "batchId": 7,
        "timestamp": "2026-03-02T12:00:10.000Z",
        "sources": [
            {"description": "FileStreamSource[x]", "numInputRows": 1000},
            {"description": "heartbeats", "endOffset": {"kleene_beat": 3}, "numInputRows": 3},
        ],
        "durationMs": {"triggerExecution": 500, "addBatch": 400},
        "eventTime": {"watermark": "2026-03-02T12:00:05.250Z"},
    }
    one, totals = BatchMeasures(Counted(7, outputs, late, bad_rows, done, slots), progress, clock), Totals()
    totals.add(one)
    return one, totals
