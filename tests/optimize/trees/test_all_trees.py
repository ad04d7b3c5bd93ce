"""Every tree of a pattern, and where negation and closures may stand in it."""

from __future__ import annotations

from itertools import islice

import pytest

from kleene.optimize.trees.all_trees import all_trees, default_tree
from kleene.optimize.trees.options import options
from kleene.optimize.trees.parts import Parts, all_parts
from kleene.pattern import Query, Schema
from kleene.pattern.nodes import Disjunction
from kleene.pattern.query import BoundQuery
from kleene.plan.explain_trees import print_tree
from kleene.plan.trees import JoinNode, Node, children, variables_bound


def bound(text: str) -> BoundQuery:
    return Query(f"PATTERN {text} WITHIN 9").bind(Schema())


def trees(text: str, key: tuple[str, ...] = ()) -> list[str]:
    """Every tree, by its text."""
    query = bound(text)
    (option,) = options(query)
    found = [print_tree(plan.root) for plan in all_trees(query, option, key)]
    assert len(set(found)) == len(found)
    return found


def line(count: int, sign: str = " ; ") -> str:
    return sign.join(f"A{number}" for number in range(count))


@pytest.mark.parametrize(("parts", "catalan"), [(2, 1), (3, 2), (4, 5), (5, 14), (6, 42), (7, 132), (8, 429)])
def test_a_sequence_has_every_tree_over_neighbours(parts: int, catalan: int) -> None:
    query = bound(line(parts))
    (option,) = options(query)
    found = list(all_trees(query, option))
    assert len(found) == catalan
    assert all(variables_bound(plan.root) == tuple(f"A{number}" for number in range(parts)) for plan in found)


@pytest.mark.parametrize(("parts", "count"), [(2, 1), (3, 3), (4, 15), (5, 105)])
def test_a_conjunction_has_every_tree_whatever_the_sides(parts: int, count: int) -> None:
    query = bound(line(parts, " & "))
    (option,) = options(query)
    found = list(all_trees(query, option))
    assert len(found) == count
    assert len({unsided(plan.root) for plan in found}) == count


def unsided(node: Node) -> object:
    return frozenset(map(unsided, children(node))) if isinstance(node, JoinNode) else variables_bound(node)


def test_one_component_is_one_leaf() -> None:
    assert trees("A a") == ["a"]


def test_the_trees_of_the_parts_are_combined() -> None:
    found = trees("(A & B & C) ; ((D ; E ; F) | (G & H & I))")
    assert len(found) == 3 * 2 * 3
    assert all(text.startswith("SEQ(CONJ(") and "), DISJ(SEQ(" in text for text in found)


def test_trees_of_a_long_pattern_are_made_one_by_one() -> None:
    query = bound(f"({line(20, ' & ')}) ; B")
    (option,) = options(query)
    assert len(list(islice(all_trees(query, option), 50))) == 50


