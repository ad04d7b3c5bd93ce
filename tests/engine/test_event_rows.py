"""Rows that are let go while others stay where they are, and events that a watermark has passed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from kleene.engine.intake.arrivals import Arrivals
from kleene.engine.state import event_rows
from kleene.engine.state.event_rows import EventRows
from kleene.pattern.schema import Schema


def _tables(draw: np.random.Generator) -> pa.Table:
    sizes = draw.integers(1, 40, draw.integers(1, 8))
    return pa.concat_tables(
        pa.table({"number": draw.integers(0, 1000, size), "text": list(map(str, draw.integers(0, 99, size)))})
        for size in sizes
    )


@pytest.mark.parametrize("seed", range(50))
def test_rows_are_the_same_without_unused_ones(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_rows, "_SHORT", 4)
    draw = np.random.default_rng(seed)
    table = _tables(draw)
    places = draw.permutation(table.num_rows)
    places = places[places >= draw.random() * table.num_rows]
    lighter = EventRows(table, places).without_unused()
    assert lighter.table.equals(EventRows(table, places).table)


def test_only_pieces_that_are_used_by_less_than_half_are_copied() -> None:
    size = event_rows._SHORT
    old, middle, new = (pa.table({"number": np.arange(size) + first}) for first in (0, size, 2 * size))
    places = np.arange(size + 3 * size // 4, 3 * size)
    lighter = EventRows(pa.concat_tables([old, middle, new]), places).without_unused()
    column = lighter.base.column("number")
    assert lighter.base.num_rows == size + size // 4
    held = {chunk.buffers()[1].address for chunk in column.chunks if len(chunk)}
    assert new.column("number").chunk(0).buffers()[1].address in held
    assert middle.column("number").chunk(0).buffers()[1].address not in held
    assert lighter.table.column("number").to_pylist() == places.tolist()


@pytest.mark.parametrize("times", [[1, 2, 3, 9], [9, 1, 2, 9, 3], [9, 9], [1, 2], [1, 9] * 40])
def test_events_that_a_watermark_has_passed_leave_in_their_order(times: list[int]) -> None:
    arrivals = Arrivals(Schema(constant_type="A", time="ts"))
    arrivals.add(pa.table({"ts": times, "row": list(range(len(times)))}))
    settled = arrivals.settled(5)
    assert settled is not None
    assert arrivals.waiting is not None
    assert settled.column("row").to_pylist() == [row for row, time in enumerate(times) if time < 5]
    assert arrivals.waiting.column("row").to_pylist() == [row for row, time in enumerate(times) if time >= 5]
