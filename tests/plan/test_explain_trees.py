"""Tree plans for people: the tree as it is drawn, what is said of its costs, and of what it did."""

from __future__ import annotations

from typing import Any

import pytest
from tests.optimize.trees.printed import default_trees
from tests.optimize.trees.printed import tree as printed

import kleene
from kleene.errors import UnknownKind
from kleene.optimize.planner import plan_query
from kleene.pattern.query import BoundQuery
from kleene.plan.costs import Costed, Measured, NodeCost
from kleene.plan.explain import plan_text
from kleene.plan.explain_trees import amount, print_tree
from kleene.plan.physical import Plan
from kleene.plan.settings import ExecutorKind, Settings
from kleene.plan.trees import Alias, TreePlan

THREE = "PATTERN SEQ(IBM a, Sun b, Oracle c) WHERE a.price > b.price WITHIN 10"
MIXED = """PATTERN SEQ(A a, !(N n), B b & C c, D+ d, E e, !(M m))
WHERE [k] AND a.x > 4 AND a.x = b.x AND n.y > a.y AND d.z > b.z AND e.z > sum(d.z) WITHIN 10 minutes"""


def bound(text: str) -> BoundQuery:
    return kleene.Query(text).bind(checking=True)


def tree(text: str, shown: str | None = None) -> Plan:
    """A query as the trees that need no statistics, or as the one that prints so."""
    query = bound(text)
    return Plan(query, default_trees(query) if shown is None else (printed(query, shown),))


def drawn(text: str) -> list[str]:
    lines = plan_text(tree(text))
    begin = next(number for number, line in enumerate(lines) if line.startswith("tree "))
    end = next(number for number, line in enumerate(lines) if number > begin and not line.startswith(" "))
    return [line[11:] for line in lines[begin:end]]


# The drawing ---------------------------------------------------------------------------------------------------------


def test_every_kind_of_node_stands_in_its_place() -> None:
    assert drawn(MIXED) == [
        "NEG no m: M of the same k, after e within the window; waits until the window has closed",
        "└─ KSEQ d: all of D of the same k, between (b, c) and e",
        "   │  member d.z > b.z",
        "   │  test e.z > sum(d.z)",
        "   └─ SEQ",
        "      │  lookup by k",
        "      ├─ SEQ",
        "      │  │  lookup by k",
        "      │  │  test a.x = b.x",
        "      │  ├─ a: A where a.x > 4",
        "      │  ├─ NSEQ no n, by the first one after a: N of the same k, between a and (b, c)",
        "      │  │     with n.y > a.y",
        "      │  └─ CONJ",
        "      │     │  lookup by k",
        "      │     ├─ b: B",
        "      │     └─ c: C",
        "      └─ e: E",
    ]


def test_disjunctions_and_lists() -> None:
    assert drawn("PATTERN SEQ((A | B), (C+ c[] & D{2,3} d[])) WHERE avg(c.x) > 4 WITHIN 5") == [
        "SEQ",
        "├─ DISJ",
        "│  ├─ A",
        "│  └─ B",
        "└─ CONJ",
        "   ├─ c[]: C, every list of 1 or more",
        "   │     test avg(c.x) > 4",
        "   └─ d[]: D, every list of 2 to 3",
    ]


def test_equalities_of_typed_columns_are_looked_up() -> None:
    declared = "DECLARE TYPE A (x int) DECLARE TYPE B (x int)"
    assert drawn(f"{declared} PATTERN A a & B b WHERE a.x = b.x")[1] == "│  lookup by a.x = b.x"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("PATTERN SEQ(A a, B b & C c) WITHIN 5", "partition  none"),
        ("PATTERN SEQ(A a, B b & C c) WHERE [k]", "partition  by k: records of different keys never meet"),
        ("PATTERN SEQ(A a, B b & C c) WITHIN 5", "window     stops joins early"),
        ("PATTERN SEQ(A a, B b & C c)", "window     none"),
        ("PATTERN SEQ(A a, B b & C c)", "output     one row a match, when its last event has come"),
        ("PATTERN SEQ(A a & B b, C c)", "output     one row a match, when its last event `c` has come"),
        ("PATTERN SEQ(A a & B b, !(C c)) WITHIN 5", "output     one row a match, when its window has closed"),
        ("PATTERN SEQ(A a, B+ b) WITHIN 5", "output     one row a match, when its window has closed"),
        ("PATTERN SEQ(A a & B b, C^3 c, D d)", "tree       KSEQ c: every 3 in a row of C, between (a, b) and d"),
        (
            "PATTERN SEQ(A a, B+ b, C^2 c, D d)",
            "           └─ KSEQ b: all of B, between a and d, leaving 2 of c",
        ),
        (
            "PATTERN A a & B+ b WITHIN 5",
            "tree       KSEQ b: all of B, around a within the window; waits until the window has closed",
        ),
        ("PATTERN SEQ(A a, B b & C? c)", "alternative 1 of 2: SEQ(A a, B b & C c)"),
        ("PATTERN SEQ(A a, B b & C? c)", "alternative 2 of 2: SEQ(A a, B b)"),
    ],
)
def test_a_line_of_the_plan(text: str, line: str) -> None:
    assert line in plan_text(tree(text)), "\n".join(plan_text(tree(text)))


