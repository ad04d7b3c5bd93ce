"""`kleene run`: a pipeline file, run on Spark; what happens goes to stderr, what the console sinks take to stdout."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import typer

from kleene.cli.showing import print_matches
from kleene.errors import MissingPackage
from kleene.explanation import explain_query
from kleene.explanation.several import stream_rows
from kleene.pattern import Schema
from kleene.pattern.explaining import aligned

if TYPE_CHECKING:
    from kleene.spark.pipeline.binding import OnData
    from kleene.spark.pipeline.reading import Pipeline
    from kleene.spark.pipeline.running import Summary
    from kleene.spark.pipeline.targets import Target

_POLL_SECONDS = 0.2
_ROWS_WORTH_A_RATE = 1_000_000


def run_file(path: Path, *, dry: bool) -> None:
    """Run a pipeline file, or explain what a run would do."""
    try:
        from kleene.spark.pipeline.reading import read_pipeline
    except ImportError as problem:
        raise _missing(problem) from None
    pipeline = read_pipeline(path)
    try:
        (_run if pipeline.model.stream is None else _run_stream)(pipeline, dry=dry)
    except ImportError as problem:
        raise _missing(problem) from None


def _run(pipeline: Pipeline, *, dry: bool) -> None:
    from kleene.spark.pipeline.running import bound, run_pipeline

    console = Console(pipeline.schema)
    if dry:
        with bound(pipeline, console) as on_data:
            typer.echo("\n".join(_plan(on_data)))
        return
    summary = run_pipeline(pipeline, console)
    for line in _summed_up(summary):
        print(line, file=sys.stderr)


def _run_stream(pipeline: Pipeline, *, dry: bool) -> None:
    from kleene.cli.streaming import StreamConsole, stream_summed_up
    from kleene.spark.pipeline.stream_running import bound_stream, run_stream

    console = StreamConsole(pipeline)
    if dry:
        typer.echo("\n".join(_plan(bound_stream(pipeline, console))))
        return
    with console:
        summary = run_stream(pipeline, console)
    for line in stream_summed_up(summary):
        print(line, file=sys.stderr)


def _missing(problem: ImportError) -> Exception:
    if (problem.name or "").split(".")[0] in ("pydantic", "pydantic_core", "pyspark"):
        return MissingPackage(f"{problem.name} is not installed", hint="pip install 'kleene[spark]'")
    return problem


class Console:
    """Reports a run: on a terminal, one live line for the current stage; on a pipe, one plain line a stage."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._began = time.perf_counter()

    @contextmanager
    def stage(self, text: str, tasks: Callable[[], tuple[int, int]] | None = None) -> Iterator[None]:
        began = time.perf_counter()
        if not sys.stderr.isatty():
            # Printed when the stage begins, so that a log shows what a long wait is for.
            print(f"after {began - self._began:.1f} s: {text}", file=sys.stderr, flush=True)
            yield
            return
        with _living(text, tasks):
            yield
        print(f"{text}: {time.perf_counter() - began:.1f} s", file=sys.stderr)

    def show(self, target: Target, rows: pa.Table, total: int) -> None:
        title = f"{target.query or 'sources'}: {counted(total, *_WORDS[target.sink.output])}"
        sys.stderr.flush()
        print_matches(rows, self._schema, limit=target.sink.limit, title=title)
        if total > rows.num_rows:
            print(f"… and {total - rows.num_rows:,} more")
        sys.stdout.flush()


_WORDS = {
    "matches": ("match", "matches"),
    "timeouts": ("timeout", "timeouts"),
    "late": ("late event", "late events"),
    "bad_rows": ("bad row", "bad rows"),
    "compressed": ("compressed row", "compressed rows"),
}


@contextmanager
def _living(text: str, tasks: Callable[[], tuple[int, int]] | None) -> Iterator[None]:
    """Shows a live line until the stage ends: a spinner, a bar of Spark's tasks where they are known, and the time."""
    from threading import Event, Thread

    from rich.console import Console as Terminal
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = [SpinnerColumn(), TextColumn("{task.description}")]
    if tasks is not None:
        columns += [BarColumn(), MofNCompleteColumn(), TextColumn("tasks")]
    with Progress(*columns, TimeElapsedColumn(), console=Terminal(stderr=True), transient=True) as progress:
        line = progress.add_task(text, total=None)
        ended = Event()

        def watch() -> None:
            while tasks is not None and not ended.wait(_POLL_SECONDS):
                done, known = tasks()
                progress.update(line, completed=done, total=known or None)

        watcher = Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join(timeout=1)


