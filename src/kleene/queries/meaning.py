"""What a kept state assumes of its events and its output, so that it is not read with another meaning.

The digest of a query names its matches, so it says nothing of the columns: the same text with another tick, another
time column or other types finds other matches in the same bytes. What is here is kept beside the digest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeGuard

from kleene.pattern.clock import Clock, ClockKind
from kleene.pattern.types import ValueType
from kleene.queries.any_query import AnyBoundQuery

_SECOND = 1_000_000_000
# How a role of a column is called in a message.
_ROLES = {"time": "time column", "start": "start column", "tie_breaker": "tie-breaker", "type": "type column"}
_NOT_KNOWN = (ValueType.UNKNOWN, ValueType.NULL)


def meaning_of(query: AnyBoundQuery) -> dict[str, Any]:
    """The roles of columns, how time is counted, the types of the columns, and the output, as plain values."""
    schema = query.schema
    columns = schema.columns or {}
    meaning: dict[str, Any] = {
        **{role: getattr(schema, role) for role in _ROLES},
        "constant_type": schema.constant_type,
        "output": query.output.value,
        "columns": {
            name: columns[name].value
            for name in query.columns_compared(columns)
            if name in columns and columns[name] not in _NOT_KNOWN
        },
    }
    step = _step(schema.clock)
    return meaning if step is None else {**meaning, "step": step}


def is_meaning(value: object) -> bool:
    """Whether a value that was kept has the form of a meaning."""
    if not isinstance(value, dict) or not isinstance(columns := value.get("columns", {}), dict):
        return False
    texts = [said for name, said in value.items() if name != "columns"]
    return all(said is None or isinstance(said, str) for said in texts) and _all_texts(columns.values())


def _all_texts(values: Iterable[object]) -> bool:
    return all(isinstance(value, str) for value in values)


def is_whole(value: object) -> TypeGuard[int]:
    """Whether a value that was kept is an integer of 64 bits; JSON has longer ones, and truths are no numbers."""
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def first_change(before: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """The first difference that matters, as a sentence; None: there is none.

    Columns may be added. Entries that only one of the two has, such as state of an older Kleene, are not compared.
    """
    return next(_changes(before, now), None)


def _changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    both = before.keys() & now.keys()
    for role in (role for role in _ROLES if role in both and before[role] != now[role]):
        yield _said(_ROLES[role], before[role], now[role])
    if "constant_type" in both and before["constant_type"] != now["constant_type"]:
        yield _said("one type of all events", before["constant_type"], now["constant_type"])
    if "step" in both and before["step"] != now["step"]:
        yield f"time is counted in {now['step']}, and was in {before['step']}"
    if "output" in both and before["output"] != now["output"]:
        yield f"the output is {now['output']}, and was {before['output']}"
    columns = now.get("columns", {})
    for name, kind in before.get("columns", {}).items():
        if columns and name not in columns:
            yield f"there is no column `{name}` of type {kind}, and there was one"
        elif columns and columns[name] != kind:
            yield f"column `{name}` holds values of type {columns[name]}, and held {kind}"


def _said(role: str, before: str | None, now: str | None) -> str:
    is_now = f"there is no {role}" if now is None else f"the {role} is `{now}`"
    return f"{is_now}, and there was none" if before is None else f"{is_now}, and it was `{before}`"


def _step(clock: Clock) -> str | None:
    """What one step of the time column is; None when that is not known yet."""
    if clock.kind is ClockKind.UNKNOWN:
        return None
    unit = "ticks" if clock.kind is ClockKind.TICKS else "timestamps"
    length = clock.nanoseconds
    if length is None:
        return unit
    return f"{unit} of {length / _SECOND} s" if length % _SECOND == 0 else f"{unit} of {length} ns"
