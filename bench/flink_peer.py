"""Flink CEP, fetched from Maven, beside ours: the same sequences by key, skipping till any match, on one slot.

Flink runs on a cluster in its own JVM, with its state on the heap. Events that no place of the sequence can take are
filtered before the shuffle. Its clock runs from the first event until the matcher has taken in the last, after seconds
of warming up; ours returns the table of matches. A match ends before the window does in both, `end - start < window`,
and the number of matches is compared. A watermark every hundred events was as fast as every ten or every thousand.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence as Many
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

from bench.jvm import DriverFailed, class_path, driven
from bench.measure import CountsDiffer, Timing, Verdict, alternate
from bench.running import rows_found
from bench.sequence_goals import REPEATS
from bench.sequence_inputs import SequenceInput, inputs
from kleene.spark.maven import JarsNotFound

VERSION = "1.20.0"
ARTIFACTS = tuple(f"org.apache.flink:flink-{part}:{VERSION}" for part in ("cep", "clients", "streaming-java"))
SOURCES = Path(__file__).parent / "flink"
GOAL = 50.0
# How many times less of a stream there is for both, by workload.
PARTS_OF_STREAM = {"W1 V=100": 10, "W1 V=1,000": 2}
EVENTS_BETWEEN_WATERMARKS = 100
WARM_SECONDS = 5
MOST_SECONDS = 240


def flink(events: int, seed: int) -> list[Verdict]:
    """G1, with as many events as Flink can take in seconds."""
    print(f"\nG1, Flink CEP {VERSION}: seed {seed}, parallelism 1, ours on one core", flush=True)
    try:
        classes = class_path(f"flink-{VERSION}", ARTIFACTS, SOURCES)
    except JarsNotFound as problem:
        return [Verdict("G1", None, f"≥ {GOAL:g} x Flink CEP ({problem})")]
    return [_beside(_begun(asked), classes) for asked in inputs(events, seed) if asked.sequence.keys]


def _begun(asked: SequenceInput) -> SequenceInput:
    """The beginning of a stream that has many partial matches, or all of it."""
    part = asked.table.num_rows // PARTS_OF_STREAM.get(asked.name, 1)
    return SequenceInput(asked.name, asked.table.slice(0, part), asked.sequence)


def _beside(asked: SequenceInput, classes: str) -> Verdict:
    size = asked.table.num_rows
    try:
        theirs = in_flink(asked, classes)
    except DriverFailed as problem:
        return Verdict("G1", None, f"≥ {GOAL:g} x Flink CEP in {asked.name} ({str(problem).splitlines()[-1]})")
    ours = alternate({"ours": partial(rows_found, asked.table, asked.sequence.text)}, REPEATS)["ours"]
    if ours.count != theirs.count:
        raise CountsDiffer.between({"ours": ours.count, "Flink": theirs.count})
    median, least = theirs.median / ours.median, theirs.least / ours.least
    rates = f"{ours.rate(size):9.1f} M events/s, Flink {theirs.rate(size):6.3f}"
    print(
        f"  {asked.name:14}{size:11,} events{ours.count:10,} matches{rates}: "
        f"{median:.0f} x by medians, {least:.0f} x by minima",
        flush=True,
    )
    text = f"{asked.name}, {size:,} events: {median:.0f} x Flink CEP (minima {least:.0f} x); goal {GOAL:g} x"
    return Verdict("G1", median >= GOAL, text)


def in_flink(asked: SequenceInput, classes: str, passes: int = REPEATS) -> Timing:
    """The passes of one JVM."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "events.csv"
        csv.write_csv(flink_events(asked), file, csv.WriteOptions(include_header=False))
        numbers = len(asked.sequence.types), asked.sequence.window, 1, EVENTS_BETWEEN_WATERMARKS
        command = ["-Xmx4g", "-cp", classes, "FlinkSequence", str(file)]
        limits = WARM_SECONDS, passes, MOST_SECONDS
        said = json.loads(driven([*command, *map(str, (*numbers, *limits))], MOST_SECONDS + 30))
    return Timing(tuple(said["seconds"]), said["matches"])


def flink_events(asked: SequenceInput) -> pa.Table:
    """Place of the type in the sequence, time, and the key."""
    (key,) = asked.sequence.keys
    kind = asked.table["type"].combine_chunks()
    places = np.array([_place(name, asked.sequence.types) for name in kind.dictionary.to_pylist()])
    return pa.table({"place": places[kind.indices.to_numpy()], "ts": asked.table["ts"], "key": asked.table[key]})


def _place(name: str, types: Many[str]) -> int:
    return types.index(name) + 1 if name in types else 0
