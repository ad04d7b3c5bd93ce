"""Equality is equality, however it is written: brackets and what they stand for have the same plan and matches."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest
from tests.soaking import rounds

import kleene
from kleene.frames.arrow import schema_on
from kleene.optimize.planner import plan_query
from kleene.pattern.links import key_of
from kleene.pattern.query import BoundQuery, Query
from kleene.pattern.schema import Schema
from kleene.plan.settings import Budget, ExecutorKind, Settings
from kleene.reference.evaluator import reference_match
from kleene.reference.tables import any_table

QUERIES = 500
ANY, NEXT = "skip_till_any_match", "skip_till_next_match"
COLUMNS = {"type": pa.string(), "ts": pa.int64(), "k": pa.int64(), "s": pa.string(), "x": pa.int64()}


def bound(text: str, schema: Schema | None = None) -> BoundQuery:
    return Query(text).bind(schema_on(pa.schema(COLUMNS), schema or Schema()))


@pytest.mark.parametrize(
    ("pattern", "spelled"),
    [
        ("SEQ(A a, B b, C c)", "a.k = b.k AND b.k = c.k"),
        ("SEQ(A a, B b, C c)", "c.k = a.k AND b.k = a.k"),
        ("SEQ(A a, B b, C c)", "a.k = b.k = c.k"),
        ("SEQ(A a, !(B b), C c)", "a.k = c.k AND b.k = c.k"),
        ("SEQ(A a, !(B b), C c)", "a.k = b.k AND a.k = c.k"),
        ("(A a & B b) ; C c", "a.k = b.k AND c.k = b.k"),
        ("A a ; (B b | C c)", "a.k = b.k AND a.k = c.k"),
        ("SEQ(A a, B? b, C c)", "a.k = b.k AND a.k = c.k"),
    ],
)
def test_what_is_spelled_out_is_the_key(pattern: str, spelled: str) -> None:
    assert key_of(bound(f"PATTERN {pattern} WHERE {spelled} WITHIN 9")) == ("k",)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("PATTERN SEQ(A a, B b, C c) WHERE a.k = b.k WITHIN 9", "c has any key"),
        ("PATTERN SEQ(A a, B? b, C c) WHERE a.k = b.k AND b.k = c.k WITHIN 9", "without b nothing links the others"),
        ("PATTERN SEQ(A a, !(B b)) WHERE a.k = b.k WITHIN 9", "an A without a key is a match"),
        ("PATTERN SEQ(A a, !(B b), C c) WHERE a.k = c.k WITHIN 9", "a B of any key forbids"),
        ("PATTERN SEQ(A a, B b) WHERE a.k = b.k WITHIN 9 TIMEOUTS INTO Late", "an A without a key is a timeout"),
        ("PATTERN SEQ(A a, B b) WHERE a.k = b.k WITHIN 9 EVENTS", "all events of the stream count"),
        ("PATTERN SEQ(A a, B b) WHERE a.k = b.k WITHIN 9 OUTPUT NON_OVERLAP", "matches of two keys may overlap"),
        ("PATTERN SEQ(A a, B b) WHERE strict_contiguity { a.k = b.k } WITHIN 9", "events between have any key"),
        ("PATTERN SEQ(A a, B b) WHERE partition_contiguity { a.k = b.k } WITHIN 9", "the stream is one partition"),
        (f"PATTERN SEQ(A a, B b, C c) WHERE {NEXT} {{ a.k = c.k AND b.k = c.k }} WITHIN 9", "any B is taken"),
        (f"PATTERN SEQ(A+ a[], B b) WHERE {NEXT} {{ b.k = a[1].k }} WITHIN 9", "any A is taken"),
        ("PATTERN SEQ(A a, B b) WHERE a.k = b.k OR a.x > 1 WITHIN 9", "it need not hold"),
        ("PATTERN SEQ(A a, B b) WHERE a.k = b.x AND a.x = b.k WITHIN 9", "other attributes"),
    ],
)
def test_what_is_no_key(text: str, why: str) -> None:
    assert key_of(bound(text)) == (), why


def test_a_comparison_with_what_a_type_lacks_links_nothing() -> None:
    schema = Schema(types={"A": ["k"], "B": ["x"], "C": ["k"]})
    assert key_of(bound("PATTERN SEQ(A a, ANY(B, C) b) WHERE a.k = b.k WITHIN 9", schema)) == ()


def test_brackets_come_first() -> None:
    assert key_of(bound("PATTERN SEQ(A a, B b) WHERE a.k = b.k AND [s] WITHIN 9")) == ("s", "k")


# Random queries ------------------------------------------------------------------------------------------------------

# A pattern, the strategies it has, and what [k] stands for.
FORMS = (
    ("SEQ(A a, B b)", (ANY, NEXT), ("a.k = b.k", "b.k = a.k")),
    ("SEQ(A a, B b, C c)", (ANY,), ("a.k = b.k AND b.k = c.k", "a.k = c.k AND b.k = c.k", "a.k = b.k = c.k")),
    ("SEQ(A a, B b, C c)", (NEXT,), ("a.k = b.k AND b.k = c.k", "a.k = b.k AND a.k = c.k")),
    ("SEQ(A a, !(B b), C c)", (ANY, NEXT), ("a.k = c.k AND a.k = b.k", "c.k = a.k AND b.k = c.k")),
    ("SEQ(A a, C c, !(B b))", (ANY, NEXT), ("a.k = c.k AND a.k = b.k",)),
    ("SEQ(A+ a[], B b)", (ANY, NEXT), ("a[i].k = a[1].k AND b.k = a[1].k", "a[i].k = a[i-1].k AND b.k = a[a.LEN].k")),
    ("SEQ(A a, B+ b[], C c)", (ANY, NEXT), ("b[1].k = a.k AND b[i].k = b[1].k AND c.k = a.k",)),
    ("A a & B b", (ANY,), ("a.k = b.k",)),
    ("(A a & B b) ; C c", (ANY,), ("a.k = b.k AND b.k = c.k",)),
    ("A a ; (B b | C c)", (ANY,), ("a.k = b.k AND c.k = a.k",)),
    ("A a ; B? b ; C c", (ANY,), ("a.k = b.k AND a.k = c.k",)),
)


def draw(rng: Random) -> tuple[str, str, pa.Table]:
    """A query in brackets, the same spelled out, and events of which some have no key."""
    pattern, strategies, forms = rng.choice(FORMS)
    more = rng.choice(("", "", " AND c.x > 1", " AND c.x < a.x + 3")) if " c" in pattern and "|" not in pattern else ""
    if "a[]" in pattern:
        more = ""
    strategy, window = rng.choice(strategies), f"WITHIN {rng.randint(3, 12)}"

    def text(key: str) -> str:
        return f"PATTERN {pattern} WHERE {strategy} {{ {key}{more} }} {window}"

    rows: list[dict[str, Any]] = []
    for number in range(rng.randint(8, 40)):
        key = rng.choice((0, 1, 2, None))
        rows.append({"type": rng.choice("ABC"), "ts": number // 2, "k": key, "s": "p", "x": rng.randint(0, 4)})
    return text("[k]"), text(rng.choice(forms)), pa.Table.from_pylist(rows, schema=pa.schema(COLUMNS))


def matched(table: pa.Table) -> list[Any]:
    """What was matched, without what the texts themselves say: ids, names, and the column of the key."""
    kept = [name for name in table.column_names if name not in ("match_id", "query", "key")]
    return sorted(map(repr, table.select(kept).to_pylist()))


@pytest.mark.parametrize("seed", range(rounds(QUERIES) // 25))
def test_spelled_out_and_bracketed_queries_are_alike(seed: int, record_property: Any) -> None:
    rng, some = Random(seed), 0
    for _ in range(25):
        brackets, spelled, table = draw(rng)
        expected = matched(any_table(reference_match(table, spelled), table))
        some += bool(expected)
        for text in (brackets, spelled):
            assert matched(kleene.match(table, text)) == expected, text
        for executor in (None, ExecutorKind.AUTOMATON, ExecutorKind.TREES):
            settings = Settings(executor=executor, budget=Budget(state_bytes=1 << 40))
            plans = [plan_query(bound(text), settings) for text in (brackets, spelled)]
            keys = [{each.key for each in plan.alternatives} for plan in plans]
            assert keys[0] == keys[1] == {("k",)} or plans[0].why_on_reference, (spelled, executor)
            assert plans[0].alternatives == plans[1].alternatives, (spelled, executor)
            engine = kleene.Engine(bound(spelled), settings) if plans[1].why_on_reference is None else None
            if engine is not None:
                parts = [engine.process(table.slice(0, 9), 4).matches, engine.finish(table.slice(9)).matches]
                found = pa.concat_tables([part for part in parts if part is not None])
                assert matched(found) == expected, (spelled, executor)
    record_property("counted", f"brackets = spelled out: 25 queries, {some} with matches")
    assert some >= 8
