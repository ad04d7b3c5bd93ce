"""Wrong trees are caught: each mutation of an operator or of a kernel makes some plan disagree with the reference."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.engine.mutating import Mutation, Workshop, check_can_be_made, one_of, opened
from tests.engine.tree_agreement import COMMON, CRAFTED, LOOKED_UP

pytestmark = pytest.mark.slow

JOINING, PUSHED, MEMBERS = "kernels/joins.py", "kernels/pushed_negation.py", "kernels/closures.py"
JOINS, PAIRS, CLOSURES = (
    "engine/executors/trees/joins.py",
    "engine/executors/trees/pair_tests.py",
    "engine/executors/trees/closures.py",
)
RECORDS, LOOKUP, TREE = (
    "engine/executors/trees/records.py",
    "engine/executors/equal_values.py",
    "engine/executors/trees/tree.py",
)
OPERATORS, LOOKUPS = "engine/executors/trees/operators.py", "optimize/trees/lookups.py"
EXECUTOR = "engine/executors/trees/executor.py"
PARTS, PLANS = "optimize/trees/parts.py", "plan/trees.py"
NEGATED = "PATTERN A a ; !(B b) ; C c"
SIDE_BY_SIDE = ("PATTERN A a ; B+ ; C+", "PATTERN A a ; B* ; C^2")

MUTATIONS = (
    Mutation(
        JOINING,
        "NSEQ beside the right neighbour forbids what is simultaneous with the negated event",
        "if met < lowest:",
        "if met <= lowest:",
        (NEGATED,),
    ),
    Mutation(
        JOINING,
        "NSEQ beside the left neighbour forbids what is simultaneous with the negated event",
        "left > ceilings[here]",
        "left >= ceilings[here]",
        (NEGATED,),
    ),
    Mutation(
        PUSHED,
        "NSEQ takes a negated event that is simultaneous with the right neighbour",
        "if time.rights[other] >= times[row, LEFT]:",
        "if time.rights[other] > times[row, LEFT]:",
        (NEGATED,),
    ),
    Mutation(
        PUSHED,
        "NSEQ does not look at the first of the new negated events",
        "while at >= begin:",
        "while at > begin:",
        (NEGATED,),
    ),
    Mutation(
        EXECUTOR,
        "the earliest allowed time is one step too late",
        "(0 if window.inclusive else 1)",
        "(1 if window.inclusive else 2)",
        ("PATTERN A a ; B b",),
    ),
    Mutation(
        RECORDS,
        "what starts a little after the earliest allowed time is cleared",
        "START] >= earliest",
        "START] > earliest + 2",
        ("PATTERN A a & B b", "PATTERN A a ; B b"),
    ),
    Mutation(
        JOINING,
        "an event fills two places",
        "if event >= 0 and event == inner.refs[other, test.clashes[place, 1]]:",
        "if False and event == inner.refs[other, test.clashes[place, 1]]:",
        ("conjunction", CRAFTED),
    ),
    Mutation(
        PAIRS,
        "an event fills two places of lists",
        "survivors[whose[1:][twice]] = False",
        "survivors[whose[1:][twice]] = True",
        ("PATTERN A+ a[] & A b",),
    ),
    Mutation(
        JOINS,
        "a conjunction pairs no simultaneous events",
        "right.delta, UP_TO, at",
        "right.delta, EARLIER, at",
        ("PATTERN A a & B b",),
    ),
    Mutation(
        JOINS,
        "a conjunction pairs simultaneous events twice",
        "left.delta, EARLIER, at",
        "left.delta, UP_TO, at",
        ("PATTERN A a & B b",),
    ),
    Mutation(
        PAIRS,
        "a comparison is read from the wrong side",
        "outcomes if outer_side == 0 else _mirrored(outcomes)",
        "outcomes",
        ("PATTERN A a & B b WHERE a.x < b.x",),
    ),
    Mutation(
        MEMBERS,
        "a group has an event that the match has elsewhere",
        "has |= bound.events[place] == event",
        "has |= False",
        ("PATTERN (A a ; B+ ; C c) & B b",),
    ),
    Mutation(
        CLOSURES,
        "the last of the groups of n is not made",
        "np.maximum(sizes - most + 1, 0)",
        "np.maximum(sizes - most, 0)",
        ("closure",),
    ),
    Mutation(
        CLOSURES,
        "a group at the end makes no match longer",
        "if is_open:",
        "if is_open and not self._gap.before:",
        ("PATTERN !(C c) ; A a ; B+",),
    ),
    Mutation(
        CLOSURES,
        "a closure leaves the one beside it nothing",
        "ceilings = following.reserve(floors, ceilings, bound, at)",
        "following.reserve(floors, ceilings, bound, at)",
        SIDE_BY_SIDE,
    ),
    Mutation(
        CLOSURES,
        "a closure leaves the one beside it all that it could have",
        "np.lexsort((-lefts,",
        "np.lexsort((lefts,",
        SIDE_BY_SIDE,
    ),
    Mutation(
        CLOSURES,
        "a closure leaves a count beside it only one member",
        "begins[enough] + self.fewest - 1]",
        "begins[enough]]",
        SIDE_BY_SIDE,
    ),
    Mutation(
        CLOSURES,
        "members of a group without neighbours fit the match and not each other",
        "fits &= ~outside(ends, begin[whose], at.within)",
        "fits &= True",
        ("PATTERN A a & B+",),
    ),
    Mutation(
        CLOSURES,
        "a count without neighbours may be longer than the window",
        "if most is not None and not self._gap.before and not self._gap.after:",
        "if most is None:",
        ("PATTERN A a & C^3",),
    ),
    Mutation(
        PARTS,
        "a closure under & has no neighbours",
        "replace(outer, own=_taking(pattern))",
        "Gap((), (), _taking(pattern))",
        ("PATTERN A a ; (B+ & C c) ; A d",),
    ),
    Mutation(
        PARTS,
        "a closure at the edge of a part under & sees nothing outside",
        "return (*names, *outside)",
        "return tuple(names)",
        ("PATTERN A a ; ((B+ ; C c) & B b) ; A d",),
    ),
    Mutation(
        PLANS,
        "a group that is taken when its window closes is restored without its first members",
        "late = [node.gap for node in self.groups] if self.has_negated_end else []",
        "late = []",
        ("PATTERN A a & B+", "PATTERN B+ ; A a ; C+"),
    ),
    Mutation(
        MEMBERS,
        "a member of a group may be outside the window",
        "if ceiling == OPEN and size >= 0 and",
        "if ceiling == OPEN and False and",
        ("PATTERN (A a & C c) ; B+",),
    ),
    Mutation(
        LOOKUP,
        "two values that are NULL are equal",
        "events.states[column.index, rows] != VALUE",
        "events.states[column.index, rows] < VALUE",
        ("PATTERN A a & B b WHERE a.y = b.y",),
    ),
    Mutation(
        LOOKUP,
        "an integer equals the nearest real number",
        "nothing | inexact",
        "nothing",
        (LOOKED_UP,),
    ),
    Mutation(
        LOOKUP,
        "undefined arithmetic is looked up as 0",
        "else ints, ~known)",
        "else ints, known & ~known)",
        (LOOKED_UP,),
    ),
    Mutation(
        OPERATORS,
        "a negated event or a member that is looked up is not tested",
        "if clause not in site.equalities or clause in others",
        "if clause in others",
        ("PATTERN A a ; !(B b) ; C c WHERE b.x = a.x AND b.x > c.x",),
    ),
    Mutation(
        LOOKUPS,
        "what a type lacks equals nothing",
        "return all(schema.has(name, attribute.attribute) for name in component.types)",
        "return any(schema.has(name, attribute.attribute) for name in component.types)",
        (LOOKED_UP,),
    ),
    Mutation(
        TREE,
        "a sequence is assembled when there is no event of its last class",
        "return _finals(right) if kind is Join.SEQ else _finals(left) | _finals(right)",
        "return _finals(left) if kind is Join.SEQ else _finals(left) | _finals(right)",
        ("sequence",),
    ),
    Mutation(
        EXECUTOR,
        "a component that was merged keeps the other one's name",
        "order[alias.of]) & present[record]",
        "order[alias.of]) & ~present[record]",
        (COMMON,),
    ),
)


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Workshop]:
    with opened("tests.engine.tree_agreement", MUTATIONS, tmp_path_factory.mktemp("mutants"), request) as made:
        yield made


@pytest.mark.parametrize("mutation", one_of(MUTATIONS))
def test_a_wrong_tree_is_caught(mutation: Mutation, workshop: Workshop) -> None:
    workshop.check_caught(mutation)


def test_every_mutation_can_be_made() -> None:
    check_can_be_made(MUTATIONS)


@pytest.mark.soak
def test_what_catches_mutants_passes_without_a_mutation(workshop: Workshop) -> None:
    workshop.check_passes_unchanged()
