"""Time: integer ticks or timestamps, and windows converted to them exactly."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from fractions import Fraction
from math import ceil, floor

from kleene.errors import BadDuration, BadLiteral, BadParameter, QueryError, Span, WindowMismatch
from kleene.lang import parse_duration, tree
from kleene.lang.durations import EVENTS, TICKS, nanoseconds_in
from kleene.pattern.secrets import is_secret

# Times are signed 64-bit integers; a window that reaches further closes with them.
LATEST = 2**63 - 1


class ClockKind(Enum):
    TICKS = "integer ticks"
    TIMESTAMP = "timestamps"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Clock:
    """What one step of the time column is: nanoseconds a step, where that is known.

    Timestamps of unknown resolution count nanoseconds; ticks of unknown length are only ticks.
    """

    kind: ClockKind = ClockKind.UNKNOWN
    nanoseconds: Fraction | None = None
    zoned: bool = False

    def describe(self) -> str:
        if self.kind is ClockKind.TICKS:
            return "integer ticks" if self.nanoseconds is None else f"ticks of {self.nanoseconds} ns"
        return str(self.kind.value)


@dataclass(frozen=True, slots=True)
class Window:
    """`end − start < size` in steps of the clock, or in positions; `<=` when inclusive."""

    size: int
    inclusive: bool
    events: bool

    def holds(self, distance: int) -> bool:
        return distance <= self.size if self.inclusive else distance < self.size


def bind_window(within: tree.Within, clock: Clock, params: dict[str, object]) -> Window:
    """The WITHIN clause in steps of the clock, rounded so that no comparison of whole steps changes."""
    total, unit = _total(within.duration, params)
    if total < 0 or (total == 0 and not within.inclusive):
        raise BadDuration("a window must be longer than nothing", within.span)
    if unit == EVENTS:
        if total.denominator != 1:
            raise BadDuration("a number of events must be whole", within.span)
        return _window(total.numerator, within, events=True)
    steps = _steps(total, unit, clock, within.span)
    return _window(floor(steps) if within.inclusive else ceil(steps), within, events=False)


def _window(size: int, within: tree.Within, *, events: bool) -> Window:
    if size > LATEST:
        kind = "events" if events else "steps of the time column"
        raise BadDuration(
            f"a window holds at most 2^63 - 1 {kind}",
            within.span,
            hint="leave WITHIN out for matches of any length",
        )
    return Window(size, within.inclusive, events=events)


def duration_nanoseconds(duration: tree.Duration) -> int:
    """A duration in a condition."""
    total, unit = _total(duration, {})
    if unit == EVENTS:
        raise BadDuration(
            "a number of events is no value", duration.span, hint="`WITHIN 5 EVENTS` is where it can stand"
        )
    if total.denominator != 1:
        raise BadDuration("this duration is no whole number of nanoseconds", duration.span)
    return total.numerator


def duration_in_steps(text: str, clock: Clock) -> Fraction:
    """A length of time, such as `10 seconds`, in steps of the clock."""
    duration = parse_duration(text)
    total, unit = _total(duration, {})
    if unit == EVENTS:
        raise BadDuration("a number of events is no length of time", duration.span)
    return _steps(total, unit, clock, duration.span)


def in_ticks(nanoseconds: int, clock: Clock, span: Span) -> int:
    """A duration as a number of ticks, to be compared with a difference of integer times."""
    steps = _steps(Fraction(nanoseconds), "nanoseconds", clock, span)
    if steps.denominator != 1:
        raise BadDuration("this duration is no whole number of ticks", span)
    return steps.numerator


def tick_length(text: str | tree.Duration) -> Fraction:
    """How many nanoseconds a declared tick is."""
    duration = parse_duration(text) if isinstance(text, str) else text
    total, unit = _total(duration, {})
    if unit in (TICKS, EVENTS) or total <= 0:
        raise BadDuration("a tick is a length of time", duration.span, hint="for example `1 second`")
    return total


def _total(duration: tree.Duration, params: dict[str, object]) -> tuple[Fraction, str]:
    """The sum of the terms, in nanoseconds, ticks or events."""
    total, unit = Fraction(0), ""
    for term in duration.terms:
        amount, own_unit = _amount(term, params)
        length = nanoseconds_in(own_unit)
        term_unit = own_unit if length is None else "nanoseconds"
        if unit not in ("", term_unit):
            raise BadDuration("ticks, events and time cannot be added", duration.span)
        total, unit = total + amount * (length or 1), term_unit
    return total, unit


def _amount(term: tree.Quantity, params: dict[str, object]) -> tuple[Fraction, str]:
    if isinstance(term.amount, Fraction):
        return term.amount, term.unit
    name, span = term.amount.name, term.amount.span
    if name not in params:
        raise BadParameter(f"parameter `:{name}` has no value", span, hint=f"pass params={{'{name}': …}}")
    value = params[name]
    if isinstance(value, timedelta) and term.unit == TICKS:
        return Fraction(value // timedelta(microseconds=1) * 1000), "nanoseconds"
    if isinstance(value, str) and term.unit == TICKS:
        try:
            inner = parse_duration(value)
        except QueryError as error:
            shown = "" if is_secret(name) else f": {value!r}"
            raise BadParameter(f"parameter `:{name}` is no duration{shown}", span) from error
        return _total(inner, {})
    if isinstance(value, int | float) and not isinstance(value, bool) and value == value and abs(value) < 2**63:
        return Fraction(str(value)), term.unit
    raise BadParameter(f"parameter `:{name}` cannot be a duration", span, hint="a number, a timedelta or `12 hours`")


def _steps(total: Fraction, unit: str, clock: Clock, span: Span) -> Fraction:
    if clock.kind is ClockKind.UNKNOWN:
        return total
    if unit == TICKS:
        if clock.kind is ClockKind.TIMESTAMP:
            raise WindowMismatch("ticks mean nothing on a timestamp column", span, hint="name a unit: `200 msec`")
        return total
    if clock.nanoseconds is None and clock.kind is ClockKind.TIMESTAMP:
        return total
    if clock.nanoseconds is None:
        raise WindowMismatch(
            "the time column counts ticks of unknown length",
            span,
            hint="write ticks (`WITHIN 200`), or declare `DECLARE STREAM (tick 1 second)` or Schema(tick='1 second')",
        )
    return total / clock.nanoseconds


def timestamp_nanoseconds(text: str, span: Span) -> tuple[int, bool]:
    """Nanoseconds since 1970 of an ISO timestamp, and whether it names a zone."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise BadLiteral(
            f"`{text}` is no timestamp", span, hint="for example `TIMESTAMP '2024-01-31T12:00:00'`"
        ) from None
    zoned = moment.tzinfo is not None
    return datetime_nanoseconds(moment), zoned


def datetime_nanoseconds(moment: datetime) -> int:
    """Exact; a moment without a zone counts as if it were in UTC."""
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (aware - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000
