"""Several queries in one run, on the engine: those that feed each other, and those that have nothing in common."""

from __future__ import annotations

import random
from collections.abc import Callable
from unittest import mock

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.engine.agreement import SETTINGS, content
from tests.engine.feeding import READER, Listed, check, fallbacks, feeding_pair, late_pair, unrelated_list
from tests.soaking import least, rounds

import kleene
from kleene.composition.query_graph import QueryGraph
from kleene.engine.output import tables
from kleene.evaluation import evaluate, warn_of_reference
from kleene.frames.arrow import schema_on
from kleene.frames.outputs import Outputs
from kleene.pattern import Query, Schema
from kleene.plan.settings import Budget, Policy, Settings
from kleene.queries.feeding import bound_in_order, in_dependency_order
from kleene.testing.reference_outputs import table_outputs

ROWS = pa.table(
    {
        "type": ["A", "B", "B", "C", "A", "B", "C"],
        "ts": [1, 2, 3, 3, 4, 6, 9],
        "k": [1, 2, 1, 1, 2, 2, 2],
        "x": [1.5, 2.0, None, 0.5, 1.0, 4.0, 2.5],
    }
)
MAKER = "PATTERN SEQ(A a, B b) WITHIN 5 RETURN a.k AS k, b.x - a.x AS rise INTO S"
Record = Callable[[str, object], None]


# Random queries ------------------------------------------------------------------------------------------------------


@pytest.mark.soak
def test_feeding_queries_agree_with_the_reference(record_property: Record) -> None:
    compared, compiled, matched = _compare("feeding", feeding_pair, range(rounds(1000)))
    said = f"{compared} pairs, {compiled} of them on the engine alone, {matched} of these with a match of the reader"
    record_property("counted", f"feeding queries, engine = reference: {said}")
    assert compiled >= least(300)
    assert matched >= least(100)


@pytest.mark.soak
def test_lists_of_queries_agree_with_the_reference(record_property: Record) -> None:
    compared, compiled, matched = _compare("unrelated", unrelated_list, range(rounds(160)))
    said = f"{compared} lists, {compiled} of them on the engine alone, {matched} of these with matches"
    record_property("counted", f"lists of queries, engine = reference: {said}")
    assert compiled >= least(110)
    assert matched >= least(100)


@pytest.mark.soak
def test_timeouts_that_feed_agree_with_the_reference(record_property: Record) -> None:
    compared, compiled, matched = _compare("late", late_pair, range(rounds(300)))
    said = f"{compared} pairs, {compiled} of them on the engine alone, {matched} of these with a match of the reader"
    record_property("counted", f"timeouts that feed queries, engine = reference: {said}")
    assert compiled >= least(200)
    assert matched >= least(45)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "drawn", "number"),
    [("feeding", feeding_pair, 90), ("unrelated", unrelated_list, 25), ("late", late_pair, 40)],
)
def test_queries_agree_at_a_glance(kind: str, drawn: Callable[[random.Random], Listed | None], number: int) -> None:
    """Other ones than the many."""
    _, _, matched = _compare(kind, drawn, range(10_000, 10_000 + number))
    assert matched >= 5


def _compare(kind: str, drawn: Callable[[random.Random], Listed | None], seeds: range) -> tuple[int, int, int]:
    """How many were compared, how many ran on the engine alone, and how many of these had a match."""
    compared = compiled = matched = 0
    for seed in seeds:
        draw = random.Random(f"{kind} {seed}")
        listed = drawn(draw)
        if listed is None:
            continue
        compared += 1
        if check(listed, SETTINGS[seed % len(SETTINGS)], draw):
            compiled += 1
            feeds = kind in ("feeding", "late")
            matched += listed.matched(READER) if feeds else listed.expected.matches.num_rows > 0
    return compared, compiled, matched


# What feeds what -----------------------------------------------------------------------------------------------------


def _both(
    events: object, *texts: str, slow: int = 0, several: bool = True, schema: Schema | None = None
) -> Outputs[pa.Table]:
    """What the engine gives, which must be what the reference does; `slow` queries stay there."""
    queries = [Query(text, name=f"q{number}") for number, text in enumerate(texts)]
    with fallbacks() as reasons:
        made = evaluate(events, queries, schema=schema, several=several)
    assert len(reasons) == slow, reasons
    expected = table_outputs(events, queries, schema=schema, several=several)
    assert content(made.matches) == content(expected.matches)
    assert made.matches.schema.equals(expected.matches.schema)
    assert content(made.timeouts) == content(expected.timeouts)
    assert made.bad_rows.equals(expected.bad_rows)
    return made


