"""By what edges are searched that only ranges tell apart: by the range that fewer events lie in, as a sample says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from kleene.engine.intake.strings import StringPool
from kleene.engine.query_sets.atoms import Bounds, real_atoms
from kleene.engine.query_sets.compiling import ALWAYS, CompiledEntering, CompiledNode, Parameters
from kleene.frames.numbers import to_numpy
from kleene.kernels.expression import Ints
from kleene.pattern.types import ValueType
from kleene.plan.layout import Column

# So many events of a table, and queries of a template, say enough.
_EVENTS, _QUERIES = 4_096, 1_024
# Queries are put in anew for a path that is so much better.
_MUCH_MORE = 2.0


@dataclass(frozen=True, eq=False)
class EventSample:
    """The values of some events by column, in their order; those of columns of numbers.

    size   how many events there are, with a value or without
    """

    values: Mapping[str, Ints]
    size: int

    @staticmethod
    def of(table: pa.Table, columns: Mapping[str, Column]) -> EventSample:
        rows = np.unique(np.linspace(0, table.num_rows - 1, min(_EVENTS, table.num_rows)).astype(np.int64))
        some = table.take(pa.array(rows))
        values = {}
        for name, column in columns.items():
            if column.type is ValueType.INT and column.place >= 0:
                values[name] = np.sort(to_numpy(some.column(name).drop_null().cast(pa.int64())).astype(np.int64))
            elif column.type is ValueType.FLOAT:
                reals = to_numpy(some.column(name).drop_null().cast(pa.float64())).astype(np.float64)
                values[name] = np.sort(real_atoms(reals[~np.isnan(reals)]))
        return EventSample(values, some.num_rows)

    def share_within(self, column: str, ranges: Bounds) -> float:
        """The share of events that lie in a range, on average over ranges."""
        values = self.values[column]
        inside = np.searchsorted(values, ranges.high, side="right") - np.searchsorted(values, ranges.low)
        return float(np.maximum(inside, 0).mean()) / max(self.size, 1)


@dataclass(frozen=True)
class RangePath:
    """The ranges of some edges, in the order in which they are tested: edges are searched by the first.

    shares   of events that lie in each range, on average; None: no event was seen yet
    """

    columns: tuple[str, ...]
    shares: tuple[float, ...] | None


class AccessPaths:
    """Chooses once for all edges with ranges of the same columns, so that equal ones of several templates merge."""

    def __init__(self, sample: EventSample | None = None) -> None:
        self.sample = sample
        self._chosen: dict[frozenset[str], RangePath] = {}

    @property
    def chosen(self) -> tuple[RangePath, ...]:
        return tuple(self._chosen.values())

    def in_order_of(self, other: AccessPaths) -> AccessPaths | None:
        """The same shares in the order that others chose; None: where that would cost much more."""
        same = AccessPaths(self.sample)
        for columns, path in self._chosen.items():
            order = other._chosen.get(columns, path).columns
            assert path.shares is not None, "there is a sample"
            shares = dict(zip(path.columns, path.shares, strict=True))
            if shares[order[0]] > _MUCH_MORE * shares[path.columns[0]]:
                return None
            same._chosen[columns] = RangePath(order, tuple(shares[name] for name in order))
        return same

    def ordered(self, nodes: Iterable[CompiledNode], given: Parameters, strings: StringPool) -> list[CompiledNode]:
        """The nodes of a template, each edge with its ranges in order; `given` are some of its queries."""
        some = Parameters({name: values[:_QUERIES] for name, values in given.values.items()}, min(given.size, _QUERIES))
        return [
            replace(node, entering=tuple(self._ordered(each, some, strings) for each in node.entering))
            for node in nodes
        ]

    def _ordered(self, entering: CompiledEntering, given: Parameters, strings: StringPool) -> CompiledEntering:
        columns = tuple(column for column in entering.ranged if column != ALWAYS)
        if len(columns) < 2:
            return entering
        path = self._chosen.get(frozenset(columns))
        if path is None:
            path = self._chosen[frozenset(columns)] = self._path(entering, columns, given, strings)
        ranges = sorted(entering.label.ranges, key=lambda atom: path.columns.index(atom.column))
        return replace(entering, label=replace(entering.label, ranges=tuple(ranges)))

    def _path(
        self, entering: CompiledEntering, columns: tuple[str, ...], given: Parameters, strings: StringPool
    ) -> RangePath:
        if self.sample is None:
            return RangePath(columns, None)
        _, ranges = entering.tested(given, strings)
        bounds = (Bounds(ranges[:, 0], ranges[:, 1]), Bounds(ranges[:, 2], ranges[:, 3]))
        shares = {name: self.sample.share_within(name, own) for name, own in zip(columns, bounds, strict=True)}
        best_first = tuple(sorted(columns, key=lambda name: (shares[name], name)))
        return RangePath(best_first, tuple(shares[name] for name in best_first))
