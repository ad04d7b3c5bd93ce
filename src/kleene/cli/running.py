"""Run the command: every failure becomes a message and an exit code, never a traceback.

0 all went well · 1 the query or the data is wrong · 2 the command was used wrongly · 3 a limit was reached ·
70 a fault of Kleene's own · 130 interrupted
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Sequence

from kleene.errors import KleeneError, LimitError

DATA, USAGE, LIMIT, INTERNAL, INTERRUPTED = 1, 2, 3, 70, 130

_RAISED = re.compile(r"[A-Za-z_][\w.]*(Error|Exception|Warning|Exit|Interrupt): ")
# An error of Kleene inside a traceback that another process wrote.
_QUOTED_ERROR = re.compile(r"error\[(KL\d+)\]:.*?(?=\n\s*\n|\Z)", re.DOTALL)


def run(arguments: Sequence[str]) -> int:
    """Run the command with these arguments; the exit code."""
    debug = os.environ.get("KLEENE_DEBUG", "") not in ("", "0") or "--debug" in arguments
    try:
        from kleene.cli.app import app

        app(args=list(arguments), prog_name="kleene")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0 if end.code is None else DATA
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except Exception as problem:
        if debug:
            raise
        return _report(problem)
    return 0


def exit_code(error: KleeneError) -> int:
    return LIMIT if isinstance(error, LimitError) else DATA


def _report(problem: Exception) -> int:
    if isinstance(problem, KleeneError):
        print(problem.render(), file=sys.stderr)
        return exit_code(problem)
    if isinstance(problem, MemoryError):
        print("error: out of memory; give it fewer events, or a narrower window", file=sys.stderr)
        return LIMIT
    if isinstance(problem, RecursionError):
        print("error: this is nested too deeply", file=sys.stderr)
        return DATA
    if isinstance(problem, OSError):
        print(f"error: {problem}", file=sys.stderr)
        return DATA
    quoted = _QUOTED_ERROR.search(str(problem))
    if quoted is not None:  # raised in a Spark task
        print(quoted[0].rstrip(), file=sys.stderr)
        return LIMIT if quoted[1].startswith("KL6") else DATA
    print(f"internal error: {type(problem).__name__}: {_essence(str(problem))}", file=sys.stderr)
    print("  = hint: this is a fault of Kleene; KLEENE_DEBUG=1 shows where, please report it", file=sys.stderr)
    return INTERNAL


def _essence(message: str) -> str:
    """The first line of a message, or what its traceback ends in where it quotes one (Spark does)."""
    raised = [line for line in message.splitlines() if _RAISED.match(line)]
    return (raised[-1:] or message.strip().splitlines() or ["no message"])[0]


_installed: list[logging.Handler] = []


def show_logging(*, verbose: bool) -> None:
    """Warnings go to stderr as they are; with `-v` everything that Kleene logs."""
    logger = logging.getLogger("kleene")
    for old in _installed:
        logger.removeHandler(old)
    handler: logging.Handler
    if verbose:
        from rich.console import Console
        from rich.logging import RichHandler

        handler = RichHandler(console=Console(stderr=True), show_path=False, markup=False)
    else:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(message)s"))
    handler.setLevel(logging.DEBUG if verbose else logging.WARNING)
    logger.setLevel(logging.DEBUG if verbose else logging.WARNING)
    logger.propagate = False
    logger.addHandler(handler)
    _installed[:] = [handler]
