"""States of slots that no slot wrote, with right checksums; each is opened, and where it is taken the slot goes on."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from functools import cache
from unittest import mock

import pyarrow as pa
from tests.engine.agreement import STRATA
from tests.engine.forging import forged as forged_snapshot
from tests.engine.forging import other_bytes, other_json, other_table, packed_badly, written
from tests.spark.streaming.driving import Slot, Store
from tests.spark.streaming.test_slots_agree import drawn_from

from kleene.engine.intake.timeline import integers
from kleene.errors import KleeneError
from kleene.pattern.query import BoundQuery
from kleene.plan.settings import Settings
from kleene.spark.streaming import live_slot, segments
from kleene.spark.worker import work_from

PLACES = 40
Parts = dict[tuple[str, int, int], bytes]


class LenientStore(Store):
    """As Spark's: what is not there may be dropped, and what is there written again."""

    def deleteTimer(self, milliseconds: int) -> None:  # noqa: N802
        self.timers.discard(milliseconds)

    def getMapState(self, name: str, key: object, value: object) -> object:  # type: ignore[override]  # noqa: N802
        kept = super().getMapState(name, key, value)
        kept.updateValue = lambda key, value: self.parts.__setitem__(key, value[0])  # type: ignore[method-assign]
        return kept


@dataclass(frozen=True)
class Genuine:
    slot: Slot
    page: bytes
    parts: Parts
    rest: pa.Table
    watermark: int


@cache
def genuine(place: int) -> Genuine | None:
    """A slot as it is kept half-way, and the events that come after it."""
    draw = random.Random(f"forged slots {place}")
    settings = Settings()
    drawn = drawn_from(draw, list(STRATA)[place % len(STRATA)], settings, Counter())
    if drawn is None:
        return None
    slot = Slot([drawn.query], drawn.schema, drawn.table.schema, settings=settings)
    table = drawn.table.take(pa.array(sorted(range(drawn.table.num_rows), key=drawn.times.__getitem__), pa.int64()))
    cut, size = max(1, table.num_rows * 2 // 3), max(1, table.num_rows // 4)
    now = 0
    with mock.patch.object(live_slot, "_LEAST_LOG", draw.choice([0, 1 << 18])):
        for begin in range(0, cut, size):
            rows = table.slice(begin, min(size, cut - begin))
            slot.batch(rows, now)
            now = max(now, int(integers(rows.column(drawn.schema.time)).max()) - 3)
    assert slot.store.page is not None
    return Genuine(slot, slot.store.page, dict(slot.store.parts), table.slice(cut), now)


def tried(seed: int) -> str:
    """What became of one forged state of a slot."""
    draw = random.Random(f"forged slot {seed}")
    while (chosen := genuine(draw.randrange(PLACES))) is None:
        pass
    kind, page, parts = "", chosen.page, chosen.parts
    while (page, parts) == (chosen.page, chosen.parts):
        kind, page, parts = _forged(chosen, draw)
    slot = chosen.slot
    store = LenientStore()
    store.page, store.parts = page, parts
    slot.store = store
    for worker in slot.at:
        worker.forget_all()
    try:
        store.begin()
        list(slot._attempt(slot.at[0], chosen.rest, chosen.watermark, stops=False))
    except KleeneError as refusal:
        return f"slot, {kind}: refused by {refusal.code}"
    try:
        list(slot._attempt(slot.at[0], chosen.rest.slice(0, 1), chosen.watermark + 1000, stops=False))
    except KleeneError as refusal:
        return f"slot, {kind}: taken, then {refusal.code}"
    return f"slot, {kind}: taken"


def _forged(chosen: Genuine, draw: random.Random) -> tuple[str, bytes, Parts]:
    key = draw.choice([None, *chosen.parts])
    if key is None:
        return "page", segments._sealed(_other(chosen.page, draw)), chosen.parts
    kind, number, piece = key
    parts = dict(chosen.parts)
    if draw.random() < 0.15:
        data = parts.pop(key)
        if draw.random() < 0.5:
            parts[kind, number + draw.choice([-(2**40), -1, 1, 100, 2**40]), piece + draw.choice([0, 0, 1])] = data
        return f"{kind} elsewhere", chosen.page, parts
    data = parts[key]
    if kind == live_slot.MEANING:
        parts[key] = segments._sealed(_other(data, draw))
    elif kind == live_slot.SNAPSHOT and data.startswith(b"KLEENE"):
        work = work_from(chosen.slot.told)
        nodes = {node.number: node for node in work.graph_of(work.parts[0]).nodes}
        runs = nodes[number].runs
        assert isinstance(runs, BoundQuery)
        parts[key] = forged_snapshot(data, runs, draw)[1]
    elif kind == live_slot.SNAPSHOT:
        parts[key] = other_bytes(data, draw)
    else:
        parts[key] = segments._sealed(_other_events(data, draw))
    return kind, chosen.page, parts


def _other(data: bytes, draw: random.Random) -> bytes:
    body = segments._unsealed(data).to_pybytes()
    return other_bytes(body, draw) if draw.random() < 0.2 else other_json(body, draw)


def _other_events(data: bytes, draw: random.Random) -> bytes:
    kind = draw.choice(["bytes", "values", "columns", "rows", "packed"])
    if kind == "bytes":
        return other_bytes(segments._unsealed(data).to_pybytes(), draw)
    rows = segments.read_segment(data)
    if kind == "packed":
        return packed_badly(rows, draw)
    return written(other_table(rows, kind, draw), "zstd")
