"""Matches of which some are certain at once and others when their window closes: a stream gives what the table gives.

Of what does not overlap, and of what one event completes, nothing is said before all of it is decided.
"""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.engine.agreement import eager_rebuilding
from tests.engine.batches import bound, events, words

from kleene.engine.engine import Engine
from kleene.errors import UnboundedState
from kleene.frames.arrow import schema_on
from kleene.pattern import Query, Schema
from kleene.pattern.query import BoundQuery
from kleene.plan.settings import Budget, Settings

# A B alone has a negated end, which is certain five steps later; a B with others after it has none.
MIXED = "PATTERN SEQ(B c, !(A b), B* a[]) WITHIN 5"
NEGATED_END = "PATTERN SEQ(A a, B b, !(C c)) WITHIN 10"


def said(query: BoundQuery, stream: list[tuple[str, int]], *, restoring: bool) -> list[list[str]]:
    """What each batch gave, and the end; restored from a snapshot after every batch, or rebuilt."""
    settings = Settings(budget=Budget(state_bytes=1 << 40))
    engine = Engine(query, settings)
    found = []
    with eager_rebuilding():
        for batch, watermark in stream:
            found.append(words(engine.process(events(batch), watermark).matches))
            if restoring:
                engine = Engine.restore(query, engine.snapshot(), settings)
        return [*found, words(engine.finish().matches)]


def at_once(query: BoundQuery, stream: list[tuple[str, int]]) -> list[str]:
    engine = Engine(query)
    engine.process(events(" ".join(batch for batch, _ in stream)))
    return words(engine.finish().matches)


@pytest.mark.parametrize("restoring", [False, True], ids=["rebuilt", "restored"])
@pytest.mark.parametrize(
    ("text", "stream", "expected"),
    [
        pytest.param(
            f"{MIXED} OUTPUT NON_OVERLAP",
            [("b1 b3", 4), ("", 6), ("", 7), ("", 8), ("", 9)],
            [[], [], ["b1"], [], ["b3"]],
            id="one that was certain at once is not chosen before those that end no later",
        ),
        pytest.param(
            f"{MIXED} OUTPUT NON_OVERLAP",
            [("b1 b3 a4", 5), ("", 8), ("", 9)],
            [[], [], ["b1 b3"]],
            id="it is chosen when these turn out to be forbidden, though its own events are older than the window",
        ),
        pytest.param(
            f"{MIXED.replace('WITHIN', 'WHERE [id] WITHIN')} OUTPUT NON_OVERLAP",
            [("b1 b3 a4", 5), ("b5/1 b6/1", 7), ("", 9), ("", 11), ("", 12)],
            [[], [], ["b1 b3"], ["b5"], ["b6"]],
            id="other partitions are not waited for",
        ),
        pytest.param(
            f"{MIXED.replace('5', '3 EVENTS')} OUTPUT NON_OVERLAP",
            [("b1 b2 a3", 4), ("x4", 5), ("x5", 6)],
            [[], [], ["b1 b2"]],
            id="in a window of positions",
        ),
        pytest.param(
            f"{NEGATED_END} OUTPUT NON_OVERLAP",
            [("a1 a3 b4 b5", 6), ("", 12), ("", 14)],
            [[], [], ["a3 b4"]],
            id="where all have a negated end the window that opened first is not the one to be chosen",
        ),
        pytest.param(
            f"{NEGATED_END} OUTPUT NON_OVERLAP",
            [("a1 b2 a3 b4", 5), ("", 12), ("", 14)],
            [[], ["a1 b2"], ["a3 b4"]],
            id="what nothing undecided comes before does not wait",
        ),
        pytest.param(
            MIXED,
            [("b1 b3", 4), ("", 7), ("", 9)],
            [["b1 b3"], ["b1"], ["b3"]],
            id="where all matches are wanted none waits for another",
        ),
    ],
)
def test_what_is_chosen_and_when(
    text: str, stream: list[tuple[str, int]], expected: list[list[str]], restoring: bool
) -> None:
    query = bound(text)
    assert said(query, stream, restoring=restoring) == [*expected, []]
    assert sorted(at_once(query, stream)) == sorted(match for found in expected for match in found)


@pytest.mark.parametrize("restoring", [False, True], ids=["rebuilt", "restored"])
@pytest.mark.parametrize(
    ("text", "stream", "expected"),
    [
        (MIXED, [("b1 b3", 4), ("", 7), ("", 8), ("", 9)], [[], [(1, "1")], [], [(3, "2")]]),
        (NEGATED_END, [("a1 a3 b4", 5), ("", 13), ("", 14)], [[], [], [(4, "2")]]),
    ],
    ids=["mixed", "all negated"],
)
def test_what_one_event_completes_is_one_row(
    text: str, stream: list[tuple[str, int]], expected: list[list[tuple[int, str]]], restoring: bool
) -> None:
    query = bound(f"{text} OUTPUT COMPRESSED")
    engine = Engine(query)
    with eager_rebuilding():
        for (batch, watermark), rows in zip(stream, expected, strict=True):
            made = engine.process(events(batch), watermark).matches
            assert made is not None
            assert [(row["last"]["ts"], row["count"]) for row in made.to_pylist()] == rows
            if restoring:
                engine = Engine.restore(query, engine.snapshot())
    assert words(engine.finish().matches) == []


@pytest.mark.parametrize("restoring", [False, True], ids=["rebuilt", "restored"])
def test_a_match_that_waits_is_kept_however_many_events_have_its_time(restoring: bool) -> None:
    """What ends at the same time is ordered by start, so a match waits for one that the tie-breaker puts far later."""
    table = events("b1 b2 a2 x2 x2 x2 x2 x2 b2 a3 x4 x5")
    table = table.append_column("seq", pa.array(range(table.num_rows)))
    schema = schema_on(table.schema, Schema(tie_breaker="seq"))
    query = Query("PATTERN SEQ(B c, !(A b), B* a[]) WITHIN 3 EVENTS OUTPUT NON_OVERLAP").bind(schema)
    engine, found = Engine(query), []
    with eager_rebuilding():
        for batch, watermark in ((table.slice(0, 9), 3), (table.slice(9, 2), 5), (table.slice(11), 6)):
            found.append(words(engine.process(batch, watermark).matches))
            if restoring:
                engine = Engine.restore(query, engine.snapshot())
    assert found == [[], [], ["b1 b2"]]
    assert words(engine.finish().matches) == []


def test_partitions_that_wait_for_each_other_need_a_budget_under_a_window_of_positions() -> None:
    """Under strict contiguity the whole stream is one, and a key that never comes again closes no window."""
    query = bound("PATTERN SEQ(B c, !(A b)) WHERE strict_contiguity { [id] } WITHIN 2 EVENTS OUTPUT NON_OVERLAP")
    with pytest.raises(UnboundedState, match="wait until each has had enough events"):
        Engine(query).process(events("b1"), watermark=2)
    stream = [("b1 b2/1", 3), *((f"x{time}/1", time + 1) for time in range(3, 20))]
    assert said(query, stream, restoring=True) == [*([[]] * len(stream)), ["b1", "b2"]]