def test_a_chain_of_three() -> None:
    second = "PATTERN SEQ(S s, C c) RETURN s.k + c.k AS sum, s.rise AS rise INTO T"
    made = _both(ROWS, "PATTERN SEQ(T t, C c) WHERE t.sum > 1", second, MAKER)
    assert "q0" in made.matches["query"].to_pylist()
    assert made.matches["events"].type.value_type.field("event").type.names == [*ROWS.column_names, "rise", "sum"]


def test_two_makers_of_one_stream_and_one_read_by_nobody() -> None:
    other = "PATTERN C c RETURN c.x AS rise, c.ts AS at INTO S"
    nobody = "PATTERN A a RETURN a.k AS only INTO T"
    made = _both(ROWS, nobody, MAKER, other, "PATTERN SEQ(A a, S s) WHERE s.rise > 0 OR s.at > 3")
    assert made.matches["query"].to_pylist().count("q3") == 4


def test_a_stream_that_is_not_read_is_not_counted() -> None:
    """Six events are before S 4..6 and nine before C9; with T it would be eight and twelve."""
    other = "PATTERN B b RETURN b.k AS k INTO T"
    found = []
    for size in (3, 4):
        made = _both(ROWS, MAKER, other, f"PATTERN SEQ(S s, C c) WHERE s.rise = 3 WITHIN {size} EVENTS")
        found.append(made.matches["query"].to_pylist().count("q2"))
    assert found == [0, 1]


def test_what_only_a_class_names_is_read() -> None:
    schema = Schema(classes={"Rising": "S WHERE rise > 1"})
    made = _both(ROWS, "PATTERN SEQ(Rising s, C c)", MAKER, schema=schema)
    assert "q0" in made.matches["query"].to_pylist()


# More than the engine can run.
WIDE = " & ".join(f"C c{number}" for number in range(61))


def test_a_query_that_is_not_compiled_stays_behind_alone(caplog: pytest.LogCaptureFixture) -> None:
    made = _both(ROWS, "PATTERN A a & C c WITHIN 4 RETURN a.k AS k INTO S", "PATTERN SEQ(S s, B b)")
    assert made.matches["query"].to_pylist().count("q1") == 2
    _both(ROWS, MAKER, "PATTERN S s & C c WITHIN 9")
    _both(ROWS, MAKER, f"PATTERN {WIDE}", slow=1)
    kleene.match(ROWS, [MAKER, kleene.query(f"PATTERN {WIDE}", name="late")])
    (said,) = [record.message for record in caplog.records if "slow" in record.message]
    assert said.startswith("`late` runs on the reference evaluator, which is slow: a pattern of more than 60")


def test_numbers_of_two_kinds_in_one_column_are_not_compiled() -> None:
    maker = "PATTERN SEQ(A a, B b) RETURN a.x AS k INTO S"
    made = _both(ROWS, maker, "PATTERN SEQ(S s, C c) WHERE s.k < c.k", slow=1)
    assert made.matches["events"].type.value_type.field("event").type.field("k").type == pa.float64()


def test_whole_events_in_composite_ones() -> None:
    maker = "PATTERN SEQ(A a, B+ b[]) WITHIN 6 RETURN a, b, a.k AS k INTO S"
    _both(ROWS, maker, "PATTERN SEQ(S s, C c) WHERE [k]")
    reader = "PATTERN SEQ(S s, C c) RETURN s.a AS first, s.b AS rest, c.ts AS at"
    (row, *_) = _both(ROWS, reader, maker, several=False).matches.to_pylist()
    assert (row["first"]["ts"], [event["ts"] for event in row["rest"]], row["at"]) == (1, [2], 3)


def test_simultaneous_events_with_nested_columns() -> None:
    rows = [{"type": "A", "ts": 1, "n": {"u": number, "v": [number]}} for number in (2, 1, 3)]
    maker = "PATTERN A a RETURN a.n AS n, a INTO S"
    made = _both(rows, maker, "PATTERN A a", "PATTERN S s").matches.to_pylist()
    found = [row["events"][0]["event"]["n"]["u"] for row in made if row["query"] == "q2"]
    assert found == [1, 2, 3]


def test_constant_types_and_coded_types() -> None:
    alone = ROWS.drop(["type"])
    maker = "PATTERN SEQ(E a, E b) WITHIN 3 RETURN a.k AS k, b.x AS y INTO S"
    made = _both(alone, maker, "PATTERN SEQ(S s, E e) WHERE [k] WITHIN 7", schema=Schema(constant_type="E"))
    assert "q1" in made.matches["query"].to_pylist()
    coded = ROWS.set_column(0, "type", ROWS["type"].combine_chunks().dictionary_encode())
    assert "q1" in _both(coded, MAKER, "PATTERN SEQ(S s, C c)").matches["query"].to_pylist()


