"""Kernels of automata are compiled once: `kleene warm` keeps them for every input, whoever owns its memory."""

from __future__ import annotations

import pyarrow as pa
import pytest

import kleene
from kleene.kernels.interpreting import Kernel
from kleene.kernels.shared_streams import advance_shared
from kleene.kernels.streams import advance
from kleene.pattern.schema import Schema
from kleene.query_set import QuerySet

EVENTS = pa.table(
    {
        "type": ["A"] * 6,
        "ts": [1, 2, 3, 4, 5, 6],
        "began": [0, 1, 2, 3, 4, 5],
        "seq": [0, 1, 0, 1, 0, 1],
        "x": [1, 2, 3, 4, 5, 6],
    }
)
SCHEMAS = (
    Schema(),
    Schema(start="began"),
    Schema(tie_breaker="seq"),
    Schema(start="began", tie_breaker="seq"),
)
TEXT = "σ{a.x > 1}(A a) ;{b.x > a.x AND DUR <= 4} A b"


@pytest.mark.parametrize("kernel", [advance, advance_shared])
def test_a_kernel_has_one_signature(kernel: object) -> None:
    """Rows as Arrow has them and rows that were sorted, which are copies; with a start, with a tie-breaker."""
    shuffled = EVENTS.take(pa.array([3, 0, 5, 1, 4, 2]))
    for schema in SCHEMAS:
        for table in (EVENTS, shuffled, pa.concat_tables([EVENTS.slice(0, 2), EVENTS.slice(2)])):
            if kernel is advance:
                kleene.match(table, TEXT, schema=schema)
                continue
            rules = QuerySet(table, schema=schema)
            rules.add(TEXT, name="stream")
            rules.add("PATTERN SEQ(A a, A b) WHERE a.x > 1 WITHIN 4", name="line")
            rules.match(table)
            rules.process(table, 4)
            rules.finish()
    assert isinstance(kernel, Kernel)
    assert len(kernel.dispatcher.signatures) == 1
