"""`kleene warm`: compile all kernels now. And what a terminal shows while a query waits for some of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import typer


def compile_all() -> str:
    """Compile the kernels that are not kept yet; returns a message with the folder that keeps them."""
    from kleene.engine import warming
    from kleene.engine.warm import WARMINGS, warm

    folder = warming.folder()
    if warming.all_kept():
        where = "came with the installation" if warming.all_shipped() else f"are kept in {folder}"
        return f"already compiled: kernels {where}"
    if folder is None:
        print("error: no folder can be written to keep kernels; set NUMBA_CACHE_DIR to one", file=sys.stderr)
        raise typer.Exit(1)
    if warming.is_under_way():
        print("A process in the background compiles them already; its kernels are waited for.", file=sys.stderr)
    print("Compiling the kernels, once: one or two minutes.", file=sys.stderr)
    with warming.helped(), _steps(len(WARMINGS)) as begins:
        seconds = warm(begins)
    return f"compiled in {seconds:.0f} s: kernels are kept in {folder}"


def compile_and_archive() -> Iterator[str]:
    """Both at once, so that no processor waits: Java writes its archive with one of them. A message of each."""
    with ThreadPoolExecutor(max_workers=1) as beside:
        archived = beside.submit(archive_classes)
        yield compile_all()
        yield archived.result()


def archive_classes() -> str:
    """Archive the classes that Spark loads; returns a message with the place of the archive."""
    from kleene.spark.class_archive import archive_options, make_archive
    from kleene.spark.session import check_installed

    check_installed()
    if archive_options():
        return "already kept: the classes that Spark loads"
    print("Running Spark once to see what it loads: about a minute.", file=sys.stderr)
    file = make_archive()
    if file is None:
        print("error: this Java cannot archive the classes of Spark; everything works without that", file=sys.stderr)
        raise typer.Exit(1)
    return f"kept: the classes that Spark loads, {file.stat().st_size / 1e6:.0f} MB in {file}"


@contextmanager
def _steps(number: int) -> Iterator[Callable[[int, str], None]]:
    """A bar on a terminal, lines elsewhere."""
    if not sys.stderr.isatty():

        def say(place: int, what: str) -> None:
            print(f"{place + 1:2} of {number}: {what}", file=sys.stderr, flush=True)

        yield say
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    count, what = TextColumn("{task.completed} of {task.total}"), TextColumn("{task.description}")
    with Progress(BarColumn(), count, TimeElapsedColumn(), what, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=number)
        yield lambda place, what: bar.update(task, completed=place, description=what)


@contextmanager
def working(text: str) -> Iterator[None]:
    """Show on a terminal that work goes on, and how far the compiler is while the work waits for it."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    from kleene.engine.readiness import Share, shown_by

    with Console(stderr=True).status(f"{text} …") as status:

        def show(done: int, share: Share) -> None:
            status.update(
                f"{text}: compiling kernels, once, about {share.seconds} s"
                f" ({done} of about {max(share.kernels, done)}) …"
            )

        with shown_by(show):
            yield
