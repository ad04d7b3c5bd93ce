"""Matches as walks write them: the events of each variable by itself, so that lists of results are not copied."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from kleene.engine.executors.automaton import AutomatonExecutor
from kleene.engine.output.matches import Matches, Variables
from kleene.engine.state.memory import empty
from kleene.kernels.expression import Ints
from kleene.kernels.gathering import Rows
from kleene.kernels.paths import FIRST_EVENT, LAST_EVENT, OF_VARIABLES, Flat, Paths, flatten
from kleene.pattern.nodes import ComponentKind


@dataclass(frozen=True, eq=False)
class StatePlaces:
    """Where the events of each state of an automaton stand in `Paths`."""

    # [state]: the row of a single variable in `Paths.singles`, or −1 − that of a list in `Paths.sizes`.
    places: Ints
    # [state]: the variable of the query.
    variables: Variables
    # How many rows `Paths.singles` and `Paths.sizes` have.
    rows: int
    lists: int

    @staticmethod
    def of(executor: AutomatonExecutor) -> StatePlaces:
        single = [state.component.kind is ComponentKind.SINGLE for state in executor.plan.states]
        rows, lists = OF_VARIABLES, 0
        places = []
        for each in single:
            places.append(rows if each else -1 - lists)
            rows, lists = rows + each, lists + (not each)
        return StatePlaces(np.array(places, np.int64), executor.variables, rows, lists if lists > 1 else 0)


class PathMatches(Matches):
    """Matches by variable; flat arrays are made of them where somebody asks."""

    def __init__(self, paths: Paths, size: int, states: StatePlaces) -> None:
        self.paths, self.states, self._size = paths, states, size
        self.later, self.follows = None, True

    def __len__(self) -> int:
        return self._size

    @property
    def list_offsets(self) -> Ints:
        """[match + 1]: where the members of its lists begin."""
        return self.paths.offsets[: self._size + 1]

    @property
    def singles(self) -> npt.NDArray[np.int32]:
        return self.paths.singles[:, : self._size]

    @property
    def first(self) -> Rows:
        first: Rows = self.singles[FIRST_EVENT]
        return first

    @property
    def last(self) -> Rows:
        last: Rows = self.singles[LAST_EVENT]
        return last

    @property
    def number(self) -> int:
        return int(self.list_offsets[-1]) + int(np.count_nonzero(self.singles[OF_VARIABLES:] >= 0))

    @property
    def nbytes(self) -> int:
        return sum(int(array.nbytes) for array in self.paths)

    @property
    def single_list(self) -> int | None:
        """The variable whose list stands in the members, where no other one does."""
        (kleene,) = np.nonzero(self.states.places < 0)
        return int(self.states.variables[kleene[0]]) if len(kleene) == 1 else None

    @cached_property
    def offsets(self) -> Ints:
        present = np.count_nonzero(self.singles[OF_VARIABLES:] >= 0, axis=0)
        before = np.zeros(self._size + 1, np.int64)
        np.cumsum(present, out=before[1:])
        return self.list_offsets + before

    @cached_property
    def _flat(self) -> Flat:
        offsets = self.offsets
        flat = Flat(offsets, empty(int(offsets[-1]), np.int64), empty(int(offsets[-1]), np.uint8))
        flatten(self.paths, self.states.places, self.states.variables, flat)
        return flat

    @property
    def events(self) -> Ints:
        return self._flat.events

    @property
    def variables(self) -> Variables:
        return self._flat.kinds
