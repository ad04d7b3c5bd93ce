"""Wrong negation is caught: each mutation of where a group or a pair forbids makes brute force and plans disagree."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.engine.mutating import Mutation, Workshop, check_can_be_made, one_of, opened

pytestmark = pytest.mark.slow

GAPS, ASSIGNMENTS, SELECTION = "pattern/gaps.py", "reference/assignments.py", "reference/selection.py"
PARTS, BUILDING = "optimize/trees/parts.py", "optimize/trees/building.py"
CLOSURES, NEGATION, PAIRS = "engine/executors/trees/closures.py", "kernels/negation.py", "kernels/negated_pairs.py"
STEPS = "engine/executors/trees/negated_pairs.py"
ALONE, BETWEEN = "PATTERN A a & !(B b)", "PATTERN A a ; (B b & !(C c)) ; A d"
PAIR = "PATTERN A a ; !(B b ; C c) ; A d"

MUTATIONS = (
    Mutation(
        ASSIGNMENTS,
        "in the reference a group without neighbours is bounded at its start only",
        "return bool(after) or within_window(query, timeline, match.first(timeline), event)",
        "return bool(after) or not before or within_window(query, timeline, match.first(timeline), event)",
        (ALONE,),
    ),
    Mutation(
        ASSIGNMENTS,
        "in the reference the end of a nested sequence is bounded by the window, not by the group's neighbour",
        "after = after or _nearest(selected, pattern.parts[place + 1 :])",
        "after = after if isinstance(part, Conjunction) else _nearest(selected, pattern.parts[place + 1 :])",
        (BETWEEN,),
    ),
    Mutation(
        SELECTION,
        "in the reference the two of a pair may come in any order",
        "if all(timeline.before(x, y) for x, y in pairwise(events)) and",
        "if",
        (PAIR,),
    ),
    Mutation(
        GAPS,
        "a nested part has the neighbours of its own sequence only",
        "own = Neighbours((*_taking(before), *around.before), (*_taking(after), *around.after))",
        "own = Neighbours((*_taking(before),), (*_taking(after),))",
        (BETWEEN, "PATTERN A a ; ((!(B b) ; C c) & B d) ; A e"),
    ),
    Mutation(
        CLOSURES,
        "a group without neighbours forbids nothing",
        "for name in gap.own or beside if",
        "for name in beside if",
        (ALONE,),
    ),
    Mutation(
        NEGATION,
        "around a group the window bounds the end only",
        "if floors[row] < 0 and outside(ends[lasts[row]], starts[other], gaps.within):",
        "if floors[row] < 0 and ceilings[row] < OPEN and outside(ends[lasts[row]], starts[other], gaps.within):",
        (ALONE,),
    ),
    Mutation(
        NEGATION,
        "around a group the window bounds the start only",
        "if ceilings[row] == OPEN and outside(ends[other], starts[firsts[row]], gaps.within):",
        "if ceilings[row] == OPEN and floors[row] >= 0 and outside(ends[other], starts[firsts[row]], gaps.within):",
        (ALONE,),
    ),
    Mutation(
        BUILDING,
        "NEG of a group stands where not all that it needs is bound",
        "if not needed & ~bound and needed & ~left.bound and needed & ~right.bound",
        "if needed & bound and needed & ~left.bound and needed & ~right.bound",
        (BETWEEN, "PATTERN A a ; (B b & !(C c)) ; B e ; A d"),
    ),
    Mutation(
        PARTS,
        "a group has no neighbour after it",
        "gap = Gap(before, after, _taking(pattern))",
        "gap = Gap(before, (), _taking(pattern))",
        (BETWEEN,),
    ),
    Mutation(
        PAIRS,
        "the second of a pair may begin before the first has ended",
        "time.lefts[second] <= time.rights[first] or",
        "False or",
        ("PATTERN A a & !(B b ; C c)",),
    ),
    Mutation(
        PAIRS,
        "the second of a pair may be outside the gap",
        "or not _in_gap(second, row, gaps, time):",
        "or False:",
        ("PATTERN A a & !(B b ; C c)",),
    ),
    Mutation(
        PAIRS,
        "only the first that ends soonest begins a pair",
        "if test.apart:",
        "if True:",
        ("PATTERN A a ; !(B b ; C c) ; A d WHERE b.x = c.x",),
    ),
    Mutation(
        PAIRS,
        "the first of a pair need not satisfy its conditions",
        "if not holds(test.opening, scope, row, groups[row]):",
        "if False:",
        ("PATTERN A a & !(B b ; C c) WHERE b.x >= 2",),
    ),
    Mutation(
        STEPS,
        "a pair is taken to be apart though a condition names both",
        "apart=not together",
        "apart=True",
        ("PATTERN A a ; !(B b ; C c) ; A d WHERE b.x = c.x",),
    ),
    Mutation(
        STEPS,
        "events without a key are of the first one",
        "(known[places] == keys) & (keys >= 0), places, -1",
        "(known[places] == keys), places, 0",
        ("PATTERN A a ; !(B b ; C c) ; A d WHERE [id]", "negated_pairs"),
        first=160,
    ),
)


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Workshop]:
    with opened("tests.engine.negation_agreement", MUTATIONS, tmp_path_factory.mktemp("mutants"), request) as made:
        yield made


@pytest.mark.parametrize("mutation", one_of(MUTATIONS))
def test_wrong_negation_is_caught(mutation: Mutation, workshop: Workshop) -> None:
    workshop.check_caught(mutation)


def test_every_mutation_can_be_made() -> None:
    check_can_be_made(MUTATIONS)


@pytest.mark.soak
def test_what_catches_mutants_passes_without_a_mutation(workshop: Workshop) -> None:
    workshop.check_passes_unchanged()
