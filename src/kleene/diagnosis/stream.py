"""The events as an engine sees them before anything is matched: what each could be, and in what order they came."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from kleene.engine.engine_state import EngineState
from kleene.engine.intake.arrivals import Arrivals
from kleene.engine.intake.bits import Bits
from kleene.engine.intake.keys import KeyCoder
from kleene.engine.intake.row_types import row_types
from kleene.engine.intake.strings import StringPool
from kleene.engine.state.budget import Accounts
from kleene.engine.state.store import EventStore
from kleene.kernels.expression import Ints
from kleene.pattern.links import key_of
from kleene.pattern.query import BoundQuery
from kleene.plan.physical import Plan
from kleene.plan.settings import Settings

_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Came:
    """How many events could begin a component: those after the component before it, and those of them with its key."""

    after: int
    same_key: int


class DiagnosedStream:
    """The events of a diagnosed run, as arrays; computed only when the engine's counts leave a question open."""

    def __init__(self, query: BoundQuery, plan: Plan, table: pa.Table) -> None:
        self._query, self._plan, self._table = query, plan, table

    @cached_property
    def _events(self) -> pa.Table:
        """The rows that are events."""
        arrivals = Arrivals(self._query.schema)
        arrivals.add(self._table)
        return arrivals.settled(None)

    @cached_property
    def _seen(self) -> tuple[EventStore, list[Bits]]:
        """The events of the query's types, and by alternative what each could be, whether it has a key or not."""
        settings = Settings()
        state = EngineState(self._query, self._plan, settings, Accounts(settings.budget), self._table)
        arrived, _ = state.arrived(self._events, 0)
        state.store.append(arrived)
        everything = np.ones(len(arrived.step), np.bool_)
        return state.store, [executor.bits(arrived.columns, everything) for executor in state.executors]

    @property
    def _store(self) -> EventStore:
        return self._seen[0]

    @cached_property
    def types(self) -> list[str]:
        """The types that occur."""
        types = row_types(self._events, self._query.schema)
        numbers = types.numbers.tolist()
        return sorted({name for name, number in zip(types.names, numbers, strict=True) if number and name is not None})

    @cached_property
    def without_key(self) -> int:
        """Events that could be part of a match and lack the key."""
        if not key_of(self._query):
            return 0
        useful = np.zeros(self._store.size, np.bool_)
        for bits in self._seen[1]:
            useful |= (bits.begins | bits.takes) != 0
        return int(np.count_nonzero(useful & (self._keys < 0)))

    @cached_property
    def _keys(self) -> Ints:
        """[event]: the code of what all events of a match agree on, −1 where that is NULL."""
        codes = KeyCoder(key_of(self._query), StringPool()).codes(self._store.rows)
        return np.where(self._store.partition[: self._store.size] < 0, -1, codes)

    def begins(self, alternative: int, place: int) -> int:
        """Events that could begin a component, by themselves."""
        return int(np.count_nonzero(self._could(alternative, place) & (self._keys >= 0)))

    def _could(self, alternative: int, place: int) -> np.ndarray:
        mask: np.ndarray = (self._seen[1][alternative].begins >> place) & 1 == 1
        return mask

    def came(self, alternative: int, place: int) -> Came:
        """How many events came in order in the whole stream, and in their partition; the window is not considered."""
        keys = self._keys
        return Came(
            self._in_order(alternative, place, np.where(keys < 0, keys, 0)), self._in_order(alternative, place, keys)
        )

    def _in_order(self, alternative: int, place: int, keys: Ints) -> int:
        store = self._store
        lefts, rights = store.left[: store.size], store.right[: store.size]
        # [key]: the first step after which the next component may come.
        earliest = np.full(int(keys.max(initial=0)) + 1, -1, np.int64)
        events = np.zeros(0, np.int64)
        for each in range(place + 1):
            could = np.flatnonzero(self._could(alternative, each) & (keys >= 0))
            events = could[earliest[keys[could]] < lefts[could]]
            earliest = np.full(len(earliest), _NEVER)
            np.minimum.at(earliest, keys[events], rights[events])
        return len(events)
