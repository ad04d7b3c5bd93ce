"""The commands and their options. What a command does is in a module of its own, imported when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kleene.cli.options import FileShape, InputFormat, OutputShape, Params, Runtime, SchemaFile, Separator, Verbose

app = typer.Typer(
    name="kleene",
    help="Find patterns in streams of events: complex event processing for people who have Spark.",
    epilog="Start with `kleene demo`. Each command shows an example: `kleene match --help`.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
generate_app = typer.Typer(help="Make events to try queries on.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(generate_app, name="generate")


def _version(show: bool) -> None:
    if show:
        version()
        raise typer.Exit


@app.callback()
def common(
    verbose: Verbose = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show a traceback when something fails.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    if not verbose:
        from kleene.cli.running import show_logging

        show_logging(verbose=False)


@app.command()
def match(
    query: Annotated[
        list[str],
        typer.Option("-q", "--query", metavar="QUERY", help="A query, or a .kleene file; several are run together."),
    ],
    events: Annotated[
        list[str],
        typer.Option(
            "-i",
            "--input",
            metavar="[NAME=]FILE",
            help="Events: CSV, JSON lines or Parquet; `-` is stdin. NAME=FILE makes a stream of that name.",
        ),
    ],
    schema: SchemaFile = None,
    param: Params = None,
    format: Annotated[
        OutputShape | None,
        typer.Option(
            "--format", "-f", help="How matches are written; a table to a terminal, JSON lines to a pipe by default."
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Where matches are written.")
    ] = None,
    timeouts: Annotated[
        Path | None, typer.Option("--timeouts", metavar="FILE", help="Where TIMEOUTS of the query are written.")
    ] = None,
    bad_rows: Annotated[
        Path | None, typer.Option("--bad-rows", metavar="FILE", help="Where unreadable rows are written.")
    ] = None,
    on: Annotated[Runtime, typer.Option("--on", help="Run in this process, or on a local Spark.")] = Runtime.process,
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=0, help="Show at most so many matches.")] = None,
    why: Annotated[
        bool, typer.Option("--why", help="Say on stderr how far events and runs came; runs the query once more.")
    ] = False,
    input_format: InputFormat = None,
    separator: Separator = None,
    verbose: Verbose = False,
) -> None:
    """Find every match of a query in files of events.

    Rows that cannot be read are set aside, counted and reported with their lines; events may come in any order.

    \b
    Example:
      kleene generate supermarket --events 500 -o day.csv
      kleene match -i day.csv -q "PATTERN SEQ(SHELF-READING x, !(COUNTER-READING y), EXIT-READING z)
                                  WHERE [id] WITHIN 12 hours"
      kleene match -i day.csv -q theft.kleene -p gap=30 -o theft.parquet --bad-rows bad.jsonl
      kleene match -i day.csv -q theft.kleene --why
      kleene match -i Shelf=shelf.csv -i Exit=exit.csv -q "PATTERN Shelf s ; Exit e WHERE [id] WITHIN 1 hour"
    """
    from kleene.cli.matching import MatchRequest, match_files

    match_files(
        MatchRequest(
            queries=query,
            events=events,
            schema=schema,
            params=param or [],
            format=None if format is None else format.value,
            output=output,
            timeouts=timeouts,
            bad_rows=bad_rows,
            on_spark=on is Runtime.spark,
            limit=limit,
            why=why,
            input_format=None if input_format is None else input_format.value,
            separator=separator,
        )
    )


@app.command()
def check(
    files: Annotated[list[str], typer.Argument(metavar="FILE…", help="Query files; `-` is stdin.")],
    schema: SchemaFile = None,
    events: Annotated[
        list[str] | None,
        typer.Option("-i", "--input", metavar="[NAME=]FILE", help="Events whose columns the queries must fit."),
    ] = None,
    param: Params = None,
    input_format: InputFormat = None,
    separator: Separator = None,
) -> None:
    """Say whether queries are right, without running them.

    Each file is parsed and every name in it is resolved; parameters may stay without values. Ends with 1 when a
    query is wrong and with 2 when a file cannot be read.

    \b
    Example:
      kleene check theft.kleene
      kleene check queries/*.kleene --schema store.kleene -i day.csv
      echo "PATTERN SEQ(A a, B b) WHERE a.x = c.x" | kleene check -
    """
    from kleene.cli.checking import check_files

    shape = None if input_format is None else input_format.value
    code = check_files(files, schema, events or [], param or [], shape, separator)
    if code:
        raise typer.Exit(code)


@app.command()
def format(
    files: Annotated[list[str], typer.Argument(metavar="FILE…", help="Query files; `-` is stdin.")],
    write: Annotated[bool, typer.Option("--write", "-w", help="Change the files instead of printing.")] = False,
) -> None:
    """Print queries in one canonical layout.

    \b
    Example:
      echo "event a x ; b y where x.id=y.id within 2 hrs" | kleene format -
      kleene format --write queries/*.kleene
    """
    from kleene.cli.formatting import format_files

    code = format_files(files, write=write)
    if code:
        raise typer.Exit(code)


@app.command()
def explain(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="A query, or a .kleene file.")],
    schema: SchemaFile = None,
    events: Annotated[
        list[str] | None, typer.Option("-i", "--input", metavar="[NAME=]FILE", help="Events to bind the query to.")
    ] = None,
    param: Params = None,
    without: Annotated[
        list[str] | None,
        typer.Option("--without", metavar="RULE", help="Switch a rule of the optimiser off; may be repeated."),
    ] = None,
    mermaid: Annotated[bool, typer.Option("--mermaid", help="Print the plan as a Mermaid flowchart only.")] = False,
    analyze: Annotated[
        bool, typer.Option("--analyze", help="Run it on the events, and show what it did beside what was expected.")
    ] = False,
    input_format: InputFormat = None,
    separator: Separator = None,
) -> None:
    """Show how a query is understood, and how it will run.

    Its components, partition and window; then the plan: what runs it, and where each condition is tested.

    \b
    Example:
      kleene explain "PATTERN SEQ(Shelf a, !(Register b), Exit c) WHERE [tag] AND c.ts > a.ts WITHIN 12 hours"
      kleene explain theft.kleene -i day.csv --without push_window
      kleene explain theft.kleene -i day.csv --analyze
      kleene explain theft.kleene --mermaid > theft.mmd
    """
    from kleene.cli.explaining import ExplainRequest, explained

    shape = None if input_format is None else input_format.value
    typer.echo(
        explained(
            ExplainRequest(query, schema, events or [], param or [], shape, without or [], mermaid, analyze, separator)
        )
    )


@app.command()
def run(
    pipeline: Annotated[Path, typer.Argument(metavar="PIPELINE", help="A pipeline file, in TOML.")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Look at schemas only, explain what a run would do, write nothing.")
    ] = False,
    verbose: Verbose = False,
) -> None:
    """Run a pipeline file on Spark: sources, queries and sinks.

    Rows are counted, bad ones set aside, all queries run in one pass, and each result is put in its place when it is
    whole; a second run replaces the results of the first.

    A file with a [stream] table is run as a stream. Ctrl-C or SIGTERM stops it when its batch is finished, and the next
    run goes on from there.

    Ends with 0 when all went well, 1 when the file, a query or the data is wrong, 2 when the command is, 3 when a limit
    was reached: bad rows, or a budget.

    \b
    Example:
      kleene run examples/retail/pipeline.toml
      kleene run examples/retail/pipeline.toml --dry-run
    """
    from kleene.cli.pipeline import run_file

    run_file(pipeline, dry=dry_run)


@app.command()
def demo(
    events: Annotated[int, typer.Option("--events", "-n", min=200, help="How many readings to make.")] = 3_000,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Where files are written.")] = Path(
        "demo-output"
    ),
    seed: Annotated[int, typer.Option("--seed", help="Another supermarket.")] = 1,
    on: Annotated[
        Runtime | None,
        typer.Option("--on", help="Run on a local Spark (where PySpark is installed, by default), or in this process."),
    ] = None,
    verbose: Verbose = False,
) -> None:
    """Find thieves in a made-up supermarket.

    Shoplifters, misplaced goods and an overdose: three queries of the SASE paper (§2) over a made-up day of RFID
    readings, on a local Spark; without PySpark, in this process.

    \b
    Example:
      kleene demo
      kleene demo --events 1000 --output /tmp/demo --on process
    """
    from kleene.cli.demo import run_demo

    run_demo(events, seed, output, on_spark=None if on is None else on is Runtime.spark)


@generate_app.command("supermarket")
def generate_supermarket(
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="Where the events are written.")],
    events: Annotated[int, typer.Option("--events", "-n", min=200, help="How many.")] = 3_000,
    seed: Annotated[int, typer.Option("--seed", help="The same seed makes the same events.")] = 1,
    format: Annotated[FileShape | None, typer.Option("--format", "-f", help="Where the ending misleads.")] = None,
    planted: Annotated[
        Path | None, typer.Option("--planted", metavar="FILE", help="Where the cases hidden in it are written.")
    ] = None,
) -> None:
    """Make a day of RFID readings in a supermarket, with a few thefts, misplaced goods and overdoses in it.

    \b
    Example:
      kleene generate supermarket --events 5000 --seed 7 -o day.parquet --planted truth.csv
    """
    from kleene.cli import generating

    generating.generate_supermarket(events, seed, output, None if format is None else format.value, planted)


@generate_app.command("payments")
def generate_payments(
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="Where the payments are written.")],
    closed: Annotated[
        Path | None, typer.Option("--closed", metavar="FILE", help="Where the accounts that were closed are written.")
    ] = None,
    events: Annotated[int, typer.Option("--events", "-n", min=200, help="How many payments.")] = 3_000,
    seed: Annotated[int, typer.Option("--seed", help="The same seed makes the same payments.")] = 1,
    format: Annotated[FileShape | None, typer.Option("--format", "-f", help="Where the ending misleads.")] = None,
    planted: Annotated[
        Path | None, typer.Option("--planted", metavar="FILE", help="Where the frauds hidden in it are written.")
    ] = None,
) -> None:
    """Make a day of payments by card, with a few frauds in it: what the queries of examples/fraud find, and miss.

    \b
    Example:
      kleene generate payments --events 5000 --seed 7 -o payments.csv --closed closed.csv --planted truth.csv
    """
    from kleene.cli import generating

    shape = None if format is None else format.value
    generating.generate_payments(events, seed, output, closed, shape, planted)


@app.command()
def archive(
    target: Annotated[Path, typer.Argument(metavar="FILE", help="The archive to write, `….tar.gz`.")],
) -> None:
    """Pack Kleene and its compiled kernels for the executors of a Spark cluster.

    Kernels that are not compiled yet are compiled first.

    \b
    Example:
      kleene archive kleene.tar.gz
      spark-submit --archives kleene.tar.gz#kleene-archive --conf spark.executorEnv.PYTHONPATH=kleene-archive job.py
    """
    from kleene.cli.warming import compile_all
    from kleene.spark.shipping import make_archive

    compile_all()
    typer.echo(f"{make_archive(target)}: {target.stat().st_size / 1e6:.1f} MB")


@app.command()
def warm(
    spark: Annotated[
        bool,
        typer.Option("--spark", help="Keep the classes that Spark loads, too, so that sessions here start faster."),
    ] = False,
) -> None:
    """Compile everything now that Kleene would compile when it is first needed.

    Kleene's inner loops are compiled once for a machine, not for a query, and kept on disk. Without this command the
    first queries run uncompiled while a process in the background compiles. Use it where that is no good: when an image
    is built, or on each machine of a cluster, as the user that may write where Kleene is installed. NUMBA_CACHE_DIR
    names another place. It takes a minute or two; a second time, nothing.

    \b
    Example:
      kleene warm
      kleene warm --spark                          # 200 MB more: Spark has less to load at each start
      RUN pip install kleene && kleene warm        # in a Dockerfile
      NUMBA_CACHE_DIR=/shared/kernels kleene warm
    """
    from kleene.cli.warming import compile_all, compile_and_archive

    for message in compile_and_archive() if spark else [compile_all()]:
        typer.echo(message)


@app.command()
def doctor() -> None:
    """Look at this installation and say what is wrong with it.

    \b
    Example:
      kleene doctor
    """
    from kleene.cli import doctor as examination

    checks = examination.report()
    typer.echo(examination.render(checks))
    code = examination.exit_code(checks)
    if code:
        raise typer.Exit(code)


@app.command()
def version() -> None:
    """Show the version.

    \b
    Example:
      kleene version
    """
    from kleene import __version__

    typer.echo(f"kleene {__version__}")
