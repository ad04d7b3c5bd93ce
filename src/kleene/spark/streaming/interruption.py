"""The exception for a batch that was interrupted or has failed, in a form that Spark can read.

Spark is given the text of a Python traceback, and searches it for signs of an interruption with a pattern that recurses
for each character behind `py4j.protocol.Py4JJavaError`: 2,000 of them overflow its stack, and what happened is lost. So
an interruption is a few words that Spark knows, and in the text of a failure the name that it looks for is
written otherwise.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator

# As Spark looks for it.
_SIGN = "py4j.protocol.Py4JJavaError"
_INTERRUPTED = re.compile(
    r"java\.lang\.InterruptedException|java\.io\.InterruptedIOException"
    r"|java\.nio\.channels\.ClosedByInterruptException|cancelled.{0,80}\bjob group\b"
)


class BatchInterrupted(Exception):
    """The stream was stopped while a batch was made. Spark takes it for that if it has been asked to stop."""

    def __init__(self) -> None:
        super().__init__(f"{_SIGN}: An error occurred while calling a batch's function: java.lang.InterruptedException")


class BatchFailed(Exception):
    """A batch has failed in something that Spark did for it; the text is the traceback."""


def failure_for_spark(problem: Exception) -> Exception:
    """The exception to raise for a batch's failure, so that Spark can read it."""
    if isinstance(problem, BatchInterrupted) or _is_interruption(problem):
        return BatchInterrupted()
    text = "".join(traceback.format_exception(problem))
    return BatchFailed(text.replace(_SIGN, "Py4JJavaError")) if _SIGN in text else problem


def _is_interruption(problem: Exception) -> bool:
    """Whether Spark was interrupted in what it did for a batch, whatever became of that on its way here."""
    return any(
        # PySpark keeps Java's causes beside the message, and not in it.
        _INTERRUPTED.search(f"{one} {getattr(one, '_stackTrace', '')}") is not None
        for one in _chain(problem)
        if type(one).__module__.partition(".")[0] in ("pyspark", "py4j")
    )


def _chain(problem: BaseException | None) -> Iterator[BaseException]:
    """An error, and those that led to it as a traceback shows them."""
    while problem is not None:
        yield problem
        problem = problem.__cause__ or (None if problem.__suppress_context__ else problem.__context__)
