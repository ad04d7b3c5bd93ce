"""TIMEOUTS of queries with several alternatives: of each start the longest prefix, whichever alternative found it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from tests.engine.agreement import SETTINGS, case_of, check, pair_of
from tests.soaking import rounds

from kleene.engine.engine import Engine
from kleene.engine.output.matches import Matches
from kleene.engine.output.timeouts import longest_of_each_start
from kleene.errors import TimeTooLarge
from kleene.frames.arrow import schema_on
from kleene.pattern import Query, Schema
from kleene.reference.evaluator import reference_match
from kleene.reference.tables import timeout_table

Prefix = list[tuple[int, int]]


def random_prefixes(draw: random.Random) -> list[Prefix]:
    """Variables with events, of a few starts; some are the same, some begin alike, some have longer lists."""
    prefixes = []
    for _ in range(draw.randint(0, 12)):
        length = draw.randint(1, 6)
        variables = sorted(draw.choice((0, 0, 1, 1, 2, 3)) for _ in range(length))
        events = sorted(draw.randint(0, 4) for _ in range(length))
        prefixes.append(list(zip(variables, events, strict=True)))
    return prefixes


def by_definition(prefixes: list[Prefix]) -> list[Prefix]:
    """Most variables, then canonically first (the semantics page §3, TIMEOUTS), each where it stands in the list."""
    best: dict[tuple[int, int], tuple[tuple[int, Prefix], int]] = {}
    for place, prefix in enumerate(prefixes):
        # A list that ends comes before one that goes on, so a later variable comes first.
        rank = -len({variable for variable, _ in prefix}), [(-variable, event) for variable, event in prefix]
        if prefix[0] not in best or rank < best[prefix[0]][0]:
            best[prefix[0]] = rank, place
    return [prefixes[place] for place in sorted(place for _, place in best.values())]


def as_matches(prefixes: list[Prefix]) -> Matches:
    flat = [reference for prefix in prefixes for reference in prefix]
    offsets = np.cumsum([0, *map(len, prefixes)]).astype(np.int64)
    events = np.array([event for _, event in flat], np.int64)
    return Matches(offsets, events, np.array([variable for variable, _ in flat], np.uint8))


def as_lists(matches: Matches) -> list[Prefix]:
    flat = list(zip(matches.variables.tolist(), matches.events.tolist(), strict=True))
    bounds = matches.offsets.tolist()
    return [flat[begin:end] for begin, end in pairwise(bounds)]


def test_the_longest_prefix_of_each_start() -> None:
    draw = random.Random(12)
    for _ in range(2_000):
        prefixes = random_prefixes(draw)
        assert as_lists(longest_of_each_start(as_matches(prefixes))) == by_definition(prefixes)


@pytest.mark.slow
def test_optional_components_with_timeouts(record_property: Callable[[str, object], None]) -> None:
    """Whole and in pieces, each rule of the planner on and off in turn."""
    drawn, pairs, several, timed_out = rounds(320), 0, 0, 0
    for seed in range(drawn):
        draw = random.Random(f"optional timeouts {seed}")
        case = case_of(draw, "optional")
        output = draw.choice(("TIMEOUTS INTO late", "TIMEOUTS INTO late", "OUTPUT NON_OVERLAP TIMEOUTS INTO late"))
        text, *_ = case.query_text.split(" WITHIN ")
        pair = pair_of(replace(case, query_text=f"{text} WITHIN {draw.randint(3, 9)} {output}"))
        if pair is None or not check(pair, SETTINGS[seed % len(SETTINGS)], draw):
            continue
        assert pair.expected.timeouts is not None
        pairs += 1
        several += len(pair.bound.alternatives) > 1
        timed_out += pair.expected.timeouts.num_rows > 0
    record_property("counted", f"optional with TIMEOUTS: {pairs} pairs, {several} of several alternatives")
    assert several >= drawn / 3
    assert timed_out >= drawn / 4


def timeouts_of(text: str, times: pa.Array) -> list[list[object]]:
    """When windows closed, by the engine and by the reference."""
    events = pa.table({"type": ["A", "C"], "ts": times})
    found = []
    for run in (engine_timeouts, reference_timeouts):
        made = run(events, text)
        assert made.schema.field("closed").type == times.type
        found.append(made.column("closed").to_pylist())
    return found


def engine_timeouts(events: pa.Table, text: str) -> pa.Table:
    made = Engine(Query(text).bind(schema_on(events.schema, Schema()))).finish(events).timeouts
    assert made is not None
    return made


def reference_timeouts(events: pa.Table, text: str) -> pa.Table:
    return timeout_table(reference_match(events, text), events)


@pytest.mark.parametrize("kind", [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.date32()])
def test_windows_that_nothing_closed_in_narrow_times(kind: pa.DataType) -> None:
    times = pa.array([1, 120], pa.int32()).cast(kind)
    assert timeouts_of("PATTERN SEQ(A a, B b) WITHIN 3 EVENTS TIMEOUTS INTO Late", times) == [[None], [None]]


@pytest.mark.parametrize("run", [engine_timeouts, reference_timeouts])
def test_a_window_that_closes_when_the_time_column_cannot_say(run: Callable[[pa.Table, str], pa.Table]) -> None:
    events = pa.table({"type": ["A", "C"], "ts": pa.array([1, 120], pa.int8())})
    assert run(events, "PATTERN SEQ(A a, B b) WITHIN 126 TIMEOUTS INTO Late").num_rows == 1
    with pytest.raises(TimeTooLarge, match="int8"):
        run(events, "PATTERN SEQ(A a, B b) WITHIN 127 TIMEOUTS INTO Late")
