"""The settings of a run: which rules of the optimiser are off, and how much it may use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from types import UnionType
from typing import Any, cast, get_args, get_type_hints


class Policy(Enum):
    """What happens when a budget is exceeded; what is dropped is counted."""

    FAIL = "fail with an error"
    DROP_OLDEST = "drop the oldest"
    # Of too many matches at one event, all of which are wanted whole (no NON_OVERLAP, no RETURN); of runs and of state
    # there is nothing to emit. Elsewhere the run fails.
    EMIT_COMPRESSED = "emit too many matches as one compressed row"


@dataclass(frozen=True, slots=True)
class Budget:
    """How much a query may use: a pattern can have exponentially many matches (the semantics page §6)."""

    matches_per_event: int = 1_000_000
    # Runs of an automaton; stacks hold single events, never more than the window does.
    runs_per_partition: int = 1_000_000
    # Without one, a query that keeps events for ever is refused on a stream.
    state_bytes: int | None = None
    policy: Policy = Policy.FAIL


@dataclass(frozen=True, slots=True)
class Exchange:
    """How Spark divides the events of a batch; a field that is None is chosen from the session and the data."""

    # Into how many buckets events go by the hash of their key.
    buckets: int | None = None
    # How long a slice of time is where there is no key, in steps of the time column; in events for a count window.
    slice_width: int | None = None

    def __post_init__(self) -> None:
        for name in ("buckets", "slice_width"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"`{name}` must be at least 1")


@dataclass(frozen=True, slots=True)
class Stream:
    """How a stream is run."""

    # How much later than another event one may come that ended before it: `10 seconds`, or a number of ticks. A
    # watermark that the stream has already goes before it.
    delay: str | int | None = None
    # How far behind the clock of the machine time moves on while no event comes; None: it stands still.
    idle: str | None = None
    # Whether of events with the same time and tie-breaker only one is taken.
    drop_duplicates: bool = False
    # How much a worker process may hold of slots that it has worked on, so as not to make them anew.
    cache_bytes: int = 1 << 30
    # How far ahead of the clock of the machine the time of an event may be; what is further is a bad row. None: any.
    ahead: str | None = None


class ExecutorKind(Enum):
    """What runs an alternative of a query; the planner chooses the cheapest that can."""

    STACKS = "stacks"
    AUTOMATON = "automaton"
    TREES = "trees"


@dataclass(frozen=True, slots=True)
class Adapting:
    """When a plan is changed while it runs (ZStream §5.3): for another tree, or for another executor of a line."""

    on: bool = True
    # By how much a statistic must have changed, up or down, from what the plan was made for, to search again: t. 1.0 is
    # twice as much, or half.
    change: float = 1.0
    # By how much another plan must be cheaper than the one that runs, relative to that one, to be worth a change: c.
    gain: float = 0.2
    # How many events a round takes, but for simultaneous ones; None: some thousands, more where they make little work.
    round: int | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """Every rule is on unless it is switched off here, for ablation.

    >>> Settings(without=frozenset({"push_equivalence"})).uses("push_window")
    True
    """

    without: frozenset[str] = frozenset()
    budget: Budget = Budget()
    # Whether rows of OUTPUT COMPRESSED hold their graphs, or only the counts.
    graphs: bool = True
    exchange: Exchange = Exchange()
    stream: Stream = Stream()
    # Where it can be run so, whatever another executor would cost.
    executor: ExecutorKind | None = None
    adapting: Adapting = Adapting()
    # How many cores a run over a table in this process may use; None: all. What it gives does not depend on it.
    threads: int | None = None

    def __post_init__(self) -> None:
        if self.threads is not None and self.threads < 1:
            raise ValueError("`threads` must be at least 1")

    def uses(self, rule: str) -> bool:
        return rule not in self.without


# As plain values, in which tasks and pipeline files have them -------------------------------------------------------


def to_plain(settings: Settings) -> dict[str, Any]:
    """Settings as plain values for JSON: groups are nested, choices are names.

    >>> from_plain(to_plain(Settings(executor=ExecutorKind.TREES))).executor
    <ExecutorKind.TREES: 'trees'>
    """
    return cast(dict[str, Any], _plain(settings))


def from_plain(plain: Mapping[str, Any]) -> Settings:
    """Settings from plain values; what these do not mention has its default."""
    return cast(Settings, _parse(Settings, plain))


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, frozenset):
        return sorted(value)
    return value.name.lower() if isinstance(value, Enum) else value


def _parse(kind: Any, plain: Any) -> Any:
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return cast(Any, kind)(**{name: _parse(hints[name], value) for name, value in plain.items()})
    if plain is None:
        return None
    for choice in get_args(kind) if isinstance(kind, UnionType) else (kind,):
        if isinstance(choice, type) and issubclass(choice, Enum):
            return choice[plain.upper()]
    return frozenset(plain) if isinstance(plain, list | tuple) else plain
