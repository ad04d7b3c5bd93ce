"""How a query runs while kernels are not compiled yet: few events uncompiled, more with a word on what takes so long.

The events decide where to begin, the clock where to end: a query may have more matches than events, and what does not
end within seconds is begun again with compiled kernels.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeVar

from kleene.engine import warming
from kleene.kernels.interpreting import OutOfTime, interpreted
from kleene.kernels.kernel_cache import observers
from kleene.optimize.streams.sharing import SharedPlan
from kleene.plan.detections import DetectionPlan
from kleene.plan.physical import AutomatonPlan, SequencePlan
from kleene.plan.streams import StreamPlan
from kleene.plan.trees import TreePlan

_LOG = logging.getLogger("kleene")
T = TypeVar("T")
R = TypeVar("R")

# Of these, uncompiled kernels match 10,000 a second in a closure and 25,000 in a sequence.
MOST_EVENTS = 20_000
MOST_SECONDS = 2.0
# A process that has spent so much in uncompiled kernels compiles those that it needs, which takes little longer.
_PATIENCE = 15.0


class Share(NamedTuple):
    """How many kernels an executor needs, and how long they take to compile."""

    kernels: int
    seconds: int


SHARES: dict[type, Share] = {
    SequencePlan: Share(65, 20),
    AutomatonPlan: Share(80, 40),
    TreePlan: Share(75, 30),
    StreamPlan: Share(30, 15),
    DetectionPlan: Share(60, 25),
    SharedPlan: Share(30, 30),
}


class HasAlternatives(Protocol):
    """A plan, or what is run as one."""

    @property
    def alternatives(self) -> tuple[object, ...]:
        """What executors run of it; nothing where the reference evaluator does."""


# A progress display is called with how many kernels are compiled, of about how many, in about how many seconds.
Progress = Callable[[int, Share], None]


@dataclass
class _Process:
    """The time spent uncompiled, and the executors compiled, in this process."""

    uncompiled_seconds: float = 0.0
    # Executors whose kernels were compiled, or found kept.
    compiled: set[type] = field(default_factory=set)
    # Whether the user was warned that tasks may wait.
    warned: bool = False


_PROCESS = _Process()


def when_ready(work: Callable[[], T], events: int, *plans: HasAlternatives) -> T:
    """The result of some work, tried uncompiled where it is small. It may run twice: a failed run must leave no trace.

    events   the number of events that it goes through
    plans    the plans that it runs
    """
    # The reference evaluator has no kernels.
    executors = {type(alternative) for plan in plans for alternative in plan.alternatives} & SHARES.keys()
    if warming.all_kept() or executors <= _PROCESS.compiled:
        return work()
    warming.begin()
    if events <= MOST_EVENTS and _PROCESS.uncompiled_seconds < _PATIENCE and os.environ.get(warming.VARIABLE) != "now":
        began = time.perf_counter()
        try:
            with interpreted(MOST_SECONDS):
                return work()
        except OutOfTime:
            _LOG.info("uncompiled kernels did not finish within %g s: compiled ones begin again", MOST_SECONDS)
        finally:
            _PROCESS.uncompiled_seconds += time.perf_counter() - began
    with _announced(executors):
        result = work()
    _PROCESS.compiled |= executors
    return result


def run_when_ready(
    make: Callable[[], R], plans: Callable[[R], Iterable[HasAlternatives]], work: Callable[[R], T], events: int
) -> T:
    """`when_ready` for work on a new run; the run that is asked for its plans is the first one used.

    make    makes a new run
    plans   gives the plans of a run
    """
    first = make()
    unused = [first]
    return when_ready(lambda: work(unused.pop() if unused else make()), events, *plans(first))


def uncompiled_if_few(number: int, most: int, *executors: type) -> AbstractContextManager[None]:
    """For work that cannot be begun again: few items go through uncompiled kernels while the others are compiled.

    executors   the kinds of plans whose kernels the work needs
    """
    is_ready = warming.all_kept() or _PROCESS.compiled.issuperset(executors)
    if is_ready or number > most or os.environ.get(warming.VARIABLE) == "now":
        return nullcontext()
    warming.begin()
    return interpreted()


def before_tasks() -> None:
    """Begin to compile the kernels that Spark's tasks need, and warn once that tasks may wait for them."""
    if warming.all_kept():
        return
    warming.begin()
    if not _PROCESS.warned:
        _PROCESS.warned = True
        _LOG.warning(
            "compiling kernels, once, about a minute: tasks with many events wait for it (beforehand: `kleene warm`)"
        )


# The progress display that is used instead of the log.
_SHOWS: ContextVar[Progress | None] = ContextVar("shows", default=None)


@contextmanager
def shown_by(progress: Progress) -> Iterator[None]:
    """Report progress of compiling to a display, instead of one line in the log."""
    token = _SHOWS.set(progress)
    try:
        yield
    finally:
        _SHOWS.reset(token)


@contextmanager
def _announced(executors: Collection[type]) -> Iterator[None]:
    """Report that kernels are being compiled, when the first of them is."""
    shares = [SHARES[executor] for executor in executors]
    share = max(shares, key=lambda one: one.seconds, default=SHARES[SequencePlan])
    progress = _SHOWS.get() or _log
    done = -1

    def observe(_: str) -> None:
        nonlocal done
        done += 1
        progress(done, share)

    observers.append(observe)
    try:
        yield
    finally:
        observers.remove(observe)


def _log(done: int, share: Share) -> None:
    if done == 0:
        where = warming.folder()
        unwritable = "; no folder can be written to keep them, so each process does" if where is None else ""
        _LOG.warning("compiling kernels, once, about %d s%s", share.seconds, unwritable)
    elif done % 20 == 0:
        _LOG.info("compiled %d of about %d kernels", done, max(share.kernels, done))
