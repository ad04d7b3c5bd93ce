"""Which events must meet: the route of a query, from its text. No Spark is needed."""

from __future__ import annotations

import pyarrow as pa
import pytest

import kleene
from kleene.frames.arrow import schema_on
from kleene.pattern.schema import Schema
from kleene.plan.settings import Policy
from kleene.queries.feeding import bound_in_order, in_dependency_order
from kleene.spark.routing import ByKey, ByTime, OneTask, Route, routes_of

COLUMNS = pa.schema(
    [
        ("type", pa.string()),
        ("ts", pa.int64()),
        ("id", pa.int64()),
        ("ref", pa.int64()),
        ("x", pa.float64()),
        ("tags", pa.list_(pa.string())),
    ]
)


def route(text: str, schema: Schema | None = None, policy: Policy = Policy.FAIL) -> Route:
    bound = kleene.query(text, name="q").bind(schema_on(COLUMNS, schema or Schema()))
    return routes_of([bound], COLUMNS, policy)[0]


KEY = ByKey(((None, ("id",)),))


def by_type(**columns: str) -> ByKey:
    return ByKey(tuple((kind, (name,)) for kind, name in columns.items()))


ROUTES = [
    ("SEQ(A a, B b) WHERE [id]", KEY),
    ("SEQ(A a, !(B b), C c) WHERE [id, x] WITHIN 5", ByKey(((None, ("id", "x")),))),
    # An equality that links all components is as good as a key.
    ("SEQ(A a, B b, C c) WHERE a.id = b.id AND a.id = c.id", by_type(A="id", B="id", C="id")),
    ("SEQ(A a, B b, C c) WHERE a.id = b.ref AND b.ref = c.id", by_type(A="id", B="ref", C="id")),
    ("SEQ(A a, !(B b), C c) WHERE c.id = b.id AND a.id = c.id WITHIN 5", by_type(A="id", B="id", C="id")),
    ("A a & B b WHERE a.id = b.id WITHIN 5", by_type(A="id", B="id")),
    ("SEQ(A a, B b) WHERE a.id = b.id AND a.x < b.x OUTPUT COMPRESSED", by_type(A="id", B="id")),
    (
        "SEQ(A+ a[], B b) WHERE a[i].id = a[i-1].id AND b.id = a[1].id WITHIN 5",
        by_type(A="id", B="id"),
    ),
    # Not when it links only some of them, or when it might not be tested.
    ("SEQ(A a, B b, C c) WHERE a.id = b.id WITHIN 5", ByTime(0, 6)),
    ("SEQ(A a, !(B b), C c) WHERE a.id = c.id WITHIN 5", ByTime(0, 6)),
    ("SEQ(A a, B b) WHERE a.id = b.id OR a.x = b.x WITHIN 5", ByTime(0, 6)),
    ("SEQ(A+ a[], B b) WHERE b.id = a[1].id WITHIN 5", ByTime(0, 6)),
    ("SEQ(A+ a[], B b) WHERE a[1].id = a[a.LEN].id AND b.id = a[1].id WITHIN 5", ByTime(0, 6)),
    # An event of A that went by two columns could meet the same events twice.
    ("SEQ(A a, A b) WHERE a.id = b.ref WITHIN 5", ByTime(0, 6)),
    ("SEQ(A a, B b) WHERE a.id = b.x WITHIN 5", ByTime(0, 6)),
    # A run that skips till the next match must not take an event of another bucket on any edge.
    ("SEQ(A a, B b, C c) WHERE skip_till_next_match { a.id = b.id AND a.id = c.id }", by_type(A="id", B="id", C="id")),
    ("SEQ(A a, B b, C c) WHERE skip_till_next_match { a.id = c.id AND b.id = c.id } WITHIN 5", ByTime(0, 6)),
    ("SEQ(A a, B b, C c) WHERE a.id = c.id AND b.id = c.id WITHIN 5 TIMEOUTS INTO Late", ByTime(0, 6)),
    # What depends on the partition goes by the partition alone.
    ("SEQ(A a, B b) WHERE a.id = b.id WITHIN 5 EVENTS", ByTime(0, 6, events=True)),
    ("SEQ(A a, B b) WHERE a.id = b.id WITHIN 5 OUTPUT NON_OVERLAP", ByTime(0, 6)),
    ("SEQ(A a, B b) WHERE [id] WITHIN 5 EVENTS", KEY),
    ("SEQ(A a, B b) WHERE partition_contiguity { [id] }", KEY),
    ("SEQ(A a, B b) WHERE strict_contiguity { [id] } WITHIN 5", ByTime(0, 6)),
    # Slices of time, with what decides on a match around them.
    ("SEQ(A a, B b) WITHIN 5", ByTime(0, 6)),
    ("!(C c) ; A a ; B b WITHIN 5", ByTime(6, 6)),
    ("A a ; B b ; !(C c) WITHIN 5", ByTime(0, 6)),
    ("A+ ; B b WITHIN 5", ByTime(6, 6)),
    ("SEQ(A+ a[], B b) WITHIN 5 OUTPUT COMPRESSED", ByTime(6, 0, by_end=True)),
    ("!(C c) ; A+ a[] ; B b ; !(C d) WITHIN 5 OUTPUT COMPRESSED", ByTime(12, 6, by_end=True)),
    ("SEQ(A+ a[], B b) WITHIN 5 OUTPUT COMPRESSED TIMEOUTS INTO Late", ByTime(6, 6, by_end=True)),
    ("A a WHERE a.x > 1", ByTime(0, 0, by_end=True)),
]


