"""Each operator of a tree by hand, with the examples of ZStream §4: what it gives, and what it looks at to give it."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pytest
from tests.engine.batches import bound, events, words
from tests.optimize.trees.printed import default_trees, tree

from kleene.engine.engine import Engine
from kleene.frames.arrow import schema_on
from kleene.optimize.trees.all_trees import all_trees
from kleene.optimize.trees.options import options
from kleene.pattern import Query, Schema
from kleene.pattern.query import BoundQuery
from kleene.plan.check import check
from kleene.plan.physical import Plan
from kleene.plan.settings import Adapting, Settings
from kleene.plan.trees import GroupNode, JoinNode, LeafNode, NegNode, TreePlan, UnionNode, walk

ONE_BY_ONE = Settings(adapting=Adapting(round=1))


def plan_of(query: BoundQuery, text: str | None = None) -> Plan:
    """The plan of a query of one option: the tree that prints so, or the one that needs no statistics."""
    return check(Plan(query, default_trees(query) if text is None else (tree(query, text),)))


@dataclass(frozen=True)
class Counted:
    """Of one node: what it looked at, and what it made."""

    name: str
    tried: int
    made: int


def counted(engine: Engine) -> dict[str, Counted]:
    """By name: a leaf's is its variable, an operator's its kind and the variables of what it joins."""
    (tree,), (measured,) = engine.plan.alternatives, engine.measured
    assert isinstance(tree, TreePlan)
    assert measured is not None
    names = map(_name, walk(tree.root))
    return {name: Counted(name, *counts) for name, counts in zip(names, measured.nodes, strict=True)}


def _name(node: LeafNode | JoinNode | UnionNode | GroupNode | NegNode) -> str:
    match node:
        case LeafNode(scan=scan):
            return scan.component.variable
        case JoinNode(kind=kind, left=left, right=right):
            return f"{kind.name}({_name(left)}, {_name(right)})"
        case UnionNode(parts=parts):
            return f"DISJ({', '.join(map(_name, parts))})"
        case GroupNode(child=child, scan=scan):
            return f"KSEQ({_name(child)}, {scan.component.variable})"
        case NegNode(child=child, absence=absence):
            return f"NEG({_name(child)}, {absence.scan.component.variable})"


def matched(engine: Engine, table: pa.Table) -> list[str]:
    engine.process(table)
    return words(engine.finish().matches)


# SEQ (§4.4.1, Algorithm 1) -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["SEQ(SEQ(a, b), c)", "SEQ(a, SEQ(b, c))"])
def test_a_sequence_in_either_order(text: str) -> None:
    query = bound("PATTERN SEQ(A a, B b, C c) WITHIN 9")
    engine = Engine(query, plan=plan_of(query, text))
    assert matched(engine, events("b1 a2 b3 a3 b4 c5")) == ["a3 b4 c5", "a2 b3 c5", "a2 b4 c5"]


def test_the_right_buffer_is_not_looked_at_again() -> None:
    query = bound("PATTERN SEQ(A a, B b) WITHIN 9")
    engine = Engine(query, ONE_BY_ONE, plan_of(query))
    assert matched(engine, events("b1 a2 b3 a4 b5")) == ["a2 b3", "a4 b5", "a2 b5"]
    assert counted(engine)["SEQ(a, b)"] == Counted("SEQ(a, b)", tried=3, made=3)


# Rounds and the earliest allowed time (§4.3) -------------------------------------------------------------------------


def test_nothing_is_assembled_before_an_event_of_the_final_class() -> None:
    query = bound("PATTERN SEQ(A a, B b, C c) WITHIN 99")
    engine = Engine(query, ONE_BY_ONE, plan_of(query, "SEQ(SEQ(a, b), c)"))
    engine.process(events("a1 b2 a3 b4"), watermark=5)
    (measured,) = engine.measured
    assert measured is not None
    assert measured.rounds == 0
    assert all(each.tried == 0 for each in counted(engine).values()), "events wait in their leaves"
    made = engine.process(events("c5"), watermark=6)
    assert words(made.matches) == ["a3 b4 c5", "a1 b2 c5", "a1 b4 c5"]
    (measured,) = engine.measured
    assert measured is not None
    assert measured.rounds == 1
    assert counted(engine)["SEQ(a, b)"].made == 3


def test_either_side_of_a_conjunction_is_final() -> None:
    query = bound("PATTERN A a & B b WITHIN 9")
    engine = Engine(query, ONE_BY_ONE, plan_of(query))
    assert matched(engine, events("a1 b2 c3 a4")) == ["a1 b2", "a4 b2"]
    (measured,) = engine.measured
    assert measured is not None
    assert measured.rounds == 3


@pytest.mark.parametrize(("window", "earliest"), [("WITHIN 5", 8), ("WITHIN 5 INCLUSIVE", 7)])
def test_what_starts_before_the_earliest_allowed_time_is_not_looked_at(window: str, earliest: int) -> None:
    query = bound(f"PATTERN SEQ(A a, B b) {window}")
    engine = Engine(query, plan=plan_of(query))
    stream = events(" ".join(f"a{time}" for time in range(1, 11)) + " b12")
    assert len(matched(engine, stream)) == 11 - earliest
    found = counted(engine)
    assert found["a"] == Counted("a", tried=10, made=11 - earliest)
    assert found["SEQ(a, b)"].tried == 11 - earliest


def test_the_earliest_allowed_time_is_that_of_the_first_final_event_of_a_round() -> None:
    query = bound("PATTERN SEQ(A a, B b) WITHIN 5")
    engine = Engine(query, plan=plan_of(query))
    assert matched(engine, events("a1 a4 b6 a7 b11")) == ["a4 b6", "a7 b11"]
    # Only a1 is too early for both; that a4 is too early for b11 is known when they meet.
    assert counted(engine)["a"] == Counted("a", tried=3, made=2)


def test_what_the_window_has_left_behind_is_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kleene.engine.executors.trees.records._WORTH_IT", 0)
    query = bound("PATTERN SEQ(A a, B b, C c) WITHIN 5")
    engine = Engine(query, plan=plan_of(query, "SEQ(SEQ(a, b), c)"))
    held = []
    for time in range(0, 400, 4):
        engine.process(events(f"a{time} b{time + 1} c{time + 2}"), watermark=time + 4)
        held.append(engine.statistics.runs)
    assert max(held) < 12


# Hash lookup (§5.2.2) ------------------------------------------------------------------------------------------------


def test_a_lookup_looks_only_at_equal_pairs() -> None:
    query = bound("PATTERN SEQ(A a, B b) WHERE a.id = b.id WITHIN 99")
    engine = Engine(query, plan=plan_of(query))
    stream = events(" ".join(f"a{time}/{time % 10}" for time in range(1, 41)) + " b50/3 b51/7")
    assert len(matched(engine, stream)) == 8
    assert counted(engine)["SEQ(a, b)"] == Counted("SEQ(a, b)", tried=8, made=8)


def test_a_comparison_looks_at_all_pairs() -> None:
    query = bound("PATTERN SEQ(A a, B b) WHERE a.id < b.id WITHIN 99")
    engine = Engine(query, plan=plan_of(query))
    stream = events(" ".join(f"a{time}/{time % 10}" for time in range(1, 41)) + " b50/3 b51/7")
    assert len(matched(engine, stream)) == 4 * (3 + 7)
    assert counted(engine)["SEQ(a, b)"].tried == 80


def test_a_partition_is_looked_up_on_both_sides_of_a_conjunction() -> None:
    query = bound("PATTERN A a & B b WHERE [id] WITHIN 99")
    engine = Engine(query, ONE_BY_ONE, plan_of(query))
    assert matched(engine, events("a1/1 b2/2 b3/1 a4/2 a5/3")) == ["a1 b3", "a4 b2"]
    assert counted(engine)["CONJ(a, b)"] == Counted("CONJ(a, b)", tried=2, made=2)


# NSEQ and NEG (§4.4.2, Algorithm 2) ----------------------------------------------------------------------------------

NEGATED = "PATTERN SEQ(A a, !(B b), C c) WITHIN 9"
RIGHT, LEFT, ABOVE = NEGATIONS = ("SEQ(a, NSEQ(!b, c))", "SEQ(NSEQ(a, !b), c)", "NEG(SEQ(a, c), !b)")


@pytest.mark.parametrize(("text", "tried"), [(RIGHT, 1), (LEFT, 2), (ABOVE, 2)])
def test_the_papers_example_of_negation(text: str, tried: int) -> None:
    """Figure 5: b3 negates c5, so that only what is in [3, 5) is looked at, which is a4."""
    query = bound(NEGATED)
    engine = Engine(query, plan=plan_of(query, text))
    assert matched(engine, events("a1 b2 b3 a4 c5")) == ["a4 c5"]
    name = "SEQ(a, c)"
    assert counted(engine)[name].tried == tried


@pytest.mark.parametrize("text", NEGATIONS)
@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        ("a1 b2 c3", []),
        ("a2 b2 c3", ["a2 c3"]),
        ("a1 b3 c3", ["a1 c3"]),
        ("a1 c3 b4 c5", ["a1 c3"]),
        ("b1 a2 c3", ["a2 c3"]),
        ("a1 b2 a3 c4 b5 c6", ["a3 c4"]),
    ],
)
@pytest.mark.parametrize("settings", [Settings(), ONE_BY_ONE], ids=["at once", "one by one"])
def test_what_is_simultaneous_with_a_neighbour_does_not_negate(
    text: str, stream: str, expected: list[str], settings: Settings
) -> None:
    query = bound(NEGATED)
    assert matched(Engine(query, settings, plan_of(query, text)), events(stream)) == expected


def test_a_condition_on_one_neighbour_stands_beside_it() -> None:
    """The last b that satisfies it negates, not the last b; beside the other neighbour it cannot be tested."""
    query = bound("PATTERN SEQ(A a, !(B b), C c) WHERE b.id = c.id WITHIN 99")
    engine = Engine(query, plan=plan_of(query, RIGHT))
    assert matched(engine, events("a1 b2/7 a3 b4/8 c5/7")) == ["a3 c5"]
    assert counted(engine)["SEQ(a, c)"].tried == 1
    with pytest.raises(AssertionError, match="no such tree"):
        plan_of(query, LEFT)


# CONJ (§4.4.3, Algorithm 3) ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [Settings(), ONE_BY_ONE], ids=["at once", "one by one"])
def test_a_conjunction_goes_in_both_directions(settings: Settings) -> None:
    query = bound("PATTERN A a & B b WITHIN 9")
    engine = Engine(query, settings, plan_of(query))
    assert sorted(matched(engine, events("a1 b2 a3 b4"))) == ["a1 b2", "a1 b4", "a3 b2", "a3 b4"]
    assert counted(engine)["CONJ(a, b)"] == Counted("CONJ(a, b)", tried=4, made=4)


@pytest.mark.parametrize("settings", [Settings(), ONE_BY_ONE], ids=["at once", "one by one"])
def test_simultaneous_events_are_paired_once(settings: Settings) -> None:
    query = bound("PATTERN A a & B b WITHIN 9")
    assert matched(Engine(query, settings, plan_of(query)), events("a1 b1")) == ["a1 b1"]


def test_an_event_fills_one_place_of_a_conjunction() -> None:
    query = bound("PATTERN A a & A b & A+ c[] WITHIN 9")
    (option,) = options(query)
    for each in all_trees(query, option):
        plan = check(Plan(query, (each,)))
        found = matched(Engine(query, plan=plan), events("a1 a2 a3"))
        assert sorted(found) == sorted(f"a{x} a{y} a{6 - x - y}" for x in (1, 2, 3) for y in (1, 2, 3) if x != y)


# DISJ (§4.4.4) -------------------------------------------------------------------------------------------------------


def test_the_records_of_a_disjunction_are_merged_by_their_end() -> None:
    query = bound("PATTERN SEQ(B b | (A a ; C c), D d) WITHIN 9")
    engine = Engine(query, plan=plan_of(query))
    assert matched(engine, events("a1 b2 c3 b4 d4 d5")) == ["b2 d4", "a1 c3 d4", "b4 d5", "b2 d5", "a1 c3 d5"]
    assert counted(engine)["DISJ(b, SEQ(a, c))"] == Counted("DISJ(b, SEQ(a, c))", tried=3, made=3)


# KSEQ (§4.4.5, Algorithm 4) ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("closure", "expected"),
    [("B*", ["a1 b2 b3 b5 c6"]), ("B^2", ["a1 b2 b3 c6", "a1 b3 b5 c6"]), ("B^3", ["a1 b2 b3 b5 c6"]), ("B^4", [])],
)
def test_the_papers_example_of_a_closure(closure: str, expected: list[str]) -> None:
    """Figure 6: the maximal group between a1 and c6, or two in a row."""
    query = bound(f"PATTERN SEQ(A a, {closure}, C c) WITHIN 9")
    assert matched(Engine(query, plan=plan_of(query)), events("a1 b2 b3 b5 c6")) == expected


def test_a_star_takes_nothing_only_where_there_is_nothing() -> None:
    query = bound("PATTERN SEQ(A a, B*, C c) WHERE B.id = '7' WITHIN 9")
    plan = plan_of(query)
    assert matched(Engine(query, plan=plan), events("a1 b2/7 b3 a4 b5 c6")) == ["a4 c6", "a1 b2 c6"]


def test_at_the_end_the_window_is_the_bound() -> None:
    query = bound("PATTERN SEQ(A a, B+) WITHIN 5")
    engine = Engine(query, plan=plan_of(query))
    first = engine.process(events("a1 b2 b5"), watermark=6)
    assert words(first.matches) == [], "another b could still come"
    second = engine.process(events("b6"), watermark=7)
    assert words(second.matches) == ["a1 b2 b5"]


def test_a_negation_beside_a_group_is_bounded_by_the_group() -> None:
    query = bound("PATTERN SEQ(A a, B+, !(D d), C c) WITHIN 9")
    plan = plan_of(query)
    assert matched(Engine(query, plan=plan), events("a1 d2 b3 c5")) == ["a1 b3 c5"]
    assert matched(Engine(query, plan=plan), events("a1 b3 d4 c5")) == []


# Events that last ----------------------------------------------------------------------------------------------------


def lasting(*spans: tuple[str, int, int]) -> pa.Table:
    kinds, starts, ends = zip(*spans, strict=True)
    return pa.table({"type": kinds, "began": pa.array(starts, pa.int64()), "ts": pa.array(ends, pa.int64())})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PATTERN SEQ(A a, B b) WITHIN 9", ["a3 b6"]),
        ("PATTERN A a & B b WITHIN 9", ["a3 b4", "a3 b6", "a7 b6", "a7 b4"]),
        ("PATTERN A a & B b WITHIN 5", ["a3 b4", "a7 b6"]),
    ],
)
@pytest.mark.parametrize("settings", [Settings(), ONE_BY_ONE], ids=["at once", "one by one"])
def test_before_and_windows_go_by_the_whole_of_an_event(text: str, expected: list[str], settings: Settings) -> None:
    stream = lasting(("A", 1, 3), ("B", 2, 4), ("B", 4, 6), ("A", 5, 7))
    query = Query(text).bind(schema_on(stream.schema, Schema(start="began")))
    assert sorted(matched(Engine(query, settings, plan_of(query)), stream)) == sorted(expected)


@pytest.mark.parametrize("text", NEGATIONS)
def test_what_reaches_into_a_neighbour_does_not_negate(text: str) -> None:
    stream = lasting(("A", 0, 2), ("B", 2, 4), ("C", 5, 6), ("B", 5, 7), ("C", 8, 9))
    query = Query("PATTERN SEQ(A a, !(B b), C c) WITHIN 20").bind(schema_on(stream.schema, Schema(start="began")))
    found = matched(Engine(query, plan=plan_of(query, text)), stream)
    assert found == ["a2 c6"], "the first b begins in a, the second one after it"


# Changes of the plan (§5.3) ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["SEQ(SEQ(a, b), NSEQ(!d, c))", "SEQ(a, SEQ(b, NSEQ(!d, c)))"])
@pytest.mark.parametrize("other", ["SEQ(SEQ(a, b), NSEQ(!d, c))", "SEQ(a, SEQ(b, NSEQ(!d, c)))"])
def test_a_restored_engine_goes_on_under_another_plan(text: str, other: str) -> None:
    query = bound("PATTERN SEQ(A a, B b, !(D d), C c) WITHIN 9")
    engine = Engine(query, plan=plan_of(query, text))
    first = engine.process(events("a1 b2 c3 b4 d5"), watermark=6)
    engine = Engine.restore(query, engine.snapshot(), plan=plan_of(query, other))
    second = engine.process(events("c6 b7 c8"), watermark=9)
    assert words(first.matches) == ["a1 b2 c3"]
    assert words(second.matches) == ["a1 b7 c8"]
