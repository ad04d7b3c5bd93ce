"""The contract between a graph of queries and what runs one of them.

A runner takes in the events of its query and the composite events that it reads, and gives what is certain. `EngineRun`
runs a plan on executors, `ReferenceRun` asks the reference evaluator; the graph asks none of them what it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from kleene.composition.query_graph import Part
from kleene.engine.output.outputs import EngineOutputs
from kleene.engine.state.statistics import Alive
from kleene.kernels.expression import Ints
from kleene.plan.any_plan import AnyPlan


class QueryRunner(Protocol):
    """Runs one query of a graph."""

    # Events in, matches out

    def process(self, parts: Sequence[Part], watermark: int | None) -> EngineOutputs:
        """Take in events, and match those that the watermark has passed; None leaves the watermark where it was.

        `NotCompilable`, with the first events, where only the reference evaluator can run the query.
        """

    def finish(self, parts: Sequence[Part], threads: int = 1) -> EngineOutputs:
        """Take in the last of the input, which ends time: everything that waits is decided.

        threads   how many cores may be used; outputs do not depend on it
        """

    def replay(self, parts: Sequence[Part], watermark: int | None) -> EngineOutputs:
        """Take in events whose outputs an equal runner gave; they are given again where other queries read them."""

    # How it runs, and what it holds

    @property
    def plan(self) -> AnyPlan:
        """How it runs, as far as that is known before the first events."""

    @property
    def replays_by_update(self) -> bool:
        """Whether only the same batches and watermarks build an equal runner."""

    @property
    def horizon(self) -> int | None:
        """How far back from the watermark events must be kept to build an equal runner by `replay`; None: all."""

    @property
    def waiting(self) -> pa.Table | None:
        """The events that the watermark has not passed; None when no event was ever seen."""

    @property
    def deadline(self) -> int | None:
        """The first watermark at which an output could become certain without further events; None: there is none."""

    @property
    def expiry(self) -> int | None:
        """The watermark from which on no event held is needed, if no more events come; None: there is none."""

    @property
    def alive(self) -> Alive:
        """The events and runs held for open windows, and the waiting events."""

    @property
    def nbytes(self) -> int:
        """The bytes held in memory now."""

    @property
    def dropped(self) -> int:
        """How many matches and partial matches over a budget were dropped so far."""

    @property
    def counts(self) -> Ints | None:
        """Of an event automaton: how far instances came at each state, and its results; None elsewhere."""

    def snapshot(self) -> bytes:
        """The state from which another process can continue."""
