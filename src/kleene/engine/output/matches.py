"""Matches as arrays, whichever executor found them: what outputs are built from."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from kleene.kernels.expression import Ints
from kleene.kernels.gathering import Rows

Variables = npt.NDArray[np.uint8]


class Matches:
    """Match m selected `events[offsets[m]:offsets[m + 1]]`, in pattern order."""

    def __init__(
        self, offsets: Ints, events: Ints, variables: Variables, later: Ints | None = None, *, follows: bool = False
    ) -> None:
        """Matches as flat arrays.

        offsets     [match + 1]
        events      [reference]: numbers of events in the engine's store; a greater number is later in canonical order
        variables   [reference]: which of the query's positive variables the event stands for, counted from 0
        later       [match]: how many steps after its last event it ends (`E@d` of the stream algebra); None: with it
        follows     whether the events of each match are in the order in which they happened, as those of a sequence are
        """
        self._offsets, self._events, self._variables = offsets, events, variables
        self.later, self.follows = later, follows

    @property
    def offsets(self) -> Ints:
        return self._offsets

    @property
    def events(self) -> Ints:
        return self._events

    @property
    def variables(self) -> Variables:
        return self._variables

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def nbytes(self) -> int:
        return int(self.offsets.nbytes + self.events.nbytes + self.variables.nbytes)

    @property
    def first(self) -> Rows:
        """The first event of each match."""
        return self.events[self.offsets[:-1]]

    @property
    def last(self) -> Rows:
        """The last event of each match."""
        return self.events[self.offsets[1:] - 1]

    @property
    def references(self) -> Rows:
        """The events of all matches, in any order."""
        return self.events

    @property
    def number(self) -> int:
        """How many events there are in all matches."""
        return len(self.references)

    @property
    def latest(self) -> Ints:
        """[match]: the event that comes last, which may be at any place of a pattern that is no sequence."""
        return self.across(np.maximum, self.events)

    def across(self, choose: np.ufunc, values: Ints) -> Ints:
        """[match]: the least or greatest of its events' values; `values`: [reference]."""
        extremes: Ints = choose.reduceat(values, self.offsets[:-1]) if len(self) else values[:0]
        return extremes

    @property
    def positions(self) -> Ints:
        """[reference]: its place in the list of its variable, counted from 1."""
        places = np.arange(len(self.events))
        begins = np.zeros(len(self.events), np.bool_)
        begins[self.offsets[:-1]] = True
        begins[1:] |= self.variables[1:] != self.variables[:-1]
        return places - np.maximum.accumulate(np.where(begins, places, 0)) + 1

    def of(self, variable: int) -> tuple[Ints, Ints]:
        """A variable's events of all matches, and where those of each match begin: [match + 1]."""
        chosen = self.variables == variable
        before = np.concatenate([[0], np.cumsum(chosen)])
        return self.events[chosen], before[self.offsets]

    def take(self, places: Ints) -> Matches:
        """These matches, in this order."""
        sizes = np.diff(self.offsets)[places]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        at = np.repeat(self.offsets[places] - offsets[:-1], sizes) + np.arange(offsets[-1])
        later = None if self.later is None else self.later[places]
        return Matches(offsets, self.events[at], self.variables[at], later, follows=self.follows)

    @staticmethod
    def together(parts: list[Matches]) -> Matches:
        if len(parts) == 1:
            return parts[0]
        shifts = np.cumsum([0, *(len(part.events) for part in parts)])
        offsets = [part.offsets[:-1] + shift for part, shift in zip(parts, shifts, strict=False)]
        return Matches(
            np.concatenate([*offsets, shifts[-1:]]).astype(np.int64),
            np.concatenate([np.zeros(0, np.int64), *(part.events for part in parts)]),
            np.concatenate([np.zeros(0, np.uint8), *(part.variables for part in parts)]),
            follows=all(part.follows for part in parts),
        )


class ColumnarMatches(Matches):
    """Matches of single events, a column a place; flat arrays are made of them where somebody asks."""

    def __init__(
        self,
        buffer: npt.NDArray[np.int32],
        places: Variables,
        size: int | None = None,
        *,
        follows: bool = False,
        in_order: bool = False,
    ) -> None:
        """Matches by column.

        buffer     [place, match]: numbers of events, perhaps with room for more matches
        places     [place]: the variable whose events stand there, in pattern order
        size       how many matches there are; None: there is no room for more
        follows    whether the events of each match are in the order in which they happened
        in_order   whether they are known to stand in the order of results, and to be of events that do not last
        """
        self.buffer, self.places = np.ascontiguousarray(buffer), places
        self.columns = self.buffer if size is None else self.buffer[:, :size]
        self.later, self.follows, self.in_order = None, follows, in_order

    def __len__(self) -> int:
        return int(self.columns.shape[1])

    @cached_property
    def offsets(self) -> Ints:
        length, size = self.columns.shape
        return np.arange(0, size * length + 1, length, dtype=np.int64)

    @cached_property
    def events(self) -> Ints:
        return self.columns.T.reshape(-1).astype(np.int64)

    @cached_property
    def variables(self) -> Variables:
        return np.tile(self.places, len(self))

    @property
    def nbytes(self) -> int:
        return int(self.columns.nbytes)

    @property
    def first(self) -> Rows:
        first: Rows = self.columns[0]
        return first

    @property
    def last(self) -> Rows:
        last: Rows = self.columns[-1]
        return last

    @property
    def references(self) -> Rows:
        return self.columns.reshape(-1)

    @property
    def number(self) -> int:
        return int(self.columns.size)

    def take(self, places: Ints) -> ColumnarMatches:
        return ColumnarMatches(self.columns[:, places], self.places, follows=self.follows)
