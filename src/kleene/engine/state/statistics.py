"""What an engine counted: for the user who asks why nothing matched, and for an optimiser that wants to know rates."""

from __future__ import annotations

from dataclasses import dataclass, fields
from operator import add, attrgetter


@dataclass(frozen=True, slots=True)
class ComponentCounts:
    """How far events and runs came at one positive component of one alternative."""

    variable: str
    # Events of its classes, and those of them that satisfy its own conditions.
    seen: int = 0
    passed: int = 0
    # Runs that reached this component.
    reached: int = 0
    # Events that were tried here with a run and failed a condition with earlier events.
    failed: int = 0
    # Runs that a negated event stopped on the way here, or, at the last component, after it.
    negated: int = 0
    # Runs that stood here when their window closed, and those whose next event was no continuation.
    expired: int = 0
    broken: int = 0


@dataclass(frozen=True, slots=True)
class Alive:
    """What an engine holds for windows that are still open, without events and runs that only wait to be dropped.

    events   that wait for the watermark, or that a match to come could hold or be forbidden by
    nbytes   their share of the memory
    """

    events: int = 0
    runs: int = 0
    nbytes: int = 0


@dataclass(frozen=True, slots=True)
class BatchCounts:
    """The counts of one batch, or of all batches together."""

    rows: int = 0
    bad: int = 0
    late: int = 0
    # Events that some component could use.
    relevant: int = 0
    matches: int = 0
    # What a budget made it drop.
    dropped: int = 0
    # How often the plan was changed for a better one.
    plan_changes: int = 0

    def __add__(self, later: BatchCounts) -> BatchCounts:
        return BatchCounts(*map(add, _NUMBERS(self), _NUMBERS(later)))


_NUMBERS = attrgetter(*(each.name for each in fields(BatchCounts)))
NOTHING_COUNTED = BatchCounts()


@dataclass(frozen=True, slots=True)
class RunCounts(BatchCounts):
    """The counts of all batches together, and what the engine holds after them."""

    waiting: int = 0
    events: int = 0
    runs: int = 0
    state_bytes: int = 0
    # By alternative, one entry a positive component.
    components: tuple[tuple[ComponentCounts, ...], ...] = ()
