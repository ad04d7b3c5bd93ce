"""One query of a graph on an engine, which takes in all parts of its input as one table."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from kleene.composition.query_graph import Part, QueryNode
from kleene.engine.any_engine import engine_for
from kleene.engine.output.outputs import EngineOutputs
from kleene.engine.state.statistics import Alive
from kleene.engine.streams.engine import StreamEngine
from kleene.kernels.expression import Ints
from kleene.plan.any_plan import AnyPlan
from kleene.plan.settings import Settings


class EngineRun:
    def __init__(self, node: QueryNode, settings: Settings, snapshot: bytes | None = None) -> None:
        """A run that has seen nothing, or that goes on where a snapshot was taken."""
        self._node = node
        self._engine = engine_for(node.runs, settings, snapshot)

    def process(self, parts: Sequence[Part], watermark: int | None) -> EngineOutputs:
        return self._engine.process(self._node.one_table(parts), watermark)

    def finish(self, parts: Sequence[Part], threads: int = 1) -> EngineOutputs:
        return self._engine.finish(self._node.one_table(parts), threads=threads)

    def replay(self, parts: Sequence[Part], watermark: int | None) -> EngineOutputs:
        return self._engine.replay(self._node.one_table(parts), watermark, gives=self._node.read)

    @property
    def plan(self) -> AnyPlan:
        return self._engine.plan

    @property
    def replays_by_update(self) -> bool:
        return self._engine.replays_by_update

    @property
    def horizon(self) -> int | None:
        return self._engine.horizon

    @property
    def waiting(self) -> pa.Table | None:
        return self._engine.waiting

    @property
    def deadline(self) -> int | None:
        return self._engine.deadline

    @property
    def expiry(self) -> int | None:
        return self._engine.expiry

    @property
    def alive(self) -> Alive:
        return self._engine.alive

    @property
    def nbytes(self) -> int:
        return self._engine.nbytes

    @property
    def dropped(self) -> int:
        return self._engine.dropped

    @property
    def counts(self) -> Ints | None:
        return self._engine.counts if isinstance(self._engine, StreamEngine) else None

    def snapshot(self) -> bytes:
        return self._engine.snapshot()
