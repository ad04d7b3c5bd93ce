"""An engine's life on a stream (the semantics page §5): what waits, what is late, what is certain, what is counted."""

from __future__ import annotations

from itertools import permutations

import pyarrow as pa
import pytest
from tests.engine.batches import bound, events, words

from kleene.engine.engine import Engine
from kleene.errors import MissingColumn
from kleene.frames.arrow import schema_on
from kleene.optimize.planner import plan_query
from kleene.pattern import Query, Schema
from kleene.pattern.query import BoundQuery
from kleene.plan.physical import AutomatonPlan, SequencePlan
from kleene.plan.program import NotCompilable

STACKS = "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 10"
RUNS = "PATTERN SEQ(A+ a[], B b) WHERE [id] WITHIN 10"
BOTH = pytest.mark.parametrize("text", [STACKS, RUNS], ids=["stacks", "runs"])


def test_the_two_queries_run_on_stacks_and_on_runs() -> None:
    assert isinstance(plan_query(bound(STACKS)).alternatives[0], SequencePlan)
    assert isinstance(plan_query(bound(RUNS)).alternatives[0], AutomatonPlan)


# Time passes -------------------------------------------------------------------------------------------------------


@BOTH
def test_an_event_waits_until_the_watermark_has_passed_it(text: str) -> None:
    engine = Engine(bound(text))
    made = engine.process(events("a1 b5"), watermark=5)
    assert words(made.matches) == []
    assert engine.statistics.waiting == 1
    made = engine.process(events(""), watermark=6)
    assert words(made.matches) == ["a1 b5"]
    assert engine.statistics.waiting == 0


@BOTH
def test_an_event_at_the_watermark_is_not_late_and_one_before_it_is(text: str) -> None:
    engine = Engine(bound(text))
    engine.process(events("a1"), watermark=4)
    made = engine.process(events("b3 b4 b2/1"), watermark=5)
    assert made.late is not None
    assert made.late.to_pydict() == events("b3 b2/1").to_pydict()
    assert made.statistics.late == 2
    assert words(made.matches) == ["a1 b4"]
    assert engine.statistics.late == 2
    assert words(engine.finish().matches) == []


@BOTH
def test_a_watermark_never_goes_back(text: str) -> None:
    engine = Engine(bound(text))
    engine.process(events("a1"), watermark=8)
    made = engine.process(events("b5"), watermark=3)
    assert made.statistics.late == 1
    made = engine.process(events("b8"), watermark=4)
    assert made.statistics.late == 0
    assert engine.statistics.waiting == 1


@BOTH
def test_without_a_watermark_nothing_is_decided_and_nothing_is_late(text: str) -> None:
    engine = Engine(bound(text))
    assert engine.process(events("a5 b9")).matches is None
    assert engine.process(events("a1 b3")).late.num_rows == 0  # type: ignore[union-attr]
    longer = ["a1 a5 b9"] if text == RUNS else []
    assert sorted(words(engine.finish().matches)) == [*longer, "a1 b3", "a1 b9", "a5 b9"]


@BOTH
def test_the_order_of_arrival_does_not_matter(text: str) -> None:
    rows = ["a1", "b2", "a3", "b4"]
    whole = Engine(bound(text))
    whole.process(events(" ".join(rows)))
    expected = words(whole.finish().matches)
    assert len(expected) >= 3
    for order in permutations(rows):
        engine = Engine(bound(text))
        engine.process(events(" ".join(order[:2])), watermark=1)
        made = engine.process(events(" ".join(order[2:])), watermark=5)
        assert words(made.matches) == expected


@BOTH
def test_simultaneous_events_of_different_batches_are_simultaneous(text: str) -> None:
    """Neither is before the other, so no sequence pairs them, whichever came first."""
    engine = Engine(bound(text))
    engine.process(events("a3"), watermark=3)
    engine.process(events("b3"), watermark=3)
    made = engine.process(events("b4"), watermark=5)
    assert words(made.matches) == ["a3 b4"]


@BOTH
def test_finish_decides_everything_that_waits(text: str) -> None:
    engine = Engine(bound(text))
    engine.process(events("a1 b5"), watermark=0)
    made = engine.finish()
    assert words(made.matches) == ["a1 b5"]
    assert engine.statistics.waiting == 0


@BOTH
def test_a_stream_without_events_ends_without_matches(text: str) -> None:
    engine = Engine(bound(text))
    assert words(engine.finish().matches) == []
    engine = Engine(bound(text))
    assert words(engine.process(events(""), watermark=7).matches) == []
    assert engine.process(events("b6"), watermark=8).statistics.late == 1
    assert words(engine.finish().matches) == []


