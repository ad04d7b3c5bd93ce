"""Every shape of a tree, and where negation and closures may stand in it."""

from __future__ import annotations

from itertools import islice

import pytest

from kleene.optimize.trees.logical import Logical
from kleene.optimize.trees.options import options
from kleene.optimize.trees.shape import Order, Shape, Where
from kleene.optimize.trees.shapes import (
    all_shapes,
    default_shape,
    left_deep,
    numbers,
    right_deep,
    sequence_parts,
    shaped,
)
from kleene.pattern import Query, Schema
from kleene.pattern.nodes import Disjunction, Sequence

LEFT, RIGHT, JOIN, TOP = Where.LEFT, Where.RIGHT, Where.JOIN, Where.TOP


def logical(text: str) -> Logical:
    (option,) = options(Query(f"PATTERN {text} WITHIN 9").bind(Schema()))
    return option


def shapes(text: str, key: tuple[str, ...] = ()) -> list[Shape]:
    found = list(all_shapes(logical(text), key))
    assert len(set(found)) == len(found)
    return [shape for shape in found if shape is not None]


def line(count: int, sign: str = " ; ") -> str:
    return sign.join(f"A{number}" for number in range(count))


@pytest.mark.parametrize(("parts", "catalan"), [(2, 1), (3, 2), (4, 5), (5, 14), (6, 42), (7, 132), (8, 429)])
def test_a_sequence_has_every_tree_over_neighbours(parts: int, catalan: int) -> None:
    found = shapes(line(parts))
    assert len(found) == catalan
    assert all(numbers(shape.order) == tuple(range(parts)) for shape in found)


@pytest.mark.parametrize(("parts", "count"), [(2, 1), (3, 3), (4, 15), (5, 105)])
def test_a_conjunction_has_every_tree_whatever_the_sides(parts: int, count: int) -> None:
    found = shapes(line(parts, " & "))
    assert len(found) == count
    assert len({unsided(shape.order) for shape in found}) == count


def unsided(order: Order) -> object:
    return order if isinstance(order, int) else frozenset(map(unsided, order))


def test_one_component_has_no_shape() -> None:
    assert list(all_shapes(logical("A"))) == [None]
    assert default_shape(logical("A")) is None


def test_the_shapes_of_the_parts_are_combined() -> None:
    found = shapes("(A & B & C) ; ((D ; E ; F) | (G & H & I))")
    assert len(found) == 3 * 2 * 3
    assert {shape.order for shape in found} == {(0, 1)}
    below = [shape.parts[1] for shape in found]
    assert all(shape is not None and shape.order == 0 and len(shape.parts) == 2 for shape in below)


def test_shapes_of_a_long_pattern_are_made_one_by_one() -> None:
    wide = f"({line(20, ' & ')}) ; B"
    assert len(list(islice(all_shapes(logical(wide)), 50))) == 50


def test_orders_by_name() -> None:
    assert left_deep(4) == (((0, 1), 2), 3)
    assert right_deep(4) == (0, (1, (2, 3)))
    assert left_deep(1) == right_deep(1) == 0


def test_an_order_may_be_given() -> None:
    found = shaped(logical("A ; B ; !(N n) ; C"), right_deep(3))
    assert found == Shape((0, (1, 2)), (None, None, None), (RIGHT,))
    assert shaped(logical("A & B & C"), (1, (0, 2))) == Shape((1, (0, 2)), (None, None, None))


@pytest.mark.parametrize(
    ("pattern", "order", "places"),
    [
        ("A a ; !(N n) ; B b", (0, 1), {RIGHT, LEFT, JOIN, TOP}),
        ("A a ; !(N n) ; B b WHERE n.x = 1", (0, 1), {RIGHT, LEFT, JOIN, TOP}),
        ("A a ; !(N n) ; B b WHERE n.x = b.x", (0, 1), {RIGHT, JOIN, TOP}),
        ("A a ; !(N n) ; B b WHERE n.x = a.x", (0, 1), {LEFT, JOIN, TOP}),
        ("A a ; !(N n) ; B b WHERE n.x = a.x AND n.y = b.y", (0, 1), {JOIN, TOP}),
        # Which side knows a third event depends on the order.
        ("A a ; !(N n) ; B b ; C c WHERE n.x = c.x", ((0, 1), 2), {TOP}),
        ("A a ; !(N n) ; B b ; C c WHERE n.x = c.x", (0, (1, 2)), {RIGHT, JOIN, TOP}),
        ("A a ; B b ; !(N n) ; C c WHERE n.x = a.x", ((0, 1), 2), {LEFT, JOIN, TOP}),
        ("A a ; B b ; !(N n) ; C c WHERE n.x = a.x", (0, (1, 2)), {TOP}),
        # At an end the window's bound is that of the whole match.
        ("A a ; B b ; !(N n)", (0, 1), {TOP}),
        ("!(N n) ; A a ; B b", (0, 1), {TOP}),
        # Beside a closure the neighbour is known when the group is.
        ("A a ; B+ ; !(N n) ; C c", (0, 1), {TOP}),
        ("A a ; !(N n) ; B* ; C c", (0, 1), {TOP}),
        ("A a ; B+ ; C c ; !(N n) ; D d", ((0, 1), 2), {RIGHT, LEFT, JOIN, TOP}),
        # A neighbour that is a disjunction, and a condition on one branch of it.
        ("(A a | B b) ; !(N n) ; C c WHERE n.x = a.x", (0, 1), {LEFT, JOIN, TOP}),
        ("(A a & B b) ; !(N n) ; C c WHERE n.x = b.x", (0, 1), {LEFT, JOIN, TOP}),
    ],
)
def test_where_a_negated_component_may_stand(pattern: str, order: Order, places: set[Where]) -> None:
    assert {shape.negations[0] for shape in shapes(pattern) if shape.order == order} == places


