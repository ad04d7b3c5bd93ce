"""What Spark says when it fails, in one line and without secrets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from kleene.errors import KleeneError, SparkFailed
from kleene.spark.pipeline.values import scrubbed

_CONDITION = re.compile(r"\[[A-Z][A-Z_0-9.]+\]\s*([^\n]*)")
# How Spark begins what it says of a stream that failed.
_STREAM = re.compile(r"Query \[[^\]]*\] terminated with exception: ")
_STATE = re.compile(r"\s*SQLSTATE: \w+\s*\Z")
_OWN = re.compile(r"error\[KL\d+\]")


def is_sparks(problem: BaseException) -> bool:
    """Whether Spark raised it, from itself or from Java."""
    return isinstance(problem, Exception) and type(problem).__module__.split(".")[0] in ("pyspark", "py4j")


def is_ours(problem: BaseException) -> bool:
    """Whether it holds the text of an error that Kleene raised in a task."""
    return _OWN.search(str(problem)) is not None


def essence(problem: BaseException, secrets: Iterable[str] = ()) -> str:
    """The message after Spark's own name for the failure, or else the first line."""
    text = _STREAM.sub("", str(problem).replace("[STREAM_FAILED]", "", 1)).strip()
    named = _CONDITION.search(text)
    said = named[1] if named is not None and named[1] else next(iter(text.strip().splitlines()), "no message")
    return scrubbed(_STATE.sub("", said).strip().rstrip("."), secrets)


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
        hint = "KLEENE_DEBUG=1 shows all that Spark said"
        raise SparkFailed(f"Spark stopped: {essence(problem, secrets)}", hint=hint) from problem