# What is certain when ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("positive", ["A a", "A+ a[]"])
@pytest.mark.parametrize("within", ["10", "10 INCLUSIVE"])
def test_a_negated_end_is_certain_when_the_watermark_is_strictly_past_the_window(positive: str, within: str) -> None:
    engine = Engine(bound(f"PATTERN SEQ({positive}, !(B b)) WITHIN {within}"))
    assert words(engine.process(events("a1"), watermark=2).matches) == []
    assert words(engine.process(events(""), watermark=11).matches) == []
    assert words(engine.process(events(""), watermark=12).matches) == ["a1"]
    assert words(engine.finish().matches) == []


@pytest.mark.parametrize("positive", ["A a", "A+ a[]"])
@pytest.mark.parametrize(("within", "forbids"), [("10", False), ("10 INCLUSIVE", True)])
def test_a_negated_event_at_the_far_bound_forbids_under_inclusive_only(
    positive: str, within: str, forbids: bool
) -> None:
    engine = Engine(bound(f"PATTERN SEQ({positive}, !(B b)) WITHIN {within}"))
    engine.process(events("a1"), watermark=11)
    made = engine.process(events("b11"), watermark=12)
    assert words(made.matches) == ([] if forbids else ["a1"])


@pytest.mark.parametrize("positive", ["A a", "A+ a[]"])
def test_under_events_a_negated_end_is_certain_when_an_event_has_a_position_beyond_the_window(positive: str) -> None:
    """a1 has position 0, so its window holds positions 0 to 2; time alone closes nothing."""
    engine = Engine(bound(f"PATTERN SEQ({positive}, !(B b)) WHERE [id] WITHIN 3 EVENTS"))
    assert words(engine.process(events("a1 x2 x3"), watermark=100).matches) == []
    assert words(engine.process(events("x101/1 x102/1 x103/1"), watermark=200).matches) == []
    assert words(engine.process(events("x201"), watermark=300).matches) == ["a1"]


@pytest.mark.parametrize("positive", ["A a", "A+ a[]"])
def test_under_events_simultaneous_events_have_one_position(positive: str) -> None:
    engine = Engine(bound(f"PATTERN SEQ({positive}, !(B b)) WITHIN 2 EVENTS"))
    # Positions 0, 1, 1, 1: the number of events before each.
    assert words(engine.process(events("a1 x2 x2 b2"), watermark=3).matches) == []
    assert words(engine.process(events("x3"), watermark=4).matches) == []
    engine = Engine(bound(f"PATTERN SEQ({positive}, !(B b)) WITHIN 2 EVENTS"))
    assert words(engine.process(events("a1 x2 x2 b3"), watermark=4).matches) == ["a1"]


def test_a_timeout_is_certain_when_the_watermark_is_strictly_past_the_window() -> None:
    engine = Engine(bound("PATTERN SEQ(A a, B b) WITHIN 10 TIMEOUTS INTO missing"))
    assert words(engine.process(events("a1 a2 b3/9"), watermark=4).matches) == ["a2 b3", "a1 b3"]
    assert words(engine.process(events("a20"), watermark=30).timeouts) == []
    assert words(engine.process(events(""), watermark=31).timeouts) == ["a20"]
    assert words(engine.finish().timeouts) == []


# Rows that are no events, and columns that change -------------------------------------------------------------------


@BOTH
def test_bad_rows_are_numbered_over_all_batches(text: str) -> None:
    engine = Engine(bound(text))
    first = engine.process(events("a1 a- b2"), watermark=3)
    second = engine.process(events("b- b4"), watermark=5)
    assert [(row.index, row.reason) for row in first.bad] == [(1, "no time: `ts` is NULL")]
    assert [row.index for row in second.bad] == [3]
    assert (first.statistics.bad, second.statistics.bad, engine.statistics.bad) == (1, 1, 2)


@BOTH
def test_a_batch_may_order_its_columns_differently_and_have_more_but_not_fewer(text: str) -> None:
    engine = Engine(bound(text))
    engine.process(events("a1"), watermark=2)
    more = events("b2").append_column("more", pa.array([1])).select(["more", "id", "ts", "type"])
    assert words(engine.process(more, watermark=3).matches) == ["a1 b2"]
    with pytest.raises(MissingColumn, match="`id`"):
        engine.process(events("b4").drop_columns(["id"]), watermark=5)


