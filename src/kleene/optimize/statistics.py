"""Statistics of a stream (ZStream Table 1), by fingerprint, and the defaults for what was not measured.

Everything is per window of the query: a rate is CARD, the events of a class within one window that satisfy the
conditions on one event alone. A statistic that was not measured has a default, so that a query can be planned at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import prod

from kleene.optimize import fingerprints
from kleene.pattern.expressions import Agrees, Among, Clause, Comparison, IsNull, Literal, Truth
from kleene.pattern.nodes import Component
from kleene.plan.physical import Scan
from kleene.plan.trees import Node


@dataclass(frozen=True, slots=True)
class Defaults:
    """The values of statistics that were not measured."""

    # Events of a class in one window, before its own conditions: the same for every class.
    rate: float = 100.0
    equality: float = 0.1
    inequality: float = 0.9
    # <, <=, > and >=.
    range: float = 1 / 3
    # CONTAINS.
    other: float = 0.5
    null: float = 0.1


DEFAULTS = Defaults()

# No estimate is zero: what was not seen yet may still come, and products of estimates must stay comparable.
LEAST_SELECTIVITY = 1e-9
LEAST_RATE = 1e-6


@dataclass(frozen=True, slots=True)
class Statistics:
    # By fingerprint of a scan: its events in one window.
    rates: Mapping[str, float] = field(default_factory=dict)
    # By fingerprint of a clause: the fraction of the combinations that satisfy it.
    selectivities: Mapping[str, float] = field(default_factory=dict)
    # By fingerprint of a sub-pattern: its records in one window; used instead of an estimate.
    cardinalities: Mapping[str, float] = field(default_factory=dict)
    # The number of values that the partition's key has in one window.
    keys: float = 1.0
    # The number of events on which all this was measured.
    sampled: int = 0


def merged(older: Statistics, newer: Statistics, weight: float, threshold: float) -> Statistics:
    """The windowed average (§5.3): the newer counts for `weight`, the older for the rest; what only one knows stays.

    A value that is more than 1 + `threshold` times another than before is the first of a new phase: an average of
    both, which is true of neither, would have the stream planned for what it never was.
    """

    def average(old: float, new: float) -> float:
        return new if _differs(old, new, threshold) else (1 - weight) * old + weight * new

    def averaged(old: Mapping[str, float], new: Mapping[str, float]) -> dict[str, float]:
        both = {name: average(old[name], value) for name, value in new.items() if name in old}
        return {**old, **new, **both}

    if not older.sampled:
        keys = newer.keys
    elif not newer.sampled:
        keys = older.keys
    else:
        keys = average(older.keys, newer.keys)
    return Statistics(
        averaged(older.rates, newer.rates),
        averaged(older.selectivities, newer.selectivities),
        averaged(older.cardinalities, newer.cardinalities),
        keys,
        older.sampled + newer.sampled,
    )


def changed(old: Statistics, new: Statistics, threshold: float) -> bool:
    """Whether a statistic is more than 1 + `threshold` times another than it was, up or down, or was only assumed."""
    pairs = ((old.rates, new.rates), (old.selectivities, new.selectivities), (old.cardinalities, new.cardinalities))
    return _differs(old.keys, new.keys, threshold) or any(
        name not in before or _differs(before[name], value, threshold)
        for before, after in pairs
        for name, value in after.items()
    )


def _differs(old: float, new: float, threshold: float) -> bool:
    return max(old, new) > (1 + threshold) * min(old, new)


def scaled(statistics: Statistics, factor: float, names: Collection[str] | None = None) -> Statistics:
    """Statistics that mislead: those of these fingerprints, or all, wrong by a factor; no fraction is more than 1."""

    def wrong(known: Mapping[str, float]) -> dict[str, float]:
        return {name: value * factor if names is None or name in names else value for name, value in known.items()}

    return replace(
        statistics,
        rates=wrong(statistics.rates),
        selectivities={name: min(value, 1.0) for name, value in wrong(statistics.selectivities).items()},
        cardinalities=wrong(statistics.cardinalities),
    )


def assumed(clause: Clause) -> float:
    """The selectivity of a clause that nobody has measured; its literals are taken to be independent."""
    return 1.0 - prod(1.0 - _assumed(literal) for literal in clause.literals)


def _assumed(literal: Literal) -> float:
    match literal:
        case Truth(value=value):
            return float(value)
        case Comparison(operator="=") | Agrees():
            return DEFAULTS.equality
        case Comparison(operator="!="):
            return DEFAULTS.inequality
        case Comparison():
            return DEFAULTS.range
        case IsNull(negated=negated):
            return 1 - DEFAULTS.null if negated else DEFAULTS.null
        case Among(values=values, negated=negated):
            none = (1.0 - DEFAULTS.equality) ** len(values)
            return none if negated else 1.0 - none
        case _:
            return DEFAULTS.other


class Known:
    """What statistics say of the scans and clauses of one pattern; each is looked up once."""

    def __init__(self, statistics: Statistics, components: Iterable[Component], key: tuple[str, ...] = ()) -> None:
        self.statistics, self.key = statistics, key
        self.components = {component.variable: component for component in components}
        self.keys = max(statistics.keys, 1.0) if key else 1.0
        self._selectivities: dict[Clause, float] = {}
        self._rates: dict[Scan, float] = {}

    def selectivity(self, clause: Clause) -> float:
        if clause not in self._selectivities:
            measured: float | None = None
            if self.statistics.selectivities:
                fingerprint = fingerprints.of_clause(clause, self.components)
                measured = self.statistics.selectivities.get(fingerprint)
            self._selectivities[clause] = max(assumed(clause) if measured is None else measured, LEAST_SELECTIVITY)
        return self._selectivities[clause]

    def of_all(self, clauses: tuple[Clause, ...]) -> float:
        """The part of the combinations that satisfy all of them, taken to be independent."""
        return prod(map(self.selectivity, clauses)) if clauses else 1.0

    def rate(self, scan: Scan) -> float:
        """CARD: as measured, or that of the classes alone and the selectivities of the conditions."""
        if scan not in self._rates:
            rates = self.statistics.rates
            measured = rates.get(fingerprints.of_scan(scan)) if rates else None
            if measured is None:
                plain = rates.get(fingerprints.of_scan(Scan(scan.component)), DEFAULTS.rate) if rates else DEFAULTS.rate
                measured = plain * self.of_all(scan.mask)
            self._rates[scan] = max(measured, LEAST_RATE)
        return self._rates[scan]

    def cardinality(self, node: Node) -> float | None:
        """The records of a sub-pattern, where somebody has counted them."""
        if not self.statistics.cardinalities:
            return None
        return self.statistics.cardinalities.get(fingerprints.of_node(node, self.components, self.key))
