"""A pipeline on a stream as a process of its own, which chaos kills: `python -m tests.chaos.real_driver FILE [batch]`.

It says which batches are done. Given a batch, it writes one output of it, or of the next that has two, says so, and
waits to be killed.
"""

from __future__ import annotations

import sys
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from kleene.spark.pipeline.reading import read_pipeline
from kleene.spark.pipeline.stream_running import run_stream
from kleene.spark.pipeline.stream_sinks import StreamSinks, rows_in
from kleene.spark.session import local_session

TINY = {"spark.sql.shuffle.partitions": "2"}


class Lines:
    """A report that says a word a batch."""

    def stage(self, text: str, tasks: object = None) -> AbstractContextManager[None]:
        return nullcontext()

    def show(self, *given: object) -> None:
        pass

    def say(self, text: str) -> None:
        pass

    def batch(self, batch: Any, totals: object) -> None:
        print(f"done {batch.counts.batch}", flush=True)


def stop_between(first: int) -> None:
    """Write one output of a batch, and no other."""
    write_one = StreamSinks.write_one

    def write(sinks: StreamSinks, found: Any, batch: int) -> None:
        targets = [target for target in sinks.targets if rows_in(found, target)]
        sinks.planned.sync()
        for place, target in enumerate(targets):
            write_one(sinks, found, batch, target, rows_in(found, target))
            if batch >= first and place + 1 < len(targets):
                print(f"between {batch}", flush=True)
                time.sleep(600)

    StreamSinks.write = write  # type: ignore[method-assign, assignment]


if __name__ == "__main__":
    if len(sys.argv) > 2:
        stop_between(int(sys.argv[2]))
    # A task whose worker is killed is tried again.
    session = local_session("local[2,4]", **TINY)
    run_stream(read_pipeline(Path(sys.argv[1])), Lines(), session)
    print("finished", flush=True)
