"""A process that runs against another one, round by round: `python contender.py FOLDER NAME ROUNDS`.

For each round it waits for a word on its input, then does what a run does but for Spark: it takes the locks, clears
what a killed run left, writes rows of its own aside, and puts them in their place. It says `wrote` or what it was told.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kleene.durable import commit
from kleene.errors import RunInProgress
from kleene.spark.pipeline.reading import Pipeline, read_pipeline
from kleene.spark.pipeline.stream_places import checkpoint_place
from kleene.spark.pipeline.stream_sinks import StreamSinks
from kleene.spark.pipeline.targets import folders_of, recover, staging, swap_in, targets_of
from kleene.spark.run_lock import one_run

PARTS = 4


def batch(pipeline: Pipeline, name: str, number: int) -> None:
    (target,) = targets_of(pipeline)
    with one_run(folders_of([target])):
        assert target.local is not None
        recover(target.local)
        write(staging(target.local), f"{name} {number}")
        swap_in(target.local)


def stream(pipeline: Pipeline, name: str, number: int) -> None:
    targets, nothing = targets_of(pipeline), Any
    with one_run([checkpoint_place(pipeline), *folders_of(targets)]):
        StreamSinks(nothing, pipeline, targets, nothing).claim("life")  # type: ignore[arg-type]
        folder = targets[0].local
        assert folder is not None
        done = folder / f"batch={number}"
        assert not done.exists()
        write(folder / f".batch={number}", f"{name} {number}")
        commit(folder / f".batch={number}", done)


def write(folder: Path, text: str) -> None:
    """Slowly: it is not done before the other one has had its chance to disturb."""
    folder.mkdir()
    for part in range(PARTS):
        pq.write_table(pa.table({"by": [text], "part": [part]}), folder / f"part-{part}.parquet")
    (folder / "_SUCCESS").touch()
    patience = time.monotonic() + 30
    while not refused_in(text.split()[1]).exists() and time.monotonic() < patience:
        time.sleep(0.002)


def refused_in(number: str) -> Path:
    """A file that says that the other one was refused."""
    return Path(sys.argv[1]) / f"refused-{number}"


if __name__ == "__main__":
    read, name = read_pipeline(Path(sys.argv[1]) / "pipeline.toml"), sys.argv[2]
    run = batch if read.model.stream is None else stream
    print("ready", flush=True)
    for number in range(int(sys.argv[3])):
        sys.stdin.readline()
        try:
            run(read, name, number)
            print("wrote", flush=True)
        except RunInProgress as refused:
            refused_in(str(number)).touch()
            print(refused.message, flush=True)
