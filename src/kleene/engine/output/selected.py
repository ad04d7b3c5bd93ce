"""Matches taken apart by variable: the rows that columns of results are gathered from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kleene.engine.output.matches import ColumnarMatches, Matches
from kleene.engine.output.ordering import Ordered
from kleene.engine.output.path_matches import PathMatches
from kleene.engine.state.memory import empty
from kleene.kernels.gathering import ByVariable, Rows, by_variable, fill_lists
from kleene.kernels.paths import FIRST_EVENT
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
    # [variable, match], and the first of these matches, where every variable of the query is single and present.
    columns: tuple[npt.NDArray[np.int32], int] | None = None
    # [match]: the last event in pattern order, where matches are of single events.
    last: Rows | None = None
    # Whether it is known that no match lacks a variable.
    is_complete: bool = False

    @staticmethod
    def of(query: BoundQuery, matches: Matches, part: Ordered) -> Selected:
        """These of the matches in this order."""
        if isinstance(matches, ColumnarMatches):
            return _of_columns(query, matches, part)
        if isinstance(matches, PathMatches) and matches.single_list is not None:
            return _of_paths(query, matches, matches.single_list, part)
        order = part.numbers
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


def _of_columns(query: BoundQuery, matches: ColumnarMatches, part: Ordered) -> Selected:
    """Matches of single events: their columns are those of the variables."""
    buffer, first = matches.buffer, part.first
    if part.order is not None:
        buffer, first = np.take(matches.columns, part.order, axis=1), 0
    columns = buffer[:, first : first + part.size]
    singles: dict[str, Rows] = {}
    lists: dict[str, tuple[Rows, Offsets]] = {}
    known = dict(zip(matches.places.tolist(), columns, strict=True))
    for number, component in enumerate(query.positives):
        if component.kind is not ComponentKind.SINGLE:
            lists[component.variable] = np.zeros(0, np.int32), np.zeros(part.size + 1, np.int32)
        elif number in known:
            singles[component.variable] = known[number]
        else:
            singles[component.variable] = np.full(part.size, -1, np.int32)
    all_present = len(singles) == len(query.positives) == len(columns)
    ends = [known[int(matches.places[place])] for place in (0, -1)]
    in_order = (buffer, first) if all_present else None
    return Selected(ends[0], singles, lists, in_order, ends[1], is_complete=all_present and matches.follows)


def _of_paths(query: BoundQuery, matches: PathMatches, kleene: int, part: Ordered) -> Selected:
    """Matches with one list each, which stand as the result has them, or are copied in its order."""
    size, states = part.size, matches.states
    begins, table = matches.list_offsets, matches.singles
    if part.order is None:
        begins, table = begins[part.first : part.first + size + 1], table[:, part.first : part.first + size]
        offsets, rows = (begins - begins[0]).astype(np.int32), matches.paths.members[begins[0] : begins[-1]]
    else:
        table = np.take(table, part.order, axis=1)
        sizes, offsets = np.diff(begins)[part.order], np.zeros(size + 1, np.int32)
        np.cumsum(sizes, out=offsets[1:])
        rows = empty(int(offsets[-1]), np.int32)
        fill_lists(matches.paths.members, begins[part.order], sizes, rows)
    known = dict(zip(states.variables.tolist(), states.places.tolist(), strict=True))
    singles: dict[str, Rows] = {}
    lists: dict[str, tuple[Rows, Offsets]] = {}
    for number, component in enumerate(query.positives):
        if number == kleene:
            lists[component.variable] = rows, offsets
        elif component.kind is not ComponentKind.SINGLE:
            lists[component.variable] = np.zeros(0, np.int32), np.zeros(size + 1, np.int32)
        else:
            singles[component.variable] = table[known[number]] if number in known else np.full(size, -1, np.int32)
    return Selected(table[FIRST_EVENT], singles, lists)