@pytest.mark.parametrize(("text", "expected"), ROUTES, ids=[text for text, _ in ROUTES])
def test_route(text: str, expected: Route) -> None:
    assert route(f"PATTERN {text}") == expected


@pytest.mark.parametrize(
    ("text", "schema", "reason"),
    [
        ("SEQ(A a, B b)", None, "neither a partition key, such as `[id]`, nor a window"),
        ("SEQ(A a, B b) WHERE strict_contiguity { [id] }", None, "judged against all events"),
        ("SEQ(A a, B b) WITHIN 5 EVENTS", Schema(start="ref"), "positions of events that last"),
        ("SEQ(A a, B b) WITHIN 5 OUTPUT NON_OVERLAP", Schema(tie_breaker="ref"), "by the tie-breaker"),
        (f"{' & '.join(f'A a{n}' for n in range(61))} WITHIN 5 OUTPUT NON_OVERLAP", None, "on the reference evaluator"),
    ],
)
def test_one_task_and_why(text: str, schema: Schema | None, reason: str) -> None:
    found = route(f"PATTERN {text}", schema)
    assert isinstance(found, OneTask)
    assert reason in found.reason


@pytest.mark.parametrize("policy", [Policy.DROP_OLDEST, Policy.EMIT_COMPRESSED])
def test_a_budget_that_leaves_out_matches_counts_all_that_end_with_an_event(policy: Policy) -> None:
    assert route("PATTERN SEQ(A a, B b) WITHIN 5", policy=policy) == ByTime(6, 0, by_end=True)
    assert route("PATTERN SEQ(A a, B b) WITHIN 5 TIMEOUTS INTO Late", policy=policy) == ByTime(6, 6, by_end=True)
    assert route("PATTERN !(C c) ; A a ; B b WITHIN 5 EVENTS", policy=policy) == ByTime(12, 0, True, True)
    assert route("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 5", policy=policy) == KEY
    found = route("PATTERN SEQ(A a, B b) WITHIN 5 OUTPUT NON_OVERLAP", policy=policy)
    assert isinstance(found, OneTask)
    assert "some of which its budget may leave out" in found.reason


def test_an_attribute_that_a_type_lacks_links_nothing() -> None:
    """A comparison with it is true (semantics §2), so events of any `id` may match."""
    schema = Schema(types={"A": {"id": "int"}, "B": {"id": "int"}, "C": {"x": "float"}})
    text = "PATTERN SEQ(A a, ANY(B, C) b) WHERE a.id = b.id WITHIN 5"
    assert route(text, schema) == ByTime(0, 6)
    assert isinstance(route(text.replace("ANY(B, C)", "B"), schema), ByKey)


def routes(*texts: str) -> list[Route]:
    schema = schema_on(COLUMNS, Schema())
    queries = [kleene.query(text, name=f"q{number}") for number, text in enumerate(texts)]
    bound = sorted(bound_in_order(in_dependency_order(queries, schema), schema), key=lambda placed: placed[0])
    return list(routes_of([query for _, query in bound], COLUMNS))


def test_a_longer_key_goes_with_a_shorter_one() -> None:
    found = routes(
        "PATTERN SEQ(A a, B b) WHERE [id, x]", "PATTERN SEQ(A a, C c) WHERE [id]", "PATTERN SEQ(A a, B b) WHERE [x]"
    )
    assert found == [KEY, KEY, ByKey((((None, ("x",))),))]


def test_queries_that_feed_each_other_stay_together() -> None:
    maker = "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 5 RETURN {} AS id INTO S"
    reader = "PATTERN SEQ(S s, C c) WHERE [id] WITHIN 5"
    assert routes(maker.format("a.id"), reader) == [KEY, KEY]
    found = routes(maker.format("a.ref"), reader, "PATTERN SEQ(A a, B b) WHERE [x]")
    assert isinstance(found[0], OneTask)
    assert found[0] == found[1]
    assert found[2] == ByKey((((None, ("x",))),))
