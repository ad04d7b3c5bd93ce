"""The outputs of one step of an engine."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from kleene.engine.state.statistics import NOTHING_COUNTED, BatchCounts
from kleene.frames.rows import BadRow


@dataclass(frozen=True)
class EngineOutputs:
    """What one call of `process` or `finish` gave; None where a query has no such output, or no event has come yet."""

    matches: pa.Table | None = None
    timeouts: pa.Table | None = None
    # Matches of events that completed too many, under the policy that emits these compressed.
    compressed: pa.Table | None = None
    late: pa.Table | None = None
    bad: list[BadRow] = field(default_factory=list)
    statistics: BatchCounts = NOTHING_COUNTED
