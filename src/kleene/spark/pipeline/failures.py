"""Spark's failures, in one line and without secrets."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from kleene.errors import KleeneError, SparkFailed
from kleene.spark.pipeline.values import scrubbed

_CONDITION = re.compile(r"\[[A-Z][A-Z_0-9.]+\]\s*([^\n]*)")
# How Spark begins what it says of a stream that failed.
_STREAM = re.compile(r"Query \[[^\]]*\] terminated with exception: ")
# How Py4J begins what it says of Java's failures, and how Java begins what led to them.
_CALLING = "An error occurred while calling"
_CAUSE = re.compile(r"^(?:Caused by)?: (?:[\w$]+\.)+[\w$]+: ([^\n]+)", re.MULTILINE)
_STATE = re.compile(r"\s*SQLSTATE: \w+\s*\Z")
_FULL = re.compile(r"No space left on device|Disk quota exceeded|There is not enough space on the disk")
_OWN = re.compile(r"error\[KL\d+\]")


def is_sparks(problem: BaseException) -> bool:
    """Whether Spark raised it, from itself or from Java."""
    return isinstance(problem, Exception) and type(problem).__module__.split(".")[0] in ("pyspark", "py4j")


def is_ours(problem: BaseException) -> bool:
    """Whether it holds the text of an error that Kleene raised in a task."""
    return _OWN.search(str(problem)) is not None


def essence(problem: BaseException, secrets: Iterable[str] = ()) -> str:
    """The message after Spark's own name for the failure, or else the first line; a full disk before all that."""
    full = _full(problem)
    if full is not None:
        return full
    text = _STREAM.sub("", str(problem).replace("[STREAM_FAILED]", "", 1)).strip()
    named = _CONDITION.search(text)
    said = named[1] if named is not None and named[1] else _first_line(text)
    return scrubbed(_STATE.sub("", said).strip().rstrip("."), secrets)


def _first_line(text: str) -> str:
    """The first line; where it says only which call of Java failed, the last cause."""
    causes = _CAUSE.findall(text) if text.startswith(_CALLING) else []
    return str(causes[-1]) if causes else next(iter(text.splitlines()), "no message")


def _full(problem: BaseException) -> str | None:
    """The system's message about a full disk, wherever in Spark's causes it stands; None for any other problem."""
    if isinstance(problem, OSError):
        return problem.strerror if problem.errno in (errno.ENOSPC, errno.EDQUOT) else None
    # PySpark keeps Java's causes beside the message, and not in it.
    match = _FULL.search(f"{problem} {getattr(problem, '_stackTrace', '')}")
    return None if match is None else match[0]


def room_hint(problem: BaseException) -> str | None:
    """What to do about a full disk; None when it is something else."""
    return None if _full(problem) is None else "make room, and run again: a stream goes on where it stopped"


@contextmanager
def spark_failures(secrets: Iterable[str]) -> Iterator[None]:
    """A failure of Spark becomes one error; one of ours that a task raised is left, for its text is in it."""
    try:
        yield
    except KleeneError:
        raise
    except Exception as problem:
        if not is_sparks(problem) or is_ours(problem):
            raise
        hint = room_hint(problem) or "KLEENE_DEBUG=1 shows all that Spark said"
        raise SparkFailed(f"Spark stopped: {essence(problem, secrets)}", hint=hint) from problem