def test_what_is_tested_on_whole_records_and_what_was_merged() -> None:
    plan = tree("PATTERN A a & B b WHERE 1 = 2")
    (alternative,) = plan.alternatives
    assert isinstance(alternative, TreePlan)
    merged = TreePlan(
        alternative.pattern, alternative.root, after=alternative.after, aliases=(Alias("z", "a", ("b",)),)
    )
    lines = [" ".join(line.split()) for line in plan_text(Plan(plan.query, (merged,)))]
    assert "whole record FALSE" in lines or "whole record 1 = 2" in lines, lines
    assert "alias z what a is called where b is present" in lines


# Numbers -------------------------------------------------------------------------------------------------------------


def test_costs_stand_beside_the_nodes_and_the_next_best_below() -> None:
    plan, other = tree(THREE, "SEQ(SEQ(a, b), c)"), tree(THREE, "SEQ(a, SEQ(b, c))")
    (runner_up,) = other.alternatives
    nodes = tuple(NodeCost(0, records, 0) for records in (120, 8, 33.4, 2_000, 1_234_567))
    costed = Costed(1_234, nodes, runner_up, 3_400)
    lines = plan_text(Plan(plan.query, plan.alternatives, costs=(costed,)))
    assert lines[2:9] == [
        "tree       SEQ           ~1.2 M a window",
        "           ├─ SEQ        ~33 a window",
        "           │  │  test a.price > b.price",
        "           │  ├─ a: IBM  ~120 a window",
        "           │  └─ b: Sun  ~8 a window",
        "           └─ c: Oracle  ~2 k a window",
        "window     stops joins early",
    ]
    assert lines[10] == "cost       1.2 k steps a window; next best: SEQ(a, SEQ(b, c)) at 3.4 k"


def test_what_was_measured_stands_beside_what_was_expected() -> None:
    plan = tree("PATTERN A a & B b WITHIN 10")
    measured = Measured(((50, 50), (20, 20), (100, 7)), windows=10.0, rounds=1, changes=2)
    lines = plan_text(plan, measured=[measured])
    assert "tree       CONJ     0.7 a window measured" in lines
    assert lines[lines.index("rules  none") - 2] == (
        "measured   in 10 windows of events, 1 round of assembly; the plan was changed 2 times"
    )
    costed = Costed(1, tuple(NodeCost(0, records, 0) for records in (6, 2, 1)))
    both = plan_text(Plan(plan.query, plan.alternatives, costs=(costed,)), measured=[measured])
    assert "           └─ b: B  ~2 a window, 2 measured" in both


def test_lines_have_a_cost_as_well() -> None:
    query = bound(THREE)
    stacks = plan_query(query)
    automaton = plan_query(query, Settings(executor=ExecutorKind.AUTOMATON))
    (runner_up,) = automaton.alternatives
    said = plan_text(Plan(query, stacks.alternatives, costs=(Costed(50, (), runner_up, 70),)))
    assert "cost       50 steps a window; next best: automaton (SASE+ §3–5) at 70" in said
    assert not any(line.startswith(("cost", "measured")) for line in plan_text(stacks, measured=[None]))


