"""Graphs of queries, run piece by piece: as the reference does at once, whatever the pieces and the restarts."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from tests.composition.piecewise import check_pieces
from tests.engine.agreement import SETTINGS
from tests.engine.feeding import READER, Listed, feeding_pair, late_pair, unrelated_list
from tests.soaking import least, rounds

# Of every so many one, outside `make soak`.
SHARE = 50

Record = Callable[[str, object], None]
Draw = Callable[[random.Random], Listed | None]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "drawn", "number"),
    [("feeding", feeding_pair, 1000), ("late", late_pair, 500), ("unrelated", unrelated_list, 160)],
)
def test_pieces_agree_with_the_reference(kind: str, drawn: Draw, number: int, record_property: Record) -> None:
    compared = matched = by_snapshot = by_replay = 0
    for seed in range(rounds(number, SHARE)):
        draw = random.Random(f"pieces {kind} {seed}")
        listed = drawn(draw)
        if listed is None:
            continue
        run = check_pieces(listed, SETTINGS[seed % len(SETTINGS)], draw)
        if run is None:
            continue
        compared += 1
        matched += listed.matched(READER) if kind != "unrelated" else listed.expected.matches.num_rows > 0
        by_snapshot += run.by_snapshot
        by_replay += run.by_replay
    said = f"{compared} pairs, {matched} with matches, {by_snapshot} restarts from snapshots, {by_replay} by replay"
    record_property("counted", f"graphs in pieces = reference: {kind}: {said}")
    assert compared >= least(number // 2, SHARE)
    assert matched >= least(number // 12, SHARE)
