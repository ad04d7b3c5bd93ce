"""`kleene warm`: compile all kernels now. And what a terminal shows while a query waits for some of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer


def compile_all() -> None:
    """Compile what is not kept yet, and say where it is kept."""
    from kleene.engine import warming
    from kleene.engine.warm import WARMINGS, warm

    folder = warming.folder()
    if warming.all_kept():
        typer.echo(f"already compiled: {_kept_text()}")
        return
    if folder is None:
        print(
            "No folder can be written to keep kernels: set NUMBA_CACHE_DIR to one. Nothing was compiled.",
            file=sys.stderr,
        )
        raise typer.Exit(1)
    if warming.is_under_way():
        print("A process in the background compiles them already; its kernels are waited for.", file=sys.stderr)
    print("Compiling the kernels, once: one or two minutes.", file=sys.stderr)
    with _steps(len(WARMINGS)) as begins:
        seconds = warm(begins)
    typer.echo(f"compiled in {seconds:.0f} s: {_kept_text()}")


def _kept_text() -> str:
    from kleene.engine import warming

    return f"kernels are kept in {warming.folder()}"


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
    """Say on a terminal that work goes on, and how far the compiler has come where it holds it up."""
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