# The end of a run ----------------------------------------------------------------------------------------------------


def _summed_up(summary: Summary) -> Iterator[str]:
    yield ""
    width = max(len(source.name) for source in summary.sources)
    for source in summary.sources:
        yield f"read     {source.name:<{width}}  {counted(source.rows, 'row')}"
    yield f"bad      {counted(summary.bad_rows, 'row')}"
    for reason, number in summary.reasons:
        yield f"           {number:,} × {reason}"
    yield f"kept     {counted(summary.counts.kept, 'event')} that a query can use"
    for name, number in summary.counts.matches.items():
        late = summary.counts.timeouts.get(name, 0)
        also = f", {counted(late, 'timeout')}" if late else ""
        yield f"matched  {name}: {counted(number, 'match', 'matches')}{also}"
    if summary.counts.dropped:
        yield f"dropped  {counted(summary.counts.dropped, 'match', 'matches')} over the budget"
    for target in summary.targets:
        if target.sink.kind != "console":
            yield f"wrote    {target.what} → {place(target)}"
    yield f"took     {summary.seconds:.1f} s, of which finding matches {summary.finding:.1f} s{_rate(summary)}"


def _rate(summary: Summary) -> str:
    """The rate as text; empty for few rows, where it would only measure how fast Spark starts."""
    if summary.rows < _ROWS_WORTH_A_RATE:
        return ""
    return f": {summary.rows / summary.finding:,.0f} events/s"


def place(target: Target) -> str:
    """Where a result goes, in words."""
    if target.sink.kind == "console":
        return "the console"
    return f"{target.sink.kind} {target.shown}"


def counted(number: int, one: str, many: str | None = None) -> str:
    """A number of things: `1 match`, `2,000 matches`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


# A dry run -----------------------------------------------------------------------------------------------------------


def _plan(on_data: OnData[Any, Any]) -> Iterator[str]:
    """What a run would do: nothing has been read but schemas, and nothing is written."""
    from kleene.spark.pipeline.binding import master_of
    from kleene.spark.pipeline.values import scrubbed, shown

    pipeline = on_data.pipeline
    for source, opened in zip(pipeline.model.sources, on_data.sources, strict=True):
        where = source.table or source.topic or ", ".join(source.paths)
        yield f"source {source.name}: {source.kind} {scrubbed(where, pipeline.secrets)}"
        yield from (f"  option {name} = {value}" for name, value in shown(source.options).items())
        yield f"  columns {', '.join(f'{name} {kind}' for name, kind in opened.dtypes)}"
    streams = list(stream_rows(on_data.queries))
    if streams:
        yield ""
        yield "streams"
        yield from aligned(streams, indent="  ")
    for number, (query, route) in enumerate(zip(pipeline.queries, on_data.routes, strict=True)):
        yield ""
        yield f"query {query.name}"
        yield from (f"  {line}".rstrip() for line in _explained(on_data, number).splitlines())
        yield f"  on Spark: {route}"
    yield ""
    for target in on_data.targets:
        mode = "" if target.sink.kind == "console" or pipeline.model.stream is not None else f", {target.sink.mode}"
        how = f"{mode}{', flat' if target.sink.flat and target.sink.kind != 'console' else ''}"
        yield f"sink {target.what} → {place(target)}{how}"
        yield from (f"  option {name} = {value}" for name, value in shown(target.sink.options).items())
    yield from _stream(pipeline)
    yield f"Spark {master_of(pipeline)}"
    yield from (f"  {name} = {value}" for name, value in shown(pipeline.model.spark.conf).items())
    yield f"bad rows: {_bad_rows(pipeline)}"
    yield "Nothing was written: this was a dry run."


def _stream(pipeline: Pipeline) -> Iterator[str]:
    if pipeline.model.stream is not None:
        said = pipeline.model.stream.model_dump(exclude_none=True, exclude_defaults=True)
        yield f"stream {', '.join(f'{name} = {value}' for name, value in said.items())}"


def _explained(on_data: OnData[Any, Any], number: int) -> str:
    """The explanation of a query on the schema that it was bound to, which includes the streams of other queries."""
    query, bound = on_data.pipeline.queries[number], on_data.queries[number]
    return explain_query(query, schema=bound.schema, settings=on_data.pipeline.settings).text


def _bad_rows(pipeline: Pipeline) -> str:
    from kleene.spark.pipeline.bad_rows import allowed

    settings = pipeline.model.bad_rows
    where = "counted" if settings.path is None else f"kept in {settings.path}"
    return where if settings.policy == "keep" else f"{where}; the run fails when they are more than {allowed(pipeline)}"
