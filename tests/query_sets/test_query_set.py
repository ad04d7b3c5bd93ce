"""The face of a set of queries: what comes in, what is refused, what is there, and what is given."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import kleene
from kleene.errors import (
    BadParameter,
    BudgetExceeded,
    NameTaken,
    NoSuchQuery,
    SyntaxProblem,
    TypeMismatch,
    UnboundedState,
    UnknownAttribute,
    UnknownKind,
    UnknownParameter,
)
from kleene.query_set import QuerySet

STOCK = pa.schema(
    {"type": pa.string(), "ts": pa.int64(), "name": pa.string(), "price": pa.float64(), "volume": pa.int64()}
)
RISING = "σ{b.name = :name and b.price > :least}(σ{a.name = :name}(Stock a) ;{b.name = :name and DUR <= :t} Stock b)"


def quotes(*rows: tuple[str, float]) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {"type": "Stock", "ts": moment, "name": name, "price": price, "volume": 100 * moment}
            for moment, (name, price) in enumerate(rows, 1)
        ],
        STOCK,
    )


def counts(rules: QuerySet, events: Any) -> dict[str, int]:
    counted = rules.match(events, results="counts").counts
    return dict(zip(counted.column("query").to_pylist(), counted.column("matches").to_pylist(), strict=True))


# Coming ---------------------------------------------------------------------------------------------------------------


def test_a_row_of_a_table_is_a_query() -> None:
    rules = QuerySet(STOCK)
    table = pa.table(
        {"rule": ["x", "y", "z"], "name": ["IBM", "IBM", "Sun"], "least": [10.0, 20.0, 0.0], "t": [5, 5, 2]}
    )
    added = rules.add_many(RISING, table, names="rule")
    assert (added.number, added.refused.num_rows, len(rules)) == (3, 0, 3)
    assert rules.names == ["x", "y", "z"]
    events = quotes(("IBM", 5.0), ("Sun", 1.0), ("IBM", 15.0), ("Sun", 2.0), ("IBM", 25.0))
    # x: 5 → 15, 15 → 25; y: the first later IBM of 5 is 15, which is no more than 20; z: 1 → 2 takes three ticks.
    assert counts(rules, events) == {"x": 2, "y": 1}


def test_parameters_may_be_integers_reals_strings_and_booleans() -> None:
    columns = pa.schema({"type": pa.string(), "ts": pa.int64(), "flag": pa.bool_(), "x": pa.int64(), "s": pa.string()})
    rules = QuerySet(columns)
    table = pa.table(
        {"f": [True, False], "x": pa.array([1, 2], pa.int8()), "s": pa.array(["a", "b"]).dictionary_encode()}
    )
    rules.add_many("σ{flag = :f and x > :x and s = :s}(A a)", table, names=["one", "two"])
    rows = [
        {"type": "A", "ts": 1, "flag": True, "x": 2, "s": "a"},
        {"type": "A", "ts": 2, "flag": False, "x": 2, "s": "b"},
    ]
    assert counts(rules, pa.Table.from_pylist(rows, columns)) == {"one": 1}


def test_a_wrong_text_among_many_is_refused_and_the_others_come() -> None:
    rules = QuerySet(STOCK)
    texts = [
        "σ{price > 10.0}(Stock a)",
        "σ{prize > 10.0}(Stock a)",
        "σ{price > 20.0}(Stock a)",
        "σ{price > }(Stock a)",
        "σ{price > 'x'}(Stock a)",
    ]
    added = rules.add_many(texts, names=list("abcde"))
    assert added.number == 2
    assert rules.names == ["a", "c"]
    assert added.refused.column("row").to_pylist() == [1, 3, 4]
    assert added.refused.column("name").to_pylist() == ["b", "d", "e"]
    assert added.refused.column("code").to_pylist() == ["KL203", "KL101", "KL301"]
    first = added.refused.column("error")[0].as_py()
    assert "1 | σ{prize > 10.0}(Stock a)\n   |   ^^^^^" in first
    assert "did you mean `price`?" in first


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("σ{price > }(Stock a)", SyntaxProblem),
        ("σ{prize > 1}(Stock a)", UnknownAttribute),
        ("σ{price > 'x'}(Stock a)", TypeMismatch),
    ],
)
def test_a_wrong_query_is_an_error_and_nothing_is_added(text: str, problem: type[Exception]) -> None:
    rules = QuerySet(STOCK)
    rules.add("σ{price > 1.0}(Stock a)", name="right")
    for _ in range(2):
        with pytest.raises(problem):
            rules.add(text, name="wrong")
    assert rules.names == ["right"]


def test_a_parameter_of_the_wrong_type_is_one_error_and_nothing_is_added() -> None:
    rules = QuerySet(STOCK)
    table = pa.table({"name": ["IBM"] * 1000, "least": ["x"] * 1000, "t": [5] * 1000})
    with pytest.raises(TypeMismatch, match=r"cannot compare float > string"):
        rules.add_many(RISING, table, names=[str(number) for number in range(1000)])
    assert not len(rules)


def test_a_parameter_without_a_column_is_an_error() -> None:
    with pytest.raises(BadParameter, match="`:least` has no column"):
        QuerySet(STOCK).add_many(RISING, pa.table({"name": ["IBM"], "leats": [1.0], "t": [5]}))


def test_a_row_whose_parameter_is_null_never_matches_and_is_a_query_like_others() -> None:
    rules = QuerySet(STOCK)
    added = rules.add_many("σ{price > :low}(Stock a)", pa.table({"low": [1.0, None, 2.0]}), names=["a", "b", "c"])
    assert (added.number, sorted(rules.names)) == (3, ["a", "b", "c"])
    assert counts(rules, quotes(("IBM", 1.5))) == {"a": 1}


# Names ----------------------------------------------------------------------------------------------------------------


def test_a_name_is_given_once() -> None:
    rules = QuerySet(STOCK)
    rules.add("σ{price > 1.0}(Stock a)", name="a")
    with pytest.raises(NameTaken, match="called `a` already"):
        rules.add("σ{price > 2.0}(Stock a)", name="a")
    with pytest.raises(NameTaken):
        rules.add("PATTERN Stock a WHERE a.price > 2.0", name="a")
    added = rules.add_many("σ{price > :p}(Stock a)", pa.table({"p": [1.0, 2.0, 3.0, 4.0]}), names=["a", "b", "b", None])
    assert added.number == 1
    assert added.refused.column("row").to_pylist() == [0, 2, 3]
    assert set(added.refused.column("code").to_pylist()) == {"KL213"}
    assert sorted(rules.names) == ["a", "b"]
    assert "price > 2.0" in rules.describe("b").replace(":p", "2.0")


def test_queries_without_names_get_numbers() -> None:
    rules = QuerySet(STOCK)
    assert rules.add("σ{price > 1.0}(Stock a)", name="q1") == "q1"
    assert [rules.add(f"σ{{price > {number}.0}}(Stock a)") for number in range(2)] == ["q2", "q3"]
    rules.add_many("σ{price > :p}(Stock a)", pa.table({"p": [1.0, 2.0]}))
    assert sorted(rules.names) == ["q1", "q2", "q3", "q4", "q5"]


def test_nobody_cannot_be_removed() -> None:
    rules = QuerySet(STOCK)
    rules.add("σ{price > 1.0}(Stock a)", name="cheap")
    with pytest.raises(NoSuchQuery, match="did you mean `cheap`"):
        rules.remove("cheep")
    rules.remove("cheap")
    with pytest.raises(NoSuchQuery):
        rules.remove("cheap")
    rules.add("σ{price > 2.0}(Stock a)", name="cheap")
    assert counts(rules, quotes(("IBM", 1.5), ("IBM", 2.5))) == {"cheap": 1}


def test_names_are_found_among_many_that_come_and_go() -> None:
    rules = QuerySet(STOCK)
    names = [f"rule {number} é" for number in range(3000)]
    rules.add_many("σ{price > :p}(Stock a)", pa.table({"p": [float(number) for number in range(3000)]}), names=names)
    for name in names[::3]:
        rules.remove(name)
    assert len(rules) == 2000
    assert names[0] not in rules
    assert names[1] in rules
    rules.add_many("σ{price > :p}(Stock a)", pa.table({"p": [1.0] * 1000}), names=names[::3])
    assert sorted(rules.names) == sorted(names)
    assert counts(rules, quotes(("IBM", 1.5))) == dict.fromkeys([*names[::3], names[1]], 1)


# What there is --------------------------------------------------------------------------------------------------------


def test_a_query_is_described_as_one_would_write_it() -> None:
    rules = QuerySet(STOCK)
    rules.add("select{ price>10.50 and name = 'it''s' }(Stock a)", name="text")
    rules.add("σ{price > :low}(Stock a)", name="given", params={"low": 5.0})
    rules.add("PATTERN SEQ(Stock a, Stock b) WHERE a.price > 2 * b.price AND b.price < 5 WITHIN 5", name="pattern")
    assert rules.describe("text") == "σ{price > 10.5 AND name = 'it''s'}(Stock a)"
    assert rules.describe("given") == "σ{price > :low}(Stock a) -- :low = 5.0"
    assert rules.describe("pattern").split("\n") == [
        "PATTERN SEQ(Stock a, Stock b)",
        "WHERE a.price > 2 * b.price AND b.price < 5",
        "WITHIN 5",
    ]


def test_equal_prefixes_are_one() -> None:
    rules = QuerySet(STOCK)
    text = "σ{{b.price > {0}}}(σ{{a.name = 'IBM' and a.price < 5.0}}(Stock a) ; Stock b)"
    rules.add_many([text.format(float(number)) for number in range(100)])
    # The root, one node after the first event, and a hundred after the second.
    assert rules._shared.nodes.node_count == 102
    rules.add("σ{b.price > 7.0}(σ{a.price < 5.0 and a.name = 'IBM'}(Stock a) ; Stock b)")
    rules.names  # noqa: B018 - puts in what came
    assert rules._shared.nodes.node_count == 102


def test_results_are_rows_lists_or_counts() -> None:
    rules = QuerySet(STOCK)
    rules.add_many("σ{price > :p}(Stock a)", pa.table({"p": [1.0, 2.0, 3.0]}), names=["a", "b", "c"])
    events = quotes(("IBM", 2.5), ("Sun", 0.5), ("Sun", 1.5))
    (rows,) = rules.match(events).matches
    assert sorted(zip(rows.column("query").to_pylist(), rows.column("end").to_pylist(), strict=True)) == [
        ("a", 1),
        ("a", 3),
        ("b", 1),
    ]
    (lists,) = rules.match(events, results="queries").matches
    assert [sorted(names) for names in lists.column("queries").to_pylist()] == [["a", "b"], ["a"]]
    assert lists.column("a").to_pylist()[0]["price"] == 2.5
    assert rules.match(events, results="counts").matches == ()
    with pytest.raises(UnknownKind, match="did you mean `counts`"):
        rules.match(events, results="count")


def test_matches_come_in_the_kind_of_the_events() -> None:
    rules = QuerySet(STOCK)
    rules.add("σ{price > 1.0}(Stock a)", name="a")
    frame = quotes(("IBM", 2.5)).to_pandas()
    (found,) = rules.match(frame).matches
    assert type(found) is type(frame)
    assert found["query"].tolist() == ["a"]


def test_results_of_other_shapes_are_other_tables() -> None:
    rules = QuerySet(STOCK)
    rules.add("σ{price > 1.0}(Stock a)", name="a")
    rules.add("π{a.name}(σ{price > 1.0}(Stock a))", name="b")
    rules.add("PATTERN Stock a WHERE a.price > 1.0", name="c")
    tables = rules.match(quotes(("IBM", 2.5))).matches
    assert sorted(table.column("query")[0].as_py() for table in tables) == ["a", "b", "c"]
    for table in tables:
        name = table.column("query")[0].as_py()
        assert table.num_rows == 1, name


def test_bad_rows_and_late_events_are_shown() -> None:
    rules = QuerySet(STOCK)
    rules.add("σ{price > 1.0}(Stock a)", name="a")
    rules.process(quotes(("IBM", 2.0), ("IBM", 3.0)), watermark=3)
    late = rules.process(quotes(("Sun", 9.0)), watermark=4)
    assert late.late.column("name").to_pylist() == ["Sun"]
    bad = quotes(("IBM", 2.0)).set_column(1, "ts", pa.array([None], pa.int64()))
    assert rules.process(bad, watermark=5).bad_rows.num_rows == 1


def test_a_set_is_made_of_a_table_or_of_its_columns() -> None:
    for events in (STOCK, quotes(("IBM", 1.0)), quotes(("IBM", 1.0)).to_pandas()):
        rules = QuerySet(events)
        rules.add("σ{price >= 1.0}(Stock a)", name="a")
        assert counts(rules, quotes(("IBM", 1.0))) == {"a": 1}
    assert kleene.QuerySet is QuerySet


def test_classes_with_predicates_share() -> None:
    schema = kleene.Schema(classes={"Dear": "Stock WHERE price > 100", "Any": "ANY(Stock, Bond)"})
    rules = QuerySet(STOCK, schema=schema)
    texts = {"a": "σ{name = 'IBM'}(Dear a)", "b": "σ{name = 'IBM'}(Any a) ; Dear b", "c": "σ{name = 'IBM'}(Stock a)"}
    for name, text in texts.items():
        rules.add(text, name=name)
    events = quotes(("IBM", 50.0), ("IBM", 150.0), ("Sun", 200.0))
    for name, text in texts.items():
        alone = kleene.match(events, kleene.query(text, name=name), schema=schema)
        found = [table for table in rules.match(events).matches if name in table.column("query").to_pylist()]
        ids = [row["match_id"] for table in found for row in table.to_pylist() if row["query"] == name]
        assert sorted(ids) == sorted(alone.column("match_id").to_pylist()), name
        assert ids


@pytest.mark.parametrize(
    "text",
    [
        "σ{volume IN (100, 300)}(Stock a)",
        "σ{name = 'Sun' or volume = 100}(Stock a)",
        "σ{name = 'Sun' or name = 'Sun' or volume = 200}(Stock a)",
        f"σ{{volume IN ({', '.join(map(str, range(0, 2000, 50)))})}}(Stock a)",
        "σ{b.name IN ('Sun', 'IBM') and b.price > 1.0}(σ{volume IN (100, 200)}(Stock a) ; Stock b)",
        "σ{b.name = 'Sun' or b.price > a.price}(Stock a ; Stock b)",
    ],
)
def test_one_of_several_values_is_several_edges(text: str) -> None:
    rules = QuerySet(STOCK)
    other = text.replace("100", "200").replace("'Sun'", "'IBM'")
    for name, each in {"a": text, "b": other, "again": text}.items():
        rules.add(each, name=name)
    events = quotes(("IBM", 2.5), ("Sun", 0.5), ("Sun", 1.5), ("IBM", 3.0))
    for name, each in {"a": text, "b": other, "again": text}.items():
        alone = kleene.match(events, kleene.query(each, name=name)).column("match_id").to_pylist()
        found = [
            row["match_id"]
            for table in rules.match(events).matches
            for row in table.to_pylist()
            if row["query"] == name
        ]
        assert sorted(found) == sorted(alone), name
        assert alone or name == "b"


def test_unions_share_too() -> None:
    rules = QuerySet(STOCK)
    text = "σ{{b.volume > {0}}}((σ{{name = 'IBM'}}(Stock a) ∪ σ{{price > 1.0}}(Stock a)) ; Stock b)"
    rules.add_many([text.format(number) for number in (100, 100, 300)], names=["a", "b", "c"])
    # The root, what both parts of the union enter, and two ends.
    assert rules._shared.nodes.node_count == 4
    events = quotes(("IBM", 2.5), ("Sun", 0.5), ("Sun", 1.5), ("IBM", 3.0))
    for name, number in (("a", 100), ("b", 100), ("c", 300)):
        alone = kleene.match(events, kleene.query(text.format(number), name=name)).column("match_id").to_pylist()
        found = [row["match_id"] for row in rules.match(events).matches[0].to_pylist() if row["query"] == name]
        assert sorted(found) == sorted(alone)
        assert alone


def test_what_waits_goes_on_when_memory_is_given_back() -> None:
    """Most queries go while instances of the others wait; a union is among these."""
    rules = QuerySet(STOCK, settings=kleene.Settings(budget=kleene.Budget(state_bytes=1 << 30)))
    pair = "σ{b.volume > :v}(σ{a.price > :p}(Stock a) ;{b.name = a.name} Stock b)"
    size = 6000
    table = pa.table(
        {"p": [float(number % 7) for number in range(size)], "v": [number % 11 * 100 for number in range(size)]}
    )
    names = [f"n{number}" for number in range(size)]
    rules.add_many(pair, table, names=names)
    union = "σ{b.volume > 200}((σ{name = 'IBM'}(Stock a) ∪ σ{price > 1.0}(Stock a)) ;{b.name = a.name} Stock b)"
    rules.add(union, name="union")
    events = quotes(("IBM", 2.5), ("Sun", 0.5), ("Sun", 4.5), ("IBM", 3.0), ("Sun", 6.0), ("IBM", 1.0))
    outputs = [rules.process(events.slice(0, 3), watermark=4)]
    kept = [name for number, name in enumerate(names) if number % 10 == 3]
    for name in set(names) - set(kept):
        rules.remove(name)
    assert rules._shared.queries.size < size // 2 + 10
    rules.add(pair, name="late", params={"p": 0.0, "v": 0})
    outputs += [rules.process(events.slice(3), watermark=7), rules.finish()]
    found: dict[str, list[str]] = {}
    for table_found in (table for output in outputs for table in output.matches):
        for row in table_found.to_pylist():
            found.setdefault(row["query"], []).append(row["match_id"])
    for name in [*kept[:25], "union", "late"]:
        params = None
        if name in kept:
            params = {"p": float(int(name[1:]) % 7), "v": int(name[1:]) % 11 * 100}
        elif name == "late":
            params = {"p": 0.0, "v": 0}
        query = kleene.query(union if name == "union" else pair, name=name, params=params)
        alone = kleene.match(events.slice(3) if name == "late" else events, query).column("match_id").to_pylist()
        assert sorted(found.get(name, [])) == sorted(alone), name
    assert found["late"]
    assert found["union"]


# Streams --------------------------------------------------------------------------------------------------------------


def test_what_could_wait_for_ever_is_refused_on_a_stream() -> None:
    rules = QuerySet(STOCK)
    rules.add("σ{a.name = 'IBM'}(Stock a) ;{b.name = 'IBM' and DUR <= 5} Stock b", name="bounded")
    rules.add("σ{DUR <= 5}(σ{a.name = 'IBM'}(Stock a) ;{b.name = 'IBM'} Stock b)", name="bounded later")
    rules.add("σ{a.name = 'IBM'}(Stock a) ; Stock b", name="any next")
    rules.add(
        "σ{a.name = 'IBM'}(Stock a) ;{b.name = 'IBM' and DUR <= :t} Stock b",
        name="bounded by a parameter",
        params={"t": 5},
    )
    rules.process(quotes(("IBM", 1.0)), watermark=2)
    rules.add("σ{a.name = 'IBM'}(Stock a) ;{b.name = 'IBM'} Stock b", name="unbounded")
    with pytest.raises(UnboundedState, match="what waits for `b` may wait for ever"):
        rules.process(quotes(("IBM", 1.0)), watermark=3)
    assert counts(rules, quotes(("IBM", 1.0), ("IBM", 2.0)))["unbounded"] == 1
    budgeted = QuerySet(STOCK, settings=kleene.Settings(budget=kleene.Budget(state_bytes=2_000)))
    budgeted.add("σ{a.name = 'IBM'}(Stock a) ;{b.name = 'Sun'} Stock b", name="unbounded")
    budgeted.process(quotes(("IBM", 1.0)), watermark=2)
    with pytest.raises(BudgetExceeded, match="more than 2,000"):
        budgeted.process(quotes(*[("IBM", 1.0)] * 60).slice(1), watermark=100)


def test_what_no_later_event_can_serve_is_freed() -> None:
    """Also where the bound stands further on: memory follows the window, not the stream."""
    for text in (
        "σ{DUR <= 5 and b.name = 'Sun'}(σ{a.name = 'IBM'}(Stock a) ;{b.name = 'Sun'} Stock b)",
        "σ{a.name = 'IBM'}(Stock a) ;{b.name = 'Sun' and DUR <= 5} Stock b",
    ):
        rules = QuerySet(STOCK)
        rules.add(text, name="a")
        for begin in range(0, 5_000, 500):
            rules.process(quotes(*[("IBM", 1.0)] * (begin + 500)).slice(begin), watermark=begin + 501)
            assert rules._live.run.size <= 6


def test_a_set_explains_how_it_runs() -> None:
    rules = QuerySet(STOCK)
    table = pa.table({"n": ["IBM", "IBM", "Sun"], "p": [1.0, 2.0, 1.0]})
    rules.add_many(
        "σ{b.name = :n and b.price > :p}(σ{a.name = :n}(Stock a) ;{b.name = :n and DUR <= 5} Stock b)", table
    )
    rules.add("σ{price > 5.0}(Stock a)")
    rules.add("PATTERN SEQ(Stock a, Stock b, !(Stock c)) WHERE a.price = 2.0 WITHIN 5", name="pattern")
    rules.add("SELECT * FROM (Stock S1 ; Stock S2) WHERE (S1, S2) OCCURS WITHIN 5", name="eql")
    assert rules.explain().splitlines() == [
        "6 queries: 4 share nodes, 1 the engine of their template, 1 run by themselves",
        "nodes       3, 3 after one event, after two, …",
        "edges       3 by name",
        "edges       2 by type, name",
        "edges       1 by type",
        "waiting     by type, name",
        "template    3 × σ{b.name = :n AND b.price > :p}(σ{a.name = :n}(Stock a) ;{b.name = :n AND DUR <= 5} Stock b)",
        "template    1 × σ{price > :_literal0}(Stock a)",
        "template    1 × PATTERN SEQ(Stock a, Stock b, !(Stock c)) WHERE a.price = :_literal0 WITHIN 5",
        "            one engine: it is no line of single events",
        "by itself   eql: it is in EQL",
    ]


def test_a_value_for_no_parameter_is_an_error() -> None:
    rules = QuerySet(STOCK)
    for _ in range(2):
        with pytest.raises(UnknownParameter, match="no parameter `:lows`"):
            rules.add("σ{price > :low}(Stock a)", name="a", params={"low": 1.0, "lows": 2.0})
    with pytest.raises(BadParameter, match="`:low` has no value"):
        rules.add("σ{price > :low}(Stock a)", name="a")
    assert not rules.names


def test_a_query_may_go_before_any_event_came() -> None:
    rules = QuerySet(STOCK)
    rules.add("σ{price > 1.0}(Stock a)", name="a")
    rules.add("σ{price > 2.0}(Stock a)", name="b")
    rules.remove("a")
    rules.add("σ{price > 3.0}(Stock a)", name="a")
    assert len(rules) == 2
    assert counts(rules, quotes(("IBM", 2.5))) == {"b": 1}


def test_streams_by_name_are_one_input() -> None:
    streams = {"Stock": quotes(("IBM", 2.5)).drop_columns(["type"])}
    rules = QuerySet(streams)
    rules.add("σ{price > 1.0}(Stock a)", name="a")
    (found,) = rules.match(streams).matches
    assert found.column("query").to_pylist() == ["a"]
