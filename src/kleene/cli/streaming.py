"""Progress of a stream: a live table on a terminal, lines on a pipe, and a summary at the end."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Self

from kleene.cli.pipeline import Console, counted, place

if TYPE_CHECKING:
    from rich.console import Group
    from rich.live import Live

    from kleene.spark.pipeline.measures import BatchMeasures, Totals
    from kleene.spark.pipeline.reading import Pipeline
    from kleene.spark.pipeline.stream_running import StreamSummary

_SECONDS_A_LINE = 1.0


class StreamConsole(Console):
    """Reports a stream: a live table on a terminal; lines on a pipe, or where rows of console sinks would break it."""

    def __init__(self, pipeline: Pipeline) -> None:
        super().__init__(pipeline.schema)
        console = any(sink.kind == "console" for sink in pipeline.model.sinks)
        self._table = sys.stderr.isatty() and not console
        self._living: Live | None = None
        self._last = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._living is not None:
            self._living.stop()

    def say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def batch(self, batch: BatchMeasures, totals: Totals) -> None:
        if self._table:
            self._show(table(batch, totals))
            return
        now = time.monotonic()
        if batch.counts.something or now - self._last >= _SECONDS_A_LINE:
            self._last = now
            print(line(batch, totals), file=sys.stderr, flush=True)

    def _show(self, content: Group) -> None:
        from rich.console import Console as Terminal
        from rich.live import Live

        if self._living is None:
            self._living = Live(console=Terminal(stderr=True), auto_refresh=False)
            self._living.start()
        self._living.update(content, refresh=True)


def line(batch: BatchMeasures, totals: Totals) -> str:
    """A batch in one line."""
    counts = batch.counts
    matches, timeouts = (sum(counts.outputs[kind].values()) for kind in ("matches", "timeouts"))
    parts = [f"{batch.rate:,.0f} events/s", *_time(batch), *_state(totals), counted(matches, "match", "matches")]
    parts += [counted(timeouts, "timeout")] if timeouts else []
    parts += [f"{counts.late:,} late", f"{counts.bad_rows:,} bad", f"in {batch.seconds:.1f} s"]
    return f"batch {counts.batch}: {', '.join(parts)}"


def table(batch: BatchMeasures, totals: Totals) -> Group:
    """One row a query with its totals so far; the current batch and the sums over all queries below."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    kinds = ["matches", *(kind for kind in ("timeouts", "compressed") if any(totals.of(kind).values()))]
    grid.add_column("query")
    for kind in kinds:
        grid.add_column(kind, justify="right")
    for name in batch.counts.outputs["matches"]:
        grid.add_row(Text(name), *(f"{totals.of(kind).get(name, 0):,}" for kind in kinds))
    now = ", ".join(
        [f"batch {batch.counts.batch}: {batch.rate:,.0f} events/s", *_time(batch), f"in {batch.seconds:.1f} s"]
    )
    sums = [counted(totals.rows, "row"), f"{totals.late:,} late", f"{totals.bad_rows:,} bad", *_state(totals)]
    return Group(grid, Text(now), Text(", ".join(sums)))


def _time(batch: BatchMeasures) -> Iterator[str]:
    if batch.shown_watermark is not None:
        yield f"watermark {batch.shown_watermark}"
    if batch.lag is not None:
        yield f"{_length(batch.lag)} behind"


def _state(totals: Totals) -> Iterator[str]:
    sizes = totals.held
    yield counted(sizes["runs"], "run")
    yield f"{_bytes(sizes['state_bytes'])} of state"


def _length(seconds: float) -> str:
    for unit, size in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds:.1f} s"


def _bytes(number: int) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if number >= size:
            return f"{number / size:.1f} {unit}"
    return f"{number} bytes"


def stream_summed_up(summary: StreamSummary) -> Iterator[str]:
    """The summary of a stream, line by line."""
    totals = summary.totals
    yield ""
    yield f"read     {counted(totals.rows, 'row')}"
    yield f"bad      {counted(totals.bad_rows, 'row')}"
    yield f"late     {counted(totals.late, 'event')}"
    if totals.done["duplicates"]:
        yield f"known    {counted(totals.done['duplicates'], 'event')} that came twice"
    for name, number in totals.of("matches").items():
        timeouts = totals.of("timeouts").get(name, 0)
        yield f"matched  {name}: {counted(number, 'match', 'matches')}" + (
            f", {counted(timeouts, 'timeout')}" if timeouts else ""
        )
    if totals.done["dropped"]:
        yield f"dropped  {counted(totals.done['dropped'], 'match', 'matches')} over the budget"
    for target in summary.targets:
        if target.sink.kind != "console":
            yield f"writes   {target.what} → {place(target)}"
    yield f"took     {summary.seconds:.1f} s, {counted(totals.batches, 'batch', 'batches')}"
    yield (
        "stopped; the next run goes on from here" if summary.stopped else "done with all there is; the next run goes on"
    )