@BOTH
@pytest.mark.parametrize("first", ["string", "dictionary"])
def test_dictionaries_may_differ_from_batch_to_batch(text: str, first: str) -> None:
    """Types, keys and values: the codes of one batch mean nothing in the next."""

    def coded(words_: str, index: pa.DataType, *before: str) -> pa.Table:
        table = events(words_)
        for name in ("type", "id"):
            values = table.column(name).to_pylist()
            entries = list(dict.fromkeys([*before, *values]))
            codes = pa.array([entries.index(value) for value in values], index)
            made = pa.DictionaryArray.from_arrays(codes, pa.array(entries, pa.string()))
            table = table.set_column(table.column_names.index(name), name, made)
        return table

    batches = [
        events("a1/k a2/l") if first == "string" else coded("a1/k a2/l", pa.int32()),
        coded("b3/l a4/k", pa.int32(), "z", "k"),
        coded("b5/k b6/m", pa.int32(), "B", "m"),
        events("b7/l"),
    ]
    engine = Engine(bound(f"{text} RETURN b.id AS id, b.ts AS ts", batches[0]))
    found = []
    for number, batch in enumerate(batches):
        made = engine.process(batch, watermark=3 + 2 * number)
        found += [] if made.matches is None else [(row["id"], row["ts"]) for row in made.matches.to_pylist()]
    found += [(row["id"], row["ts"]) for row in engine.finish().matches.to_pylist()]  # type: ignore[union-attr]
    k = [("k", 5)] * (2 if text == STACKS else 3)
    assert sorted(found) == sorted([("l", 3), ("l", 7), *k])


# What is counted ---------------------------------------------------------------------------------------------------


@BOTH
def test_statistics_of_a_batch_are_its_own_and_the_total_is_of_all(text: str) -> None:
    engine = Engine(bound(text))
    first = engine.process(events("a1 x1 a- a2/1"), watermark=3).statistics
    assert (first.rows, first.bad, first.late, first.relevant, first.matches) == (4, 1, 0, 2, 0)
    assert engine.statistics.waiting == 0
    second = engine.process(events("b2 b3 b9"), watermark=5).statistics
    assert (second.rows, second.bad, second.late, second.relevant, second.matches) == (3, 0, 1, 1, 1)
    assert (engine.statistics.waiting, engine.statistics.events) == (1, 3)
    third = engine.finish().statistics
    assert (third.rows, third.relevant, third.matches) == (0, 1, 1)
    total = engine.statistics
    assert (total.rows, total.bad, total.late, total.relevant, total.matches) == (7, 1, 1, 4, 2)
    assert total.waiting == 0
    assert total.state_bytes == engine.nbytes > 0


@BOTH
def test_components_say_how_far_events_and_runs_came(text: str) -> None:
    engine = Engine(bound(text.replace("WHERE [id]", "WHERE [id] AND b.ts > 3")))
    engine.process(events("a1 b2 b4 c4 b5/1"), watermark=9)
    ((a, b),) = engine.statistics.components
    assert (a.variable, a.seen, a.passed, a.reached) == ("a", 1, 1, 1)
    assert (b.variable, b.seen, b.passed, b.reached) == ("b", 3, 2, 1)


# Other queries, other times ----------------------------------------------------------------------------------------


def test_a_query_that_no_executor_can_run_is_refused_with_the_reason() -> None:
    with pytest.raises(NotCompilable, match="more than 60 components"):
        Engine(bound("PATTERN " + " & ".join(f"A a{number}" for number in range(61))))


def test_a_watermark_is_in_steps_of_the_time_column() -> None:
    table = events("a1 b3")
    times = table.column("ts").cast(pa.timestamp("ms"))
    table = table.set_column(1, "ts", times)
    engine = Engine(bound("PATTERN SEQ(A a, B b) WITHIN 2 msec INCLUSIVE", table))
    assert engine.process(table, watermark=3).statistics.matches == 0
    assert engine.process(table.slice(0, 0), watermark=4).statistics.matches == 1


def test_events_that_last_are_passed_when_their_end_is() -> None:
    table = pa.table({"type": ["A", "B", "B"], "from": [1, 3, 5], "ts": [4, 9, 9]})
    schema = schema_on(table.schema, Schema(start="from"))
    query: BoundQuery = Query("PATTERN SEQ(A a, B b) WITHIN 20").bind(schema)
    engine = Engine(query)
    engine.process(table, watermark=9)
    assert engine.statistics.waiting == 2
    made = engine.process(table.slice(0, 0), watermark=10)
    # The B from 3 on is not after the A, which ends at 4.
    assert made.matches is not None
    assert [row["b"]["from"] for row in made.matches.to_pylist()] == [5]