def test_a_tree_in_one_line() -> None:
    shown = [print_tree(plan.root) for plan in tree(MIXED).alternatives if isinstance(plan, TreePlan)]
    assert shown == ["NEG(KSEQ(SEQ(SEQ(NSEQ(a, !n), CONJ(b, c)), e), d), !m)"]
    (either,) = tree("PATTERN SEQ(A+ a[], (B b | C c & D d))").alternatives
    assert isinstance(either, TreePlan)
    assert print_tree(either.root) == "SEQ(a[], DISJ(b, CONJ(c, d)))"


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (0.0214, "0.021"),
        (1, "1"),
        (8.46, "8.5"),
        (9.99, "10"),
        (999.4, "999"),
        (999.7, "1 k"),
        (1_234, "1.2 k"),
        (56_789, "57 k"),
        (3_400_000, "3.4 M"),
        (7e9, "7 G"),
        (1e20, "1.0e+20"),
    ],
)
def test_amounts(number: float, text: str) -> None:
    assert amount(number) == text


# Rules ---------------------------------------------------------------------------------------------------------------


def test_rules_of_trees() -> None:
    text = "PATTERN SEQ(A a, B b) & C c WHERE [k]"
    plan = kleene.explain(text).text.split("\nplan\n")[1]
    assert "switched off" not in plan
    assert "push_window" not in plan, "a rule of lines has no part in a tree"
    without = kleene.explain(text, settings=kleene.Settings(without=frozenset({"order_by_cost", "push_window"})))
    assert "  switched off  order_by_cost" in without.text.splitlines()


# A run ---------------------------------------------------------------------------------------------------------------


def rows(number: int = 60) -> list[dict[str, Any]]:
    return [{"type": "ABC"[ts % 3], "ts": ts, "x": ts % 4} for ts in range(number)]


def test_a_run_shows_what_each_node_made() -> None:
    query = kleene.query("PATTERN A a & B b WHERE a.x < b.x WITHIN 6")
    made = query.explain(events=rows(), analyze=True).text.splitlines()
    (leaf,) = [line for line in made if "a: A" in line]
    assert leaf.endswith("2 measured"), "20 events in 10 windows"
    matches = len(kleene.match(rows(), query))
    assert made[-2] == f"  It ran: {matches} matches in 60 events."
    assert [line for line in made if "counted" in line] == ["  counted    a: 20 events, 20 kept"]
    (root,) = [line for line in made if "CONJ" in line]
    assert root.endswith(f"{amount(matches / (59 / 6))} measured"), "no C comes after the last B"


def test_a_run_of_a_line_says_what_came_of_it() -> None:
    said = kleene.explain("PATTERN SEQ(A a, B b) WITHIN 2", events=rows(6), analyze=True).text
    assert "It ran: 2 matches in 6 events.\n" in said


def test_a_run_needs_events_here_and_values() -> None:
    with pytest.raises(UnknownKind, match="there are none"):
        kleene.explain("PATTERN A & B", analyze=True)
    with pytest.raises(kleene.errors.BadParameter):
        kleene.explain("PATTERN A a & B b WHERE a.x > :low", events=rows(), analyze=True)


def test_events_on_spark_are_not_run_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kleene.frames.kinds.on_spark", lambda events: True)
    with pytest.raises(UnknownKind, match="these events are on Spark"):
        kleene.explain("PATTERN A & B", events=rows(), analyze=True)


# The picture ---------------------------------------------------------------------------------------------------------


def test_records_flow_from_the_leaves_to_the_match() -> None:
    from kleene.plan.mermaid import plan_mermaid

    picture = plan_mermaid(tree(MIXED)).splitlines()
    for line in (
        'p0_start(["tree of joins #40;ZStream §4#41;<br/>by k"])',
        'p0_0["NEG no m: M, after e within the window"]',
        'p0_0_0["KSEQ d: all of D, between #40;b, c#41; and e<br/>member d.z #62; b.z<br/>'
        'test e.z #62; sum#40;d.z#41;"]',
        'p0_start -->|"a.x #62; 4"| p0_0_0_0_0_0',
        'p0_0_0_0_0_n0 -.->|"NSEQ no n, by the first one after a<br/>n.y #62; a.y"| p0_0_0_0_0',
        "p0_0_0_0_0_0 --> p0_0_0_0_0",
        "p0_0 --> p0_match",
    ):
        assert f"    {line}" in picture, "\n".join(picture)
