"""A morning's events and what is asked of them, in process and on any session; imports nothing of the tests."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa

import kleene
from kleene.plan.settings import Exchange, Settings

# The clocks of New York go from 2:00 to 3:00 half an hour later: a local clock would put an hour between neighbours.
BEGIN = datetime(2026, 3, 8, 6, 30, tzinfo=UTC)
MINUTE = 60_000_000

QUERIES: Mapping[str, str] = {
    "by key": "PATTERN SEQ(A a, !(C c), B b) WHERE [id] WITHIN 20 minutes",
    "linked": "PATTERN SEQ(A a, B b) WHERE a.v = b.v WITHIN 2 minutes",
    "sliced": "PATTERN SEQ(A a, B b) WITHIN 2 minutes OUTPUT NON_OVERLAP",
    "by number": "PATTERN SEQ(A a, B b) WITHIN 3 EVENTS",
    "closure": "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match { [id] AND a[i].v >= a[i-1].v } WITHIN 20 minutes",
    "since": "PATTERN SEQ(A a, B b) WHERE [id] AND a.ts >= TIMESTAMP '2026-03-08T07:10:00{zone}' WITHIN 20 minutes",
    "late": "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 2 minutes TIMEOUTS INTO Late",
    "shared": "PATTERN SEQ(A+ a[], B b) WHERE [id] WITHIN 10 minutes OUTPUT COMPRESSED",
}
# Those whose answers a clock, a time zone or the kind of times could change.
OF_TIME = ("sliced", "since", "late")
# Several slices, though there are few events.
SETTINGS = Settings(exchange=Exchange(slice_width=10 * MINUTE))


def morning(*, zoned: bool) -> pa.Table:
    """Events of two hours, some at the same time, some without a key, and two rows that are none."""
    chance = random.Random(5)
    rows: list[dict[str, Any]] = []
    for number in range(240):
        at = BEGIN + timedelta(seconds=30 * number - chance.choice([0, 30]))
        rows.append(
            {
                "type": chance.choice("ABC"),
                "ts": None if number in (50, 60) else at if zoned else at.replace(tzinfo=None),
                "id": chance.choice([None, *range(7)]),
                "v": chance.randrange(4),
            }
        )
    kind = pa.timestamp("us", "UTC") if zoned else pa.timestamp("us")
    columns = pa.schema([("type", pa.string()), ("ts", kind), ("id", pa.int64()), ("v", pa.int32())])
    return pa.Table.from_pylist(rows, columns)


def text(name: str, *, zoned: bool) -> str:
    return QUERIES[name].replace("{zone}", "+00:00" if zoned else "")


def answers(events: Any, *, zoned: bool, names: Iterable[str] = QUERIES) -> dict[str, Any]:
    """Everything that is public on a table or a data frame, in a form that is the same for both, and JSON.

    names   of which queries; `by key` stands for several in one run, too
    """
    found: dict[str, Any] = {}
    for name in names:
        outputs = kleene.outputs(events, text(name, zoned=zoned), settings=SETTINGS)
        found[name] = plain(outputs.matches)
        if name == "late":
            found["timeouts"] = plain(outputs.timeouts)
            found["bad rows"] = sorted(row["reason"] for row in rows_of(outputs.bad_rows))
        if name == "by key":
            found["flat"] = plain(kleene.flat(outputs.matches))
        if name == "shared":
            found["decompressed"] = sorted(_plain(row) for row in kleene.decompress(outputs.matches))
    if "by key" not in found:
        return found
    several = kleene.match(events, [kleene.query(text(name, zoned=zoned), name=name) for name in ("by key", "linked")])
    found["several"] = plain(
        several.select("query", "match_id")
        if hasattr(several, "sparkSession")
        else several.select(["query", "match_id"])
    )
    return found


def plain(result: Any) -> list[str]:
    return sorted(_plain(row) for row in rows_of(result))


def rows_of(result: Any) -> list[dict[str, Any]]:
    table: pa.Table = result if isinstance(result, pa.Table) else result.toArrow()
    found: list[dict[str, Any]] = table.to_pylist()
    return found


def _plain(value: Any) -> str:
    """A value as text: a moment as it is in UTC, whatever the zone that it came in."""
    if isinstance(value, datetime):
        return (value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)).isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping) or hasattr(value, "asDict"):
        named = value if isinstance(value, Mapping) else value.asDict()
        return "{" + ", ".join(f"{name}: {_plain(one)}" for name, one in named.items()) + "}"
    return "[" + ", ".join(map(_plain, value)) + "]" if isinstance(value, list | tuple) else repr(value)
