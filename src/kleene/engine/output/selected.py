"""Matches taken apart by variable: the rows that columns of results are gathered from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kleene.engine.output.matches import Matches
from kleene.engine.state.memory import empty
from kleene.kernels.expression import Ints
from kleene.kernels.gathering import ByVariable, Rows, by_variable, fill_lists
from kleene.pattern.expressions import Which
from kleene.pattern.nodes import ComponentKind
from kleene.pattern.query import BoundQuery

Offsets = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Selected:
    """The events of each variable, match by match."""

    # [match]: the first event in pattern order.
    first: Rows
    # [match], by variable: the event of a single variable, −1 where it is absent.
    singles: Mapping[str, Rows]
    # [event], by Kleene variable, and where those of each match begin: [match + 1].
    lists: Mapping[str, tuple[Rows, Offsets]]

    @staticmethod
    def of(query: BoundQuery, matches: Matches, order: Ints) -> Selected:
        """These matches in this order."""
        one = [c.variable for c in query.positives if c.kind is ComponentKind.SINGLE]
        many = [c.variable for c in query.positives if c.kind is not ComponentKind.SINGLE]
        places = [
            one.index(c.variable) if c.kind is ComponentKind.SINGLE else -1 - many.index(c.variable)
            for c in query.positives
        ]
        out = ByVariable(
            empty(len(order), np.int32),
            empty((len(one), len(order)), np.int32),
            empty((len(many), len(order)), np.int64),
            empty((len(many), len(order)), np.int64),
        )
        by_variable(matches.offsets, matches.events, matches.variables, order, np.array(places, np.int64), out)
        lists = {}
        for place, name in enumerate(many):
            offsets = np.zeros(len(order) + 1, np.int32)
            np.cumsum(out.sizes[place], out=offsets[1:])
            rows = empty(int(offsets[-1]), np.int32)
            fill_lists(matches.events, out.begins[place], out.sizes[place], rows)
            lists[name] = rows, offsets
        return Selected(out.first, dict(zip(one, out.singles, strict=True)), lists)

    @property
    def size(self) -> int:
        return len(self.first)

    def bound(self, variable: str, which: Which) -> Rows:
        """The event that an identifier stands for in each match, −1 where it is absent."""
        if variable in self.singles:
            return self.singles[variable]
        rows, offsets = self.lists[variable]
        if not len(rows):
            return np.full(self.size, -1, np.int32)
        at = offsets[:-1] if which in (Which.SINGLE, Which.FIRST) else offsets[1:] - 1
        return np.where(offsets[1:] > offsets[:-1], rows[np.clip(at, 0, len(rows) - 1)], np.int32(-1))

    def numbered(self, variable: str, position: int) -> Rows:
        """The event with this number, from 1, among those of a Kleene variable in each match; −1 where it is absent."""
        rows, offsets = self.lists[variable]
        at = offsets[:-1] + np.int32(position - 1)
        if not len(rows):
            return np.full(self.size, -1, np.int32)
        return np.where(at < offsets[1:], rows[np.clip(at, 0, len(rows) - 1)], np.int32(-1))

    def covered(self, variable: str) -> tuple[Rows, Offsets]:
        """All events of a variable, and where those of each match begin."""
        if variable in self.lists:
            return self.lists[variable]
        rows = self.singles[variable]
        offsets = np.zeros(self.size + 1, np.int32)
        np.cumsum(rows >= 0, out=offsets[1:])
        return rows[rows >= 0], offsets
