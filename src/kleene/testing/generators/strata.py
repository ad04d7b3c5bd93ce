"""The strata: which features each draws, and how often."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kleene.testing.generators.patterns import Wishes

_SOME_OF_EACH = Wishes(kleene=0.1, optional=0.05, negation=0.1)


@dataclass(frozen=True, slots=True)
class Stratum:
    """What a stratum draws; the chances are those of features that it is not about."""

    strategy: str | None = None
    # The operators of patterns that are no lines; empty means a line.
    signs: str = ""
    # Whether patterns have negations in groups.
    groups: bool = False
    depth: int = 1
    # Whether patterns have closures side by side, under `&` and at both ends.
    closures: bool = False
    wishes: Wishes = _SOME_OF_EACH
    lengths: Sequence[int] = (2, 2, 3, 3, 4)
    # How many conditions, and how deeply AND, OR and NOT nest in them.
    conditions: Sequence[int] = (0, 1, 1, 2)
    nesting: Sequence[int] = (0, 0, 1)
    arithmetic: float = 0.1
    equivalence: float = 0.5
    ties: float = 0.1
    tie_breaker: float = 0.04
    durations: float = 0.04
    # How long events last that have a start.
    spans: Sequence[int] = (0, 0, 1, 1, 2, 3)
    nulls: float = 0.05
    declared: float = 0.3
    lacking: float = 0.0
    count_window: float = 0.1
    # How many events such a window holds.
    counts: Sequence[int] = (2, 3, 4, 5, 6, 7)
    output: str | None = None
    # How many events are drawn that the pattern has no need of.
    noise: Sequence[int] = (0, 1, 2, 2, 3, 4)
    # How likely nothing has a variable, and an equivalence test stands below OR or NOT.
    nameless: float = 0.0
    deep_equivalence: float = 0.0
    # How likely an equivalence test is of two attributes.
    two_attributes: float = 0.0


_CONTIGUOUS = Wishes(kleene=0.4, optional=0.1, negation=0.1, any_of=0.15, kinds=3)
# Events that last, some of them as long as the stream; simultaneous ones are often ordered.
_LASTING: dict[str, Any] = {
    "durations": 1.0,
    "spans": (0, 0, 0, 0, 1, 1, 2, 3, 8),
    "ties": 0.4,
    "tie_breaker": 0.4,
    "wishes": _CONTIGUOUS,
    "conditions": (0, 0, 1),
}
# One of the strategies, drawn anew for each case.
ANY_STRATEGY = "any of them"

STRATA: dict[str, Stratum] = {
    "sequence": Stratum(wishes=Wishes(bare=0.2), lengths=(1, 2, 2, 3, 3, 4), nameless=0.08),
    "strict_contiguity": Stratum("strict_contiguity", wishes=_CONTIGUOUS),
    "partition_contiguity": Stratum("partition_contiguity", wishes=_CONTIGUOUS, conditions=(0, 0, 1), equivalence=0.9),
    "skip_till_next_match": Stratum(
        "skip_till_next_match",
        wishes=Wishes(kleene=0.45, optional=0.06, negation=0.1, kinds=2),
        lengths=(2, 2, 2, 3),
        conditions=(1, 2),
        equivalence=0.3,
        noise=(3, 4, 5, 6),
    ),
    "kleene_any": Stratum(wishes=Wishes(kleene=0.6, kinds=3), lengths=(1, 2, 2, 3), conditions=(0, 1, 2, 2)),
    "negation": Stratum(wishes=Wishes(0.15, 0.08, negation=1.0, kinds=3), lengths=(1, 2, 2, 3)),
    "optional": Stratum(wishes=Wishes(kleene=0.1, optional=0.5, negation=0.15)),
    "mixed_ends": Stratum(
        ANY_STRATEGY,
        wishes=Wishes(kleene=0.25, optional=0.1, negation=0.2, kinds=2, tail=0.8),
        lengths=(1, 1, 2, 2),
        conditions=(0, 0, 1),
        noise=(2, 3, 4, 5),
    ),
    "agreeing": Stratum(
        wishes=Wishes(kleene=0.3, optional=0.4, negation=0.1, kinds=2),
        conditions=(0, 0, 1),
        equivalence=1.0,
        two_attributes=0.5,
        lacking=0.05,
        noise=(2, 3, 4, 5),
    ),
    "conjunction": Stratum(signs="&", wishes=Wishes(kleene=0.1, optional=0.1)),
    "disjunction": Stratum(signs="|", depth=2, wishes=Wishes(kleene=0.1, negation=0.1)),
    "nested": Stratum(signs=";&|", depth=3, wishes=Wishes(0.08, 0.1, 0.1, 0.15), conditions=(0, 0, 1)),
    "negated_groups": Stratum(
        groups=True,
        depth=3,
        wishes=Wishes(0.08, 0.12, 0.05, 0.35, pairs=0.2),
        conditions=(0, 0, 1),
        ties=0.4,
        tie_breaker=0.1,
        durations=0.2,
        count_window=0.2,
        noise=(2, 3, 4, 5),
    ),
    "negated_pairs": Stratum(
        ANY_STRATEGY,
        wishes=Wishes(0.15, 0.08, negation=1.0, kinds=3, pairs=0.8),
        lengths=(1, 1, 2, 2, 3),
        conditions=(0, 1, 1),
        ties=0.3,
        durations=0.15,
        noise=(2, 3, 4, 5),
    ),
    "closure": Stratum(
        wishes=Wishes(0.08, 0.08, closure=1.0, negation=0.25, kinds=3), lengths=(1, 2, 2, 3), equivalence=0.3, ties=0.3
    ),
    "ties": Stratum(ANY_STRATEGY, ties=0.8, wishes=_CONTIGUOUS),
    "tie_breaker": Stratum(ANY_STRATEGY, ties=0.8, tie_breaker=1.0, wishes=_CONTIGUOUS),
    "durations": Stratum(
        ANY_STRATEGY, durations=1.0, tie_breaker=0.4, ties=0.4, wishes=_CONTIGUOUS, conditions=(0, 0, 1)
    ),
    "durations_strict": Stratum("strict_contiguity", **_LASTING),
    "durations_partition": Stratum("partition_contiguity", **_LASTING, equivalence=0.9),
    "durations_counted": Stratum(
        ANY_STRATEGY,
        **_LASTING | {"spans": (0, 0, 0, 0, 1, 2, 5, 8), "wishes": Wishes(kleene=0.3, negation=0.2, kinds=2)},
        lengths=(2, 2, 3),
        count_window=1.0,
        counts=(2, 2, 2, 3, 3, 5),
        noise=(3, 4, 5, 6),
    ),
    "nulls_missing": Stratum(
        ANY_STRATEGY,
        wishes=Wishes(0.2, 0.12, negation=0.3, any_of=0.25),
        arithmetic=0.3,
        nulls=0.2,
        declared=0.9,
        lacking=0.3,
        count_window=0.25,
    ),
    "count_window": Stratum(count_window=1.0, conditions=(0, 0, 1), wishes=Wishes(kleene=0.2, negation=0.2)),
    "non_overlap": Stratum(
        ANY_STRATEGY, output="NON_OVERLAP", conditions=(0, 0, 1), wishes=Wishes(0.2, 0.05, kinds=2), noise=(2, 3, 4)
    ),
    "compressed": Stratum(ANY_STRATEGY, output="COMPRESSED", wishes=Wishes(kleene=0.4, negation=0.1, kinds=3)),
    "arithmetic": Stratum(arithmetic=0.6, conditions=(1, 1, 1, 2), equivalence=0.1, wishes=Wishes(0.2, kinds=2)),
    "boolean_conditions": Stratum(
        wishes=Wishes(kleene=0.2, negation=0.1, kinds=2),
        lengths=(2, 2, 3),
        conditions=(1, 1, 2),
        nesting=(1, 2, 2, 3),
        equivalence=0.35,
        deep_equivalence=0.4,
    ),
    "closures": Stratum(
        closures=True,
        wishes=Wishes(kleene=0.05, negation=0.15, any_of=0.15, kinds=3),
        conditions=(0, 0, 1),
        equivalence=0.3,
        ties=0.3,
        durations=0.1,
        noise=(1, 2, 2, 3, 4),
    ),
}
