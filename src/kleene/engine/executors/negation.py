"""The events of a negated class that an engine holds, and the matches that they forbid."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kleene.engine.executors.windows import within
from kleene.engine.state.growing import Growing
from kleene.kernels.expression import EventColumns, EventTest, Groups, Ints, ProgramScope, Stack, Texts
from kleene.kernels.negation import EventsByKey, Gaps, forbidden
from kleene.kernels.timeline import Timeline
from kleene.pattern.clock import Window

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class CandidateMatches:
    """Complete matches, as conditions on a negated event see them."""

    # [match, slot]
    bindings: Ints
    groups: Groups
    group: Ints
    # [match]: the right of the left neighbour, before which step a negated event must end, first and last event.
    floors: Ints
    ceilings: Ints
    first: Ints
    last: Ints


class NegatedEvents:
    """Events of one negated class, in order."""

    def __init__(self, test: EventTest, stack: Stack, *, keyed: bool) -> None:
        self._test, self._stack, self._keyed = test, stack, keyed
        self._events = Growing(np.zeros(0, np.int64))

    def append(self, events: Ints) -> None:
        if len(events):
            self._events.append(events)

    @property
    def nbytes(self) -> int:
        return self._events.nbytes

    def forbid(
        self,
        suspects: CandidateMatches,
        window: Window | None,
        time: Timeline,
        keys: int,
        events: EventColumns,
        texts: Texts,
    ) -> Flags:
        """Which of the matches a negated event forbids."""
        out = np.zeros(len(suspects.first), np.bool_)
        others = self._events.used
        if not len(others) or not len(out):
            return out
        match_keys = np.zeros(len(out), np.int64)
        begin = np.array([0, len(others)], np.int64)
        if self._keyed:
            of_key = time.keys[others]
            others, of_key = others[of_key >= 0], of_key[of_key >= 0]
            order = np.argsort(of_key, kind="stable")
            begin = np.searchsorted(of_key[order], np.arange(keys + 1))
            others, match_keys = others[order], time.keys[suspects.first]
        gaps = Gaps(match_keys, suspects.floors, suspects.ceilings, suspects.first, suspects.last, within(window))
        negated = EventsByKey(begin.astype(np.int64), np.ascontiguousarray(others))
        scope = ProgramScope(events, texts, suspects.bindings, suspects.groups, self._stack)
        forbidden(gaps, negated, time, self._test, scope, suspects.group, out)
        return out
