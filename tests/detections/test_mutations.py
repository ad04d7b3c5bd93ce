"""Wrong evaluators of EQL are caught: each mutation makes definitions, engine or what was found by hand disagree."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.detections.agreement import BY_HAND
from tests.engine.mutating import Mutation, Workshop, check_can_be_made, one_of, opened

pytestmark = pytest.mark.slow

DEFINITIONS, BINDER = "reference/detections.py", "algebra/eql_bind.py"
HISTORIES, NEXT, EXCEPTIONS = "kernels/detections.py", "kernels/next_detections.py", "kernels/exceptions.py"
OPERATORS, SUCCESSORS = "engine/detections/operators.py", "engine/detections/successors.py"


def mutation(file: str, name: str, old: str, new: str, stratum: str, first: int = 0) -> Mutation:
    return Mutation(file, name, old, new, (stratum,), first)


MUTATIONS = (
    # What the operators mean
    mutation(DEFINITIONS, "the last one follows", "first = min((each.order", "first = max((each.order", "chain"),
    mutation(
        DEFINITIONS,
        "the shorter history is first",
        "(*reversed(self.history), _AFTER_ALL)",
        "(*reversed(self.history),)",
        BY_HAND,
    ),
    mutation(
        DEFINITIONS, "what ends with an exception dies", "first[0].end <= death", "first[0].end < death", "exception", 3
    ),
    mutation(
        DEFINITIONS,
        "an exception at the start cancels nothing",
        "detected.start <= one.end < detected.end",
        "detected.start < one.end < detected.end",
        "exception",
        5,
    ),
    # Histories and tests of pairs
    mutation(
        HISTORIES,
        "the shorter of two is first",
        "if second < detections.offsets[other]:\n            return -1",
        "if second < detections.offsets[other]:\n            return 1",
        BY_HAND,
    ),
    mutation(
        HISTORIES,
        "PREV is the newest event",
        "last = end - 1 if newest and kind == PREVIOUS else end",
        "last = end",
        "iteration",
        5,
    ),
    mutation(
        HISTORIES,
        "ALL is of every alias",
        "if (lefts.aliases[at] if is_left else rights.aliases[at]) != alias:",
        "if False:",
        "iteration",
        23,
    ),
    # next
    mutation(
        NEXT,
        "what overlaps follows",
        "rights.starts[first], rights.start_ties[first]\n    ):",
        "rights.ends[first], rights.end_ties[first]\n    ):",
        "chain",
    ),
    mutation(
        NEXT,
        "one of several ties is taken",
        "for place in range(begin, end):\n                right",
        "for place in range(begin, begin + 1):\n                right",
        "chain",
    ),
    mutation(
        NEXT,
        "a run looks on when its condition fails",
        "                taken = True\n",
        "                taken = fits(given.tests, CONDITION, given.scope, lefts, left, rights, right)\n",
        "chain",
    ),
    mutation(
        NEXT,
        "what was taken waits on",
        "waiting.gone[left] = 1\n            _leave",
        "_leave",
        "chain",
    ),
    mutation(NEXT, "a failed detection ends nothing", "dead = effect == KILLS", "dead = effect > KILLS", "exception"),
    # exceptions
    mutation(
        EXCEPTIONS, "exceptions have no condition", "if not has_condition or fits(", "if True or fits(", "exception", 19
    ),
    mutation(
        EXCEPTIONS,
        "an exception must end after the detection",
        "detections.starts[number], detections.start_ties[number]",
        "detections.ends[number], detections.end_ties[number]",
        "exception",
        5,
    ),
    # operators
    mutation(
        OPERATORS,
        "a timer is a step late",
        "shifted(detections.ends, steps)",
        "shifted(detections.ends, steps + 1)",
        "timer",
    ),
    mutation(
        OPERATORS,
        "an iteration begins with two",
        "given, waiting = [begun], []",
        "given, waiting = [], []",
        "iteration",
    ),
    mutation(
        OPERATORS,
        "keys are lost with a snapshot",
        "waiting, self.successors.left_keys(waiting)",
        "waiting, np.zeros(size_of(waiting), np.int64)",
        "chain",
        2,
    ),
    mutation(
        OPERATORS,
        "exceptions are of one batch",
        "if until is None or self._node.deferred:",
        "if True:",
        "exception",
        7,
    ),
    mutation(SUCCESSORS, "NULL is a key", "states != VALUE)", "states > 100)", BY_HAND),
    mutation("engine/detections/arrays.py", "ties stand as they came", "if not same.any():", "if True:", "union"),
    # Planner and binder
    mutation(
        "optimize/detections/planning.py",
        "a key by any comparison",
        'not isinstance(literal, Comparison) or literal.operator != "=":\n        return None\n    one,',
        "not isinstance(literal, Comparison):\n        return None\n    one,",
        "chain",
        44,
    ),
    mutation(
        BINDER,
        "FILTER is as any other condition",
        "first_of = tuple(clause for each in conjuncts if each.filters",
        "first_of = tuple(clause for each in conjuncts if False",
        BY_HAND,
    ),
    mutation(
        BINDER,
        "an exception is known too early",
        "Failing(number, clauses, not rest)",
        "Failing(number, clauses, True)",
        BY_HAND,
    ),
    mutation(
        BINDER,
        "a branch is tested after its `;`",
        "any(names <= _names(branch) for branch in part.parts)",
        "False",
        BY_HAND,
    ),
)


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Workshop]:
    with opened("tests.detections.agreement", MUTATIONS, tmp_path_factory.mktemp("mutants"), request) as made:
        yield made


@pytest.mark.parametrize("mutation", one_of(MUTATIONS))
def test_a_wrong_evaluator_is_caught(mutation: Mutation, workshop: Workshop) -> None:
    workshop.check_caught(mutation)


def test_every_mutation_can_be_made() -> None:
    check_can_be_made(MUTATIONS)


@pytest.mark.soak
def test_what_catches_mutants_passes_without_a_mutation(workshop: Workshop) -> None:
    workshop.check_passes_unchanged()
