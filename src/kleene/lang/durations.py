"""Units of time and their exact lengths in nanoseconds."""

from __future__ import annotations

_NANOSECOND = 1
_MICROSECOND = 1_000
_MILLISECOND = 1_000_000
_SECOND = 1_000_000_000
_MINUTE = 60 * _SECOND
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
_WEEK = 7 * _DAY

# Ticks and events are not lengths of time: a tick is one step of an integer time column, an event one position.
TICKS = "ticks"
EVENTS = "events"

_SPELLINGS: dict[str, tuple[str, int | None]] = {}


def _spell(unit: str, length: int | None, *spellings: str) -> None:
    for spelling in (unit, *spellings):
        _SPELLINGS[spelling] = (unit, length)


_spell("nanoseconds", _NANOSECOND, "nanosecond", "nanosec", "nanosecs", "ns")
_spell("microseconds", _MICROSECOND, "microsecond", "microsec", "microsecs", "us", "µs")
_spell("milliseconds", _MILLISECOND, "millisecond", "millisec", "millisecs", "msec", "msecs", "ms")
_spell("seconds", _SECOND, "second", "sec", "secs", "s")
_spell("minutes", _MINUTE, "minute", "min", "mins")
_spell("hours", _HOUR, "hour", "hr", "hrs", "h")
_spell("days", _DAY, "day", "d")
_spell("weeks", _WEEK, "week", "w")
_spell(TICKS, None, "tick", "unit", "units")
_spell(EVENTS, None, "event")


def unit_named(spelling: str) -> str | None:
    """The canonical unit of a spelling, in any case: `Secs` → `seconds`."""
    entry = _SPELLINGS.get(spelling.casefold())
    return entry[0] if entry else None


def nanoseconds_in(unit: str) -> int | None:
    """How long a canonical unit is; None for ticks and events."""
    return _SPELLINGS[unit][1]


def all_units() -> list[str]:
    return list(_SPELLINGS)