def test_a_group_is_known_where_its_closure_stands() -> None:
    """NSEQ may compare with a group that KSEQ makes below it."""
    found = shapes("A a ; B+ ; C c ; !(N n) ; D d WHERE n.x = sum(B.x)")
    assert {(shape.order, shape.closures, shape.negations) for shape in found} == {
        (((0, 1), 2), (JOIN,), (LEFT,)),
        (((0, 1), 2), (JOIN,), (JOIN,)),
        (((0, 1), 2), (JOIN,), (TOP,)),
        (((0, 1), 2), (TOP,), (TOP,)),
        ((0, (1, 2)), (JOIN,), (TOP,)),
        ((0, (1, 2)), (TOP,), (TOP,)),
    }


def test_what_the_key_implies_needs_no_neighbour() -> None:
    text = "A a ; B b ; !(N n) ; C c WHERE [id]"
    assert {shape.negations[0] for shape in shapes(text) if shape.order == (0, (1, 2))} == {TOP}
    assert {shape.negations[0] for shape in shapes(text, ("id",)) if shape.order == (0, (1, 2))} == {
        *(RIGHT, LEFT, JOIN, TOP)
    }


@pytest.mark.parametrize(
    ("pattern", "order", "places"),
    [
        ("A a ; B+ ; C c", (0, 1), {JOIN, TOP}),
        ("A a ; B+ ; C c WHERE B.x = a.x AND B.y = c.y", (0, 1), {JOIN, TOP}),
        ("A a ; B+ ; C c ; D d WHERE B.x = d.x", ((0, 1), 2), {TOP}),
        ("A a ; B+ ; C c ; D d WHERE B.x = d.x", (0, (1, 2)), {JOIN, TOP}),
        # What tests the group is no condition on its members.
        ("A a ; B+ ; C c ; D d WHERE sum(B.x) = d.x", ((0, 1), 2), {JOIN, TOP}),
        ("A a ; B+", 0, {TOP}),
        ("B* ; A a ; C c", (0, 1), {TOP}),
        ("A a ; !(N n) ; B+ ; C c", (0, 1), {JOIN, TOP}),
    ],
)
def test_where_a_closure_may_stand(pattern: str, order: Order, places: set[Where]) -> None:
    assert {shape.closures[0] for shape in shapes(pattern) if shape.order == order} == places


def test_under_a_conjunction_a_closure_stands_on_top() -> None:
    """`B d` may be one of the events between, which is then no member."""
    found = shapes("(A a ; B+ ; C c) & B d")
    assert {below.closures for shape in found for below in shape.parts if below is not None} == {(TOP,)}


def test_in_a_branch_a_closure_may_stand_above_its_join() -> None:
    found = shapes("A a ; ((B b ; C+ ; D d) | E e)")
    branches = [below.parts[0] for shape in found if (below := shape.parts[1]) is not None]
    assert {branch.closures for branch in branches if branch is not None} == {(JOIN,), (TOP,)}


def test_closures_that_name_each_other_stand_on_top() -> None:
    """Groups are made in the order of the text, and the members of one see only those before it."""
    found = shapes("A a ; B+ ; C c ; D+ ; E e WHERE B.x = sum(D.x)")
    assert {shape.closures for shape in found} == {(TOP, TOP)}


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("A ; B ; C", Shape(((0, 1), 2), (None, None, None))),
        ("A a ; !(N n) ; B b", Shape((0, 1), (None, None), (RIGHT,))),
        ("A a ; !(N n) ; B b WHERE n.x = a.x", Shape((0, 1), (None, None), (LEFT,))),
        ("A a ; !(N n) ; B b WHERE n.x = a.x + b.x", Shape((0, 1), (None, None), (JOIN,))),
        ("A a ; !(N n) ; B b ; C c WHERE n.x = c.x", Shape(((0, 1), 2), (None, None, None), (TOP,))),
        ("A a ; B+ ; !(N n) ; C c", Shape((0, 1), (None, None), (TOP,), (JOIN,))),
        ("A a ; B+ ; C c ; D d WHERE B.x = d.x", Shape(((0, 1), 2), (None, None, None), (), (TOP,))),
        ("A a ; !(N n)", Shape(0, (None,), (TOP,))),
        ("A ; (B | C)", Shape((0, 1), (None, Shape(0, (None, None))))),
        ("A & (B ; C)", Shape((0, 1), (None, Shape((0, 1), (None, None))))),
    ],
)
def test_the_default_is_left_deep_with_all_as_low_as_it_may_stand(pattern: str, expected: Shape) -> None:
    assert default_shape(logical(pattern)) == expected
    assert expected in shapes(pattern)


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
    sequence = logical(pattern).pattern
    assert isinstance(sequence, Sequence)
    parts = sequence_parts(sequence)
    (found,) = [b for b in (*parts.negations, *parts.closures) if b.component.variable == variable]
    assert (found.gap.before, found.gap.after) == (before, after)


def test_the_parts_that_joins_combine() -> None:
    sequence = logical("A ; !B ; (C | D) ; E+ ; F").pattern
    assert isinstance(sequence, Sequence)
    parts = sequence_parts(sequence)
    assert [isinstance(part, Disjunction) for part in parts.joined] == [False, True, False]
    assert [negation.after for negation in parts.negations] == [1]
    assert [closure.after for closure in parts.closures] == [2]
