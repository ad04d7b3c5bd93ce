"""The streams that judge sequences beside peers (G1): W1 by the values of its key, W4, and W1 without a key."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from bench.workloads import Sequence, bystanders, sase, sequence

VALUES = (100, 1_000, 10_000)
KEYLESS_WINDOW = 200


@dataclass(frozen=True)
class SequenceInput:
    """A stream with the sequence that is asked of it."""

    name: str
    table: pa.Table
    sequence: Sequence


def inputs(events: int, seed: int) -> Iterator[SequenceInput]:
    """One after the other, so that only one is in memory."""
    for values in VALUES:
        yield keyed(events, values, seed)
    table, few = bystanders(events, seed)
    yield SequenceInput("W4", table, few)
    yield SequenceInput("no key", sase(events, VALUES[-1], seed), sequence(window=KEYLESS_WINDOW, keys=()))


def keyed(events: int, values: int, seed: int) -> SequenceInput:
    return SequenceInput(f"W1 V={values:,}", sase(events, values, seed), sequence())
