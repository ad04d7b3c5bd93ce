"""What a kept state must be before an engine goes on with it: the contract of snapshots, in one place.

A checksum tells that a snapshot is whole, not that an engine wrote it, and kernels index memory by what they are given.
So every table is held against what an engine of this query keeps: the columns and their types, no NULL where there is
none, numbers that can have been counted, and an order that events can have. Columns are looked at as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kleene.engine.intake.columns import columns_read
from kleene.engine.intake.counting import counts_all, counts_by_step, keeps_past
from kleene.engine.intake.timeline import integers
from kleene.engine.state.snapshots import HeldEvents, Snapshot
from kleene.engine.state.store import kept_numbers
from kleene.errors import BadSnapshot
from kleene.frames.arrow import is_time, value_type
from kleene.frames.numbers import to_numpy
from kleene.kernels.expression import Ints
from kleene.kernels.keys import AHEAD, BARRIER, BEFORE, COUNT, COUNTED, NEVER, STEP
from kleene.pattern.alternatives import MAX_ALTERNATIVES
from kleene.pattern.query import BoundQuery
from kleene.pattern.schema import Schema
from kleene.pattern.types import ValueType

_HINT = "take another snapshot; if Kleene wrote this one, report it"
_UNTOLD = (ValueType.UNKNOWN, ValueType.NULL)
_LEAST, _GREATEST = -(2**63), 2**63 - 1


def count_columns() -> list[str]:
    """The columns of numbers that say how far the partition of an event was counted, by what they count."""
    return [f"count_{place}" for place in range(COUNTED)]


def drop_columns(place: int) -> tuple[str, str]:
    """The columns of numbers that say where a budget made the executor with this number drop runs (`Drops`)."""
    return f"drop_start_{place}", f"drop_number_{place}"


def key_columns(partition: Iterable[str]) -> list[str]:
    """The columns of a past that hold the keys of its events."""
    return [f"key_{place}" for place, _ in enumerate(partition)]


# Events ------------------------------------------------------------------------------------------------------------


def check_events(
    rows: pa.Table,
    schema: Schema,
    what: str,
    *,
    named: Iterable[str] = (),
    typed: Iterable[str] = (),
    earliest: int | None = None,
) -> None:
    """Refuse rows that an engine would not have taken in as events.

    named      columns that must be there besides those that say when an event is and of what type
    typed      columns that must have the type that the schema says; others nobody reads
    earliest   where no event ends before it
    """
    own = [schema.time, schema.start, schema.tie_breaker, schema.type if schema.constant_type is None else None]
    needed = dict.fromkeys([*(name for name in own if name is not None), *named])
    missing = [name for name in needed if name not in rows.column_names]
    require(not missing, f"{what} lack column `{', '.join(missing)}`")
    for name in (name for name in dict.fromkeys([*needed, *typed]) if name in rows.column_names):
        known = (schema.columns or {}).get(name, ValueType.UNKNOWN)
        arrow = rows.schema.field(name).type
        agrees = known in _UNTOLD or value_type(arrow) in (known, ValueType.UNKNOWN)
        require(agrees, f"column `{name}` of {what} holds {arrow} values, not {known.value}")
    for name in dict.fromkeys(name for name in (schema.time, schema.start) if name is not None):
        kind = rows.schema.field(name).type
        require(is_time(kind) or not rows.num_rows, f"column `{name}` of {what} holds {kind} values, not times")
    for name in (name for name in own[:3] if name is not None):
        require(not rows.column(name).null_count, f"column `{name}` of {what} has NULL")
    if not rows.num_rows:
        return
    end = integers(rows.column(schema.time))
    if schema.start is not None:
        require(bool(np.all(integers(rows.column(schema.start)) <= end)), f"{what} end before they start")
    if earliest is not None:
        require(int(end.min()) >= earliest, f"{what} are of a time that has passed")


# A whole state -----------------------------------------------------------------------------------------------------


def check_state(state: Snapshot, query: BoundQuery) -> None:
    """Refuse a state that no engine of this query can have been in."""
    waiting, events = state.waiting, state.events
    require(0 <= state.step <= state.rows <= _GREATEST // 2, "time has made more steps than rows came in")
    require(state.watermark is None or _LEAST <= state.watermark <= _GREATEST, "its watermark does not fit 64 bits")
    if waiting is not None:
        _check_rows(waiting, "the events that wait", state, query, earliest=state.watermark)
    if events is None:
        require(not state.step or waiting is not None, "time has passed, and no event came")
        return
    require(waiting is not None, "events are held, and none ever waited")
    assert waiting is not None
    require(events.rows.schema.equals(waiting.schema), "the events held have other columns than those that wait")
    _check_rows(events.rows, "the events held", state, query)
    size = events.rows.num_rows
    require(size + waiting.num_rows <= state.rows, "there are more events than rows came in")
    end = integers(events.rows.column(query.schema.time))
    # Later events end at the watermark or after it, so every event held must end before it.
    passed = not size or (state.watermark is not None and int(end.max()) < state.watermark)
    require(passed, "time has not passed the events held, or has ended: nothing comes after `finish`")
    _check_numbers(_numbers(events, query, size), end, state, query)
    require((events.past is not None) is keeps_past(query), "it must say of the past what its query asks for")
    if events.past is not None:
        _check_past(events.past, events.rows.schema, state, query)


def _check_rows(rows: pa.Table, what: str, state: Snapshot, query: BoundQuery, *, earliest: int | None = None) -> None:
    schema = query.schema
    named = [*query.partition, *(state.meaning or {}).get("columns", {})]
    typed = query.columns_compared(schema.columns or ())
    check_events(rows, schema, what, named=named, typed=typed, earliest=earliest)
    # Programs read signed 64 bits; unsigned ones may hold more, and an engine does not take these in.
    for name in set(columns_read(query)) & set(rows.column_names):
        column = rows.column(name)
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if pa.types.is_uint64(kind):
            greatest = pc.max(column.cast(kind)).as_py()
            require((greatest or 0) <= _GREATEST, f"column `{name}` holds integers beyond 64 bits")


def _numbers(events: HeldEvents, query: BoundQuery, size: int) -> Mapping[str, Ints]:
    names = [*kept_numbers(query.schema), *(count_columns() if counts_all(query) else []), "frontier"]
    numbers = events.numbers
    # Which executors a plan has is not known here; each has both columns or none.
    drops = [drop_columns(place) for place in range(MAX_ALTERNATIVES)]
    names += [name for pair in drops if numbers.column_names.count(pair[0]) for name in pair]
    require(set(numbers.column_names) == set(names), f"its numbers are {', '.join(numbers.column_names)}")
    require(numbers.num_rows == size, "not every event held has its numbers")
    return {name: _integers(numbers, name) for name in names}


def _integers(table: pa.Table, name: str) -> Ints:
    column = table.column(name)
    require(column.type == pa.int64() and not column.null_count, f"its numbers `{name}` are not 64-bit integers")
    return to_numpy(column)


def _check_numbers(numbers: Mapping[str, Ints], end: Ints, state: Snapshot, query: BoundQuery) -> None:
    """Steps are counted from 0, rows too; −1 stands for what comes before the first."""
    step = numbers["step"]
    require(_within(step, 0, state.step - 1), "events held are of steps that time has not made")
    later, rising = np.diff(step), end[1:] > end[:-1]
    require(not np.any(end[1:] < end[:-1]), "the events held are not in the order of time")
    require(not np.any(later < 0) and not np.any(rising & (later == 0)), "steps are not in the order of time")
    left, right = numbers.get("left", step), numbers.get("right", step)
    in_order = _within(left, 0, state.step) and _within(right, 0, state.step - 1)
    require(in_order and bool(np.all((left <= step) & (step <= right))), "events are before themselves")
    dropped = [values for name, values in numbers.items() if name.startswith("drop_number")]
    require(all(_within(values, 0, _GREATEST) for values in dropped), "fewer runs than none were dropped")
    require(_within(numbers["frontier"], -1, state.step - 1), "matches were chosen that end after all events")
    position, barrier = numbers["position"], numbers["barrier"]
    place = numbers.get("place", position)
    if not counts_all(query):
        require(not position.any() and not place.any(), "positions are counted that nothing asks for")
        expected = step - 1 if counts_by_step(query) else np.zeros_like(step)
        require(bool(np.all(barrier == expected)), "barriers are not where contiguity is judged")
        return
    require(_within(position, -1, state.rows) and _within(place, -1, state.rows), "positions are not those of rows")
    require(bool(np.all(position <= place)), "events stand before what is before them")
    require(_within(barrier, -1, state.step - 1), "barriers are not steps that time has made")
    counts = [numbers[name] for name in count_columns()]
    require(_within(counts[COUNT], 0, state.rows) and _within(counts[BEFORE], 0, state.rows), "it counted too far")
    require(bool(np.all(counts[BEFORE] <= counts[COUNT])), "it counted more before a step than there are")
    steps = all(_within(counts[which], -1, state.step - 1) for which in (STEP, BARRIER, AHEAD))
    require(steps, "it counted steps that time has not made")


def _check_past(past: pa.Table, columns: pa.Schema, state: Snapshot, query: BoundQuery) -> None:
    keys = key_columns(query.partition)
    expected = {"end", "total", "point", *keys}
    # The keys are not there when there are none.
    missing = expected - set(past.column_names) - (set() if past.num_rows else set(keys))
    require(not missing and set(past.column_names) <= expected, f"its past is {', '.join(past.column_names)}")
    for key, name in zip(keys, query.partition, strict=True):
        if key in past.column_names:
            same = past.schema.field(key).type == columns.field(name).type
            require(same, f"keys `{name}` of its past have another type than those of events")
    end, total, point = _integers(past, "end"), _integers(past, "total"), past.column("point")
    require(pa.types.is_boolean(point.type) and not point.null_count, "its past does not say which events last")
    require(past.num_rows <= state.rows and _within(total, 1, state.rows), "its past has more events than came in")
    require(not np.any(end[1:] < end[:-1]), "its past is not in the order of time")
    require(not np.any((end == NEVER) & ~to_numpy(point)), "an event of its past began before all time")


# By partition ------------------------------------------------------------------------------------------------------


def check_partitions(
    numbers: Mapping[str, Ints], frontier_groups: Ints, count_groups: Ints, place_groups: Ints
) -> None:
    """Refuse numbers that are not the same for all events of a partition, or places that go back there.

    numbers          what is kept of each event
    frontier_groups  [event]: in which partition matches must not overlap, −1: in none
    count_groups     [event]: with which events it was counted, −1: with none
    place_groups     [event]: among which events its place is
    """
    require(_same(numbers["frontier"], frontier_groups), "one partition has two last matches")
    if count_columns()[0] not in numbers:
        return
    require(all(_same(numbers[name], count_groups) for name in count_columns()), "one partition was counted twice")
    order = _by_group(place_groups)
    order = order[np.count_nonzero(place_groups < 0) :]
    groups, places = place_groups[order], numbers.get("place", numbers["position"])[order]
    back = (groups[1:] == groups[:-1]) & (places[1:] < places[:-1])
    require(not back.any(), "places in a partition go back")
    if "place" not in numbers:  # that of events that last is counted by the past, which is kept longer
        before = numbers[count_columns()[BEFORE]][order]
        require(bool(np.all(places <= before)), "events stand behind the last of their partition")


def check_past_totals(partition: Ints, total: Ints) -> None:
    """Refuse a past in which an event has no partition, or a partition is not counted one by one."""
    require(not np.any(partition < 0), "an event of its past has no key")
    order = _by_group(partition)
    groups = partition[order]
    together = groups[1:] == groups[:-1]
    require(bool(np.all(np.diff(total[order])[together] == 1)), "its past is not counted one by one")


def _same(values: Ints, groups: Ints) -> bool:
    """Whether the values of each group are equal."""
    known = groups >= 0
    if not known.all():
        values, groups = values[known], groups[known]
    of_group = np.zeros(int(groups.max(initial=-1)) + 1, np.int64)
    of_group[groups] = values
    return bool(np.all(of_group[groups] == values))


def _by_group(groups: Ints) -> Ints:
    """The events by group, those of none first, and in their order in each."""
    few = int(groups.max(initial=0)) < np.iinfo(np.int16).max
    # NumPy sorts 16 bits in one pass.
    order: Ints = np.argsort(groups.astype(np.int16) if few else groups, kind="stable")
    return order


def _within(values: npt.NDArray[np.int64], least: int, greatest: int) -> bool:
    return not len(values) or (int(values.min()) >= least and int(values.max()) <= greatest)


def require(holds: bool, problem: str) -> None:
    """Refuse a snapshot that no engine can have written."""
    if not holds:
        raise BadSnapshot(f"this snapshot is not what an engine keeps: {problem}", hint=_HINT)