RIGHT, LEFT, ABOVE = "SEQ(a, NSEQ(!n, b))", "SEQ(NSEQ(a, !n), b)", "NEG(SEQ(a, b), !n)"


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("A a ; !(N n) ; B b", {RIGHT, LEFT, ABOVE}),
        ("A a ; !(N n) ; B b WHERE n.x = 1", {RIGHT, LEFT, ABOVE}),
        ("A a ; !(N n) ; B b WHERE n.x = b.x", {RIGHT, ABOVE}),
        ("A a ; !(N n) ; B b WHERE n.x = a.x", {LEFT, ABOVE}),
        ("A a ; !(N n) ; B b WHERE n.x = a.x AND n.y = b.y", {ABOVE}),
        # Above the join of its neighbours, or above the whole.
        (
            "A a ; !(N n) ; B b ; C c WHERE n.x = a.x + b.x",
            {"SEQ(NEG(SEQ(a, b), !n), c)", "NEG(SEQ(SEQ(a, b), c), !n)", "NEG(SEQ(a, SEQ(b, c)), !n)"},
        ),
        # Which side knows a third event depends on the order.
        (
            "A a ; !(N n) ; B b ; C c WHERE n.x = c.x",
            {"NEG(SEQ(SEQ(a, b), c), !n)", "SEQ(a, NSEQ(!n, SEQ(b, c)))", "NEG(SEQ(a, SEQ(b, c)), !n)"},
        ),
        (
            "A a ; B b ; !(N n) ; C c WHERE n.x = a.x",
            {"SEQ(NSEQ(SEQ(a, b), !n), c)", "NEG(SEQ(SEQ(a, b), c), !n)", "NEG(SEQ(a, SEQ(b, c)), !n)"},
        ),
        # In a group: between the group's neighbours, above the first join that binds both, or above the whole.
        ("A a ; (B b & !(N n)) ; C c", {"NEG(SEQ(SEQ(a, b), c), !n)", "NEG(SEQ(a, SEQ(b, c)), !n)"}),
        (
            "A a ; (B b & !(N n)) ; C c ; D d",
            {
                "SEQ(NEG(SEQ(SEQ(a, b), c), !n), d)",
                "NEG(SEQ(SEQ(SEQ(a, b), c), d), !n)",
                "SEQ(NEG(SEQ(a, SEQ(b, c)), !n), d)",
                "NEG(SEQ(SEQ(a, SEQ(b, c)), d), !n)",
                "NEG(SEQ(SEQ(a, b), SEQ(c, d)), !n)",
                "NEG(SEQ(a, SEQ(SEQ(b, c), d)), !n)",
                "NEG(SEQ(a, SEQ(b, SEQ(c, d))), !n)",
            },
        ),
        ("A a ; ((!(N n) ; B b) & C c)", {"NEG(SEQ(a, CONJ(b, c)), !n)"}),
        # Without a neighbour the window's bound is that of the whole match.
        ("A a & !(N n)", {"NEG(a, !n)"}),
        ("(A a & !(N n)) ; B b", {ABOVE}),
        ("(!(N n) ; A a) & B b", {"NEG(CONJ(a, b), !n)"}),
        # Two events are no bound on time: a pair is never NSEQ.
        ("A a ; !(N n ; M m) ; B b", {"NEG(SEQ(a, b), !(n ; m))"}),
        (
            "A a ; !(N n ; M m) ; B b ; C c WHERE n.x = m.x",
            {
                "SEQ(NEG(SEQ(a, b), !(n ; m)), c)",
                "NEG(SEQ(SEQ(a, b), c), !(n ; m))",
                "NEG(SEQ(a, SEQ(b, c)), !(n ; m))",
            },
        ),
        # At an end the window's bound is that of the whole match.
        ("A a ; B b ; !(N n)", {ABOVE}),
        ("!(N n) ; A a ; B b", {ABOVE}),
        # Beside a closure the neighbour is known when the group is.
        ("A a ; B+ ; !(N n) ; C c", {"NEG(KSEQ(SEQ(a, c), B), !n)"}),
        ("A a ; !(N n) ; B* ; C c", {"NEG(KSEQ(SEQ(a, c), B), !n)"}),
        # A neighbour that is a disjunction, and a condition on one branch of it.
        (
            "(A a | B b) ; !(N n) ; C c WHERE n.x = a.x",
            {"SEQ(NSEQ(DISJ(a, b), !n), c)", "NEG(SEQ(DISJ(a, b), c), !n)"},
        ),
        (
            "(A a & B b) ; !(N n) ; C c WHERE n.x = b.x",
            {"SEQ(NSEQ(CONJ(a, b), !n), c)", "NEG(SEQ(CONJ(a, b), c), !n)"},
        ),
    ],
)
def test_where_a_negated_component_may_stand(pattern: str, expected: set[str]) -> None:
    assert set(trees(pattern)) == expected


def test_a_group_is_known_where_its_closure_stands() -> None:
    """NSEQ may compare with a group that KSEQ makes below it."""
    assert set(trees("A a ; B+ ; C c ; !(N n) ; D d WHERE n.x = sum(B.x)")) == {
        "SEQ(NSEQ(KSEQ(SEQ(a, c), B), !n), d)",
        "NEG(SEQ(KSEQ(SEQ(a, c), B), d), !n)",
        "NEG(KSEQ(SEQ(SEQ(a, c), d), B), !n)",
        "NEG(KSEQ(SEQ(a, SEQ(c, d)), B), !n)",
    }


def test_what_the_key_implies_needs_no_neighbour() -> None:
    text = "A a ; B b ; !(N n) ; C c WHERE [id]"
    assert [tree for tree in trees(text) if "SEQ(b" in tree] == ["NEG(SEQ(a, SEQ(b, c)), !n)"]
    assert {tree for tree in trees(text, ("id",)) if "(b" in tree and "a, b" not in tree} == {
        "SEQ(a, SEQ(b, NSEQ(!n, c)))",
        "SEQ(a, SEQ(NSEQ(b, !n), c))",
        "SEQ(a, NEG(SEQ(b, c), !n))",
        "NEG(SEQ(a, SEQ(b, c)), !n)",
    }


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("A a ; B+ ; C c", {"KSEQ(SEQ(a, c), B)"}),
        ("A a ; B+ ; C c WHERE B.x = a.x AND B.y = c.y", {"KSEQ(SEQ(a, c), B)"}),
        (
            "A a ; B+ ; C c ; D d WHERE B.x = d.x",
            {"KSEQ(SEQ(SEQ(a, c), d), B)", "KSEQ(SEQ(a, SEQ(c, d)), B)"},
        ),
        # What tests the group is no condition on its members.
        (
            "A a ; B+ ; C c ; D d WHERE sum(B.x) = d.x",
            {"SEQ(KSEQ(SEQ(a, c), B), d)", "KSEQ(SEQ(SEQ(a, c), d), B)", "KSEQ(SEQ(a, SEQ(c, d)), B)"},
        ),
        ("A a ; B+", {"KSEQ(a, B)"}),
        ("B* ; A a ; C c", {"KSEQ(SEQ(a, c), B)"}),
        # Under a conjunction `d` may be one of the events between, which is then no member.
        ("(A a ; B+ ; C c) & B d", {"KSEQ(CONJ(SEQ(a, c), d), B)"}),
        # In a branch it may stand above its join.
        (
            "A a ; ((B b ; C+ ; D d) | E e)",
            {"SEQ(a, DISJ(KSEQ(SEQ(b, d), C), e))", "KSEQ(SEQ(a, DISJ(SEQ(b, d), e)), C)"},
        ),
    ],
)
def test_where_a_closure_may_stand(pattern: str, expected: set[str]) -> None:
    assert set(trees(pattern)) == expected


