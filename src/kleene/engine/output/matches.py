"""Matches as flat arrays, whichever executor found them: what outputs are built from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kleene.kernels.expression import Ints


@dataclass(frozen=True, eq=False)
class Matches:
    """Match m selected `events[offsets[m]:offsets[m + 1]]`, in pattern order."""

    # [match + 1]
    offsets: Ints
    # [reference]: numbers of events in the engine's store; a greater number is later in canonical order.
    events: Ints
    # [reference]: which of the query's positive variables the event stands for, counted from 0.
    variables: npt.NDArray[np.uint8]
    # [match]: how many steps after its last event it ends (`E@d` of the stream algebra); None: with it.
    later: Ints | None = None
    # Whether the events of each match are in the order in which they happened, as those of a sequence are.
    follows: bool = False

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def nbytes(self) -> int:
        return int(self.offsets.nbytes + self.events.nbytes + self.variables.nbytes)

    @property
    def first(self) -> Ints:
        """The first event of each match."""
        return self.events[self.offsets[:-1]]

    @property
    def last(self) -> Ints:
        """The last event of each match."""
        return self.events[self.offsets[1:] - 1]

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
        return Matches(offsets, self.events[at], self.variables[at], later, self.follows)

    @staticmethod
    def of_rows(rows: npt.NDArray[np.signedinteger], variables: npt.NDArray[np.uint8]) -> Matches:
        """Matches of single events, given as [match, place]; `variables` says whose each place is."""
        size, length = rows.shape
        return Matches(
            np.arange(0, size * length + 1, max(length, 1), dtype=np.int64),
            rows.reshape(-1).astype(np.int64, copy=False),
            np.tile(variables, size),
        )

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