def test_events_with_a_start_of_their_own() -> None:
    lasting = ROWS.append_column("began", pa.array([1, 1, 3, 2, 4, 5, 9], pa.int32()))
    made = _both(lasting, MAKER, "PATTERN SEQ(S s, C c) WHERE s.began < c.began", schema=Schema(start="began"))
    assert "q1" in made.matches["query"].to_pylist()


def test_streams_some_of_which_have_types() -> None:
    is_c = pc.equal(ROWS["type"], "C")
    streams = {"mixed": ROWS.filter(pc.invert(is_c)), "C": ROWS.filter(is_c).drop(["type"])}
    _both(streams, "PATTERN SEQ(A a, C c)", several=False)
    _both(streams, "PATTERN SEQ(S s, C c)", MAKER)


def test_no_events_at_all() -> None:
    assert _both(ROWS.slice(0, 0), MAKER, "PATTERN SEQ(S s, C c) WHERE [k]").matches.num_rows == 0
    _both([], "PATTERN A a", "PATTERN SEQ(S s, B b)", "PATTERN B b RETURN b.ts AS at INTO S")


# Tables of several ---------------------------------------------------------------------------------------------------


def test_results_built_in_pieces() -> None:
    texts = (
        MAKER,
        "PATTERN SEQ(A+ a[], B? b, C c)",
        "PATTERN SEQ(S s, C c) TIMEOUTS INTO Late".replace(" TIME", " WITHIN 9 TIME"),
    )
    whole = _both(ROWS, *texts).matches
    with mock.patch.object(tables, "PIECE", 4):
        pieces = _both(ROWS, *texts).matches
    assert pieces["events"].num_chunks > whole["events"].num_chunks
    assert pieces.equals(whole)


def test_compressed_matches_stand_unfolded_in_a_list() -> None:
    text = "PATTERN SEQ(A+ a[], B+ b[])"
    made = _both(ROWS, f"{text} OUTPUT COMPRESSED", "PATTERN B b").matches
    alone = kleene.match(ROWS, text)
    assert [row for row in made["match_id"].to_pylist() if row in alone["match_id"].to_pylist()] == (
        alone["match_id"].to_pylist()
    )


def test_timeouts_and_bad_rows_of_all() -> None:
    rows = pa.concat_tables([ROWS, pa.table({"type": ["A"], "ts": pa.nulls(1, pa.int64()), "k": [1], "x": [0.0]})])
    first = "PATTERN SEQ(A a, C c) WHERE [k] WITHIN 3 TIMEOUTS INTO Late"
    second = "PATTERN SEQ(S s, C c, B b) WHERE [k] WITHIN 9 TIMEOUTS INTO Never"
    made = _both(rows, second, first, MAKER)
    assert made.bad_rows.num_rows == 1
    assert made.timeouts is not None
    assert dict.fromkeys(made.timeouts["stream"].to_pylist()).keys() == {"Never", "Late"}
    assert made.timeouts.schema.field("s").type.names == ["type", "ts", "k", "rise"]


def test_variables_that_cannot_be_one_column() -> None:
    texts = ["PATTERN SEQ(A a, D d) WITHIN 3 TIMEOUTS INTO L", "PATTERN SEQ(A+ a[], D d) WITHIN 3 TIMEOUTS INTO L"]
    with pytest.raises(kleene.errors.UnusableColumn, match="give the variables other names"):
        kleene.match(ROWS, texts)


def test_columns_that_cannot_be_one() -> None:
    with pytest.raises(kleene.errors.UnusableColumn, match="string in S"):
        kleene.match(ROWS, ["PATTERN A a RETURN a.type AS k INTO S", "PATTERN S s"])


def test_a_budget_holds_for_each_query() -> None:
    rows = [{"type": "A", "ts": ts} for ts in range(5)] + [{"type": "B", "ts": 9}]
    texts = ["PATTERN SEQ(A+ a[], B b)", "PATTERN SEQ(A a, B b)"]
    crowded = Settings(budget=Budget(matches_per_event=10, policy=Policy.EMIT_COMPRESSED))
    made = kleene.outputs(rows, texts, settings=crowded)
    assert len(made.matches) == 5
    assert [row["count"] for row in made.compressed] == ["31"]
    with pytest.raises(kleene.errors.BudgetExceeded, match="31"):
        kleene.outputs(rows, texts, settings=Settings(budget=Budget(matches_per_event=10)))


def test_tasks_are_announced_query_by_query(caplog: pytest.LogCaptureFixture) -> None:
    queries = [Query(f"PATTERN S s & {WIDE}", name="both"), Query(MAKER), Query("PATTERN SEQ(S s, C c)", name="line")]
    schema = schema_on(ROWS.schema, Schema())
    bound = bound_in_order(in_dependency_order(queries, schema), schema)
    warn_of_reference(QueryGraph.of(bound, ROWS.schema))
    assert [record.args[0] for record in caplog.records if isinstance(record.args, tuple)] == ["both"]