def test_closures_that_name_each_other_stand_on_top() -> None:
    """Groups are made in the order of the text, and the members of one see only those before it."""
    found = trees("A a ; B+ ; C c ; D+ ; E e WHERE D.x = sum(B.x)")
    assert len(found) == 2
    assert all(text.startswith("KSEQ(KSEQ(SEQ(") and text.endswith(", B), D)") for text in found)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("A a", "a"),
        ("A ; B ; C", "SEQ(SEQ(A, B), C)"),
        ("A & B & C", "CONJ(CONJ(A, B), C)"),
        ("A a ; !(N n) ; B b", RIGHT),
        ("A a ; !(N n) ; B b WHERE n.x = a.x", LEFT),
        ("A a ; !(N n) ; B b WHERE n.x = a.x + b.x", ABOVE),
        ("A a ; !(N n) ; B b ; C c WHERE n.x = c.x", "NEG(SEQ(SEQ(a, b), c), !n)"),
        ("A a ; B+ ; !(N n) ; C c", "NEG(KSEQ(SEQ(a, c), B), !n)"),
        ("A a ; B+ ; C c ; D d", "SEQ(KSEQ(SEQ(a, c), B), d)"),
        ("A a ; B+ ; C c ; D d WHERE B.x = d.x", "KSEQ(SEQ(SEQ(a, c), d), B)"),
        ("A a ; !(N n)", "NEG(a, !n)"),
        ("A ; (B | C)", "SEQ(A, DISJ(B, C))"),
        ("A & (B ; C)", "CONJ(A, SEQ(B, C))"),
    ],
)
def test_the_default_is_left_deep_with_all_as_low_as_it_may_stand(pattern: str, expected: str) -> None:
    query = bound(pattern)
    (option,) = options(query)
    assert print_tree(default_tree(query, option).root) == expected
    assert expected in trees(pattern)


# Parts ---------------------------------------------------------------------------------------------------------------


def parts_of(text: str) -> Parts:
    query = bound(text)
    (option,) = options(query)
    return all_parts(option, (), query.schema)[option.pattern]


@pytest.mark.parametrize(
    ("pattern", "variable", "before", "after"),
    [
        ("A a ; !(N n) ; B b", "n", ("a",), ("b",)),
        ("A a ; !(M m) ; !(N n) ; B b", "n", ("a",), ("b",)),
        ("!(N n) ; A a", "n", (), ("a",)),
        ("A a ; !(N n)", "n", ("a",), ()),
        ("(A a & B b) ; !(N n) ; (C c | (D d ; E e))", "n", ("a", "b"), ("c", "d", "e")),
        ("A a ; B+ b ; C c", "b", ("a",), ("c",)),
        ("A a ; B+ b", "b", ("a",), ()),
        ("A a ; B+ b ; !(N n) ; C c", "n", ("b",), ("c",)),
        # A group may be empty: then what is behind it is the neighbour, or the window's bound.
        ("A a ; B* b ; !(N n) ; C c", "n", ("b", "a"), ("c",)),
        ("A a ; !(N n) ; B* b ; C c", "n", ("a",), ("b", "c")),
        ("A a ; !(N n) ; B* b", "n", ("a",), ("b",)),
        # A closure within a part lies between its other events.
        ("((A a ; B+ b ; C c) | D d) ; !(N n) ; E e", "n", ("a", "c", "d"), ("e",)),
    ],
)
def test_the_gap_of_what_stands_between(
    pattern: str, variable: str, before: tuple[str, ...], after: tuple[str, ...]
) -> None:
    (found,) = [b for b in parts_of(pattern).between if b.component.variable == variable]
    assert (found.site.gap.before, found.site.gap.after) == (before, after)


def test_the_parts_that_joins_combine() -> None:
    parts = parts_of("A ; !B ; (C | D) ; E+ ; F")
    assert [isinstance(part, Disjunction) for part in parts.joined] == [False, True, False]
    assert [(between.component.negated, between.after) for between in parts.between] == [(True, 1), (False, 2)]
