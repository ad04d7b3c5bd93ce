"""Wrong evaluators of streams are caught: each mutation makes sets, Algorithm 1 or the engine disagree."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.engine.mutating import Mutation, Workshop, check_can_be_made, one_of, opened
from tests.streams.agreement import KINDS

pytestmark = pytest.mark.slow

SETS, ALGORITHM_1 = "reference/streams.py", "reference/stream_automaton.py"
VALUES, KERNEL, INSTANCES = "reference/stream_values.py", "kernels/streams.py", "kernels/stream_instances.py"


def mutation(file: str, name: str, old: str, new: str, first: int = 0) -> Mutation:
    return Mutation(file, name, old, new, KINDS, first)


MUTATIONS = (
    mutation(SETS, "overlapping events follow each other", "event.end < other.start:", "event.start < other.end:"),
    mutation(SETS, "the last one follows", "first = min((end for", "first = max((end for"),
    mutation(SETS, "one of several ties follows", "in passed if end == first]", "in passed if end == first][:1]"),
    mutation(SETS, "left values stay", "{**event.values, **other.values}", "{**other.values, **event.values}"),
    mutation(
        SETS, "nothing is tested on entering a fold", "if holds_all(node.entry", "if True or holds_all(node.entry"
    ),
    mutation(
        SETS, "a fold gives its left side as well", "results: list[Traced] = []", "results = [*map(Traced, current)]"
    ),
    mutation(SETS, "a fold is one round", "        while current:", "        for _ in range(1):"),
    mutation(VALUES, "one of several conditions is enough", "return all(holds", "return any(holds"),
    mutation(VALUES, "DUR counts no tick", "* step + tick", "* step"),
    mutation(VALUES, "x.last is x", "self.last if which is", "self.event.values if which is"),
    mutation(ALGORITHM_1, "what was served stays", "if any(each.stays(", "if True or any(each.stays("),
    mutation(ALGORITHM_1, "an instance is not rebound", "            self.edges.append(rebind)", "            pass"),
    mutation(ALGORITHM_1, "ties are one step", "(event.end, event.tie) if tied", "(event.end,) if tied"),
    mutation(
        ALGORITHM_1, "instances are one whatever they hold", "following[edge.target, successor.key]", "following[edge]"
    ),
    mutation(
        ALGORITHM_1,
        "a filter ignores its condition",
        "if holds_all(self.condition, StreamBindings(traced.event, traced.last)):\n                return False",
        "return False",
    ),
    mutation(
        KERNEL,
        "an event follows what ends as it starts",
        "END_TIE] >= events.start_ties",
        "END_TIE] > events.start_ties",
    ),
    mutation(
        KERNEL,
        "an instance starts with its newest event",
        "START] = events.starts[event] if instance < 0",
        "START] = events.starts[event] if True",
    ),
    mutation(
        KERNEL, "a state waits for anything", "row[FILTER]) and not _passes", "row[FILTER]) and False and not _passes"
    ),
    mutation(KERNEL, "ties are steps of their own", "events.ends[left] == events.ends[right] and", "False and"),
    mutation(
        INSTANCES,
        "what an event served waits on",
        "SERVED_COUNT] += 1\n        leave(instances, instance)",
        "SERVED_COUNT] += 1",
    ),
    mutation(INSTANCES, "equal instances are several", "if several and equal_one", "if False and equal_one"),
    mutation(
        INSTANCES,
        "NULL is zero",
        "same &= instances.states[left, cell] == instances.states[right, cell]",
        "pass",
        first=22,
    ),
    mutation(
        INSTANCES,
        "an event without a key has one",
        "has_key &= columns.states[key[2], event] == op.VALUE",
        "pass",
        first=43,
    ),
    mutation(
        "optimize/streams/deadlines.py",
        "a bound is one step too short",
        "int(bound) - elapsed.tick,",
        "int(bound) - elapsed.tick - elapsed.step,",
    ),
    mutation(
        "optimize/streams/push_filter.py",
        "a selection below a computation reads what was there",
        "values = {name: assigned(value)",
        "values = {} and {name: assigned(value)",
    ),
    mutation(
        "optimize/streams/automaton.py",
        "a fold is entered without a test",
        ".typed(fold.schema).filtered(fold.entry)",
        ".typed(fold.schema)",
    ),
    mutation(
        "optimize/streams/keys.py",
        "a key by any comparison",
        'Comparison("=", Attribute() as left',
        "Comparison(_, Attribute() as left",
        first=35,
    ),
)


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Workshop]:
    with opened("tests.streams.agreement", MUTATIONS, tmp_path_factory.mktemp("mutants"), request) as made:
        yield made


@pytest.mark.parametrize("mutation", one_of(MUTATIONS))
def test_a_wrong_evaluator_is_caught(mutation: Mutation, workshop: Workshop) -> None:
    workshop.check_caught(mutation)


def test_every_mutation_can_be_made() -> None:
    check_can_be_made(MUTATIONS)


@pytest.mark.soak
def test_what_catches_mutants_passes_without_a_mutation(workshop: Workshop) -> None:
    workshop.check_passes_unchanged()
