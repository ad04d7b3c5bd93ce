"""A query on a table, each way in which its columns or its output may come to mean something else, and what is said."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

TEXT = "PATTERN SEQ(A a, B b) WHERE [id] AND b.v >= a.v WITHIN 10"
EVENTS = pa.table(
    {
        **{"type": ["A", "B", "A"], "ts": [1, 5, 6], "began": [0, 4, 5], "id": ["7", "7", "7"]},
        **{"v": [1, 2, 3], "number": [0, 1, 2]},
    }
)


@dataclass(frozen=True)
class Change:
    """What is different after a restart: the schema, the type of a column, the columns, or the text."""

    said: str
    before: dict[str, Any] = field(default_factory=dict)
    schema: dict[str, Any] = field(default_factory=dict)
    types: dict[str, pa.DataType] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    text: str = TEXT

    @property
    def events(self) -> pa.Table:
        fields = [one.with_type(self.types.get(one.name, one.type)) for one in EVENTS.schema]
        return EVENTS.cast(pa.schema(fields)).drop_columns(list(self.without))


CHANGES = {
    "time": Change("the time column is `number`, and it was `ts`", schema={"time": "number"}),
    "start": Change("the start column is `began`, and there was none", schema={"start": "began"}),
    "no start": Change("there is no start column, and it was `began`", before={"start": "began"}),
    "tie-breaker": Change("the tie-breaker is `number`, and there was none", schema={"tie_breaker": "number"}),
    "another tie-breaker": Change(
        "the tie-breaker is `v`, and it was `number`", before={"tie_breaker": "number"}, schema={"tie_breaker": "v"}
    ),
    "type": Change("the type column is `id`, and it was `type`", schema={"type": "id"}),
    "tick": Change(
        "time is counted in ticks of 60 s, and was in ticks of 1 s",
        before={"tick": "1 second"},
        schema={"tick": "1 minute"},
    ),
    "a tick at all": Change("time is counted in ticks of 1000000 ns, and was in ticks", schema={"tick": "1 ms"}),
    "column type": Change("column `v` holds values of type float, and held int", types={"v": pa.float64()}),
    "key type": Change("column `id` holds values of type int, and held string", types={"id": pa.int64()}),
    "column gone": Change("there is no column `number` of type int, and there was one", without=("number",)),
    "output": Change("the output is COMPRESSED, and was ALL", text=f"{TEXT} OUTPUT COMPRESSED"),
}
# What may be different: a tick of the same length, a wider integer, a column that was not there.
NO_CHANGES = {
    "tick": Change("", before={"tick": "1 minute"}, schema={"tick": "60 seconds"}),
    "wider": Change("", types={"v": pa.int32(), "number": pa.int16()}),
}
