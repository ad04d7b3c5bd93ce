"""Runs found by value on the automaton's edges: the same runs as without, and few others that are tried."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.compute
import pytest
from tests.engine.mutating import Mutation, Workshop, check_can_be_made, one_of, opened
from tests.engine.run_lookup_cases import LINES, SHAPES, WITH, check_same_runs, compared, few, linked, ran, text_of
from tests.engine.test_adapting import bound
from tests.soaking import rounds

from kleene import why
from kleene.engine.engine import Engine
from kleene.optimize.rules import LOOK_UP_RUNS
from kleene.pattern.nodes import ComponentKind
from kleene.pattern.printing import print_clause
from kleene.plan.physical import AutomatonPlan
from kleene.plan.settings import Budget, ExecutorKind, Policy, Settings

# Each query is drawn in turn.
ROUNDS = 60 * len(LINES)


@pytest.mark.slow
def test_what_finds_runs_by_value_agrees_with_the_reference(record_property: Callable[[str, object], None]) -> None:
    """At once and in pieces, restored from snapshots, with and without other rules."""
    found = [compared(seed) for seed in range(rounds(ROUNDS, 20))]
    pairs, matched = (sum(each) for each in zip(*found, strict=True))
    record_property("counted", f"runs found by value = reference: {pairs} pairs, {matched} with outputs")
    assert matched >= rounds(ROUNDS, 20) // 5


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("most", [0, 16])
def test_runs_are_those_of_an_automaton_without_look_ups(shape: str, most: int) -> None:
    check_same_runs(shape, 4000, most)


def test_memory_is_flat_over_many_windows() -> None:
    text, sizes = text_of("closure", 200), []
    for events in (6_000, 24_000):
        _, executor, _ = ran(linked(events), text, WITH, batch=1_000)
        sizes.append((executor.runs, executor.pool.heads.nbytes + executor.pool.found.nbytes))
    assert sizes[1][0] <= 2 * sizes[0][0]
    assert sizes[1][1] <= 2 * sizes[0][1]


@pytest.mark.parametrize("shape", ["closure", "every match"])
def test_the_oldest_runs_are_dropped_as_without_look_ups(shape: str) -> None:
    table, text = linked(2000), text_of(shape, 400)
    budget = Budget(runs_per_partition=30, policy=Policy.DROP_OLDEST)
    found = []
    for without in (frozenset[str](), frozenset({LOOK_UP_RUNS})):
        settings = Settings(executor=ExecutorKind.AUTOMATON, without=without, budget=budget)
        with few(0):
            found.append(ran(table, text, settings, batch=300)[0]["match_id"].to_pylist())
    assert found[0] == found[1]
    assert found[0]


def test_why_counts_every_run_that_an_event_was_tried_with() -> None:
    """`why` looks nothing up: what a look-up passes over failed its condition."""
    table = linked(300, values=500)
    said = why(table, text_of("single", 300))
    bs = table.filter(pa.compute.equal(table["type"], "B")).num_rows
    tries = [int(number.replace(",", "")) for number in re.findall(r"([\d,]+) tries failed `b.src = a.dst`", said)]
    assert tries
    assert tries[0] > 16 * bs


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ("b.src = a[1].dst", [[], [], ["b.src = a[1].dst"]]),
        ("b.real + 1 = sum(a.dst) AND b.id < a[1].id", [[], [], ["b.real + 1 = sum(a.dst)"]]),
        ("a[i].src = a[i-1].dst AND b.src = a[a.LEN].dst", [[], ["a[i].src = a[i-1].dst"], ["b.src = a[a.LEN].dst"]]),
        # Of both on one side, no equality, one of several, a key.
        ("b.src - a[1].dst = 0", [[], [], []]),
        ("b.src >= a[1].dst", [[], [], []]),
        ("b.src = a[1].dst OR b.dst = 1", [[], [], []]),
        ("a[i].id = a[1].id AND b.id = a[1].id", [[], [], []]),
    ],
)
def test_which_edges_find_runs_by_value(conditions: str, expected: list[list[str]]) -> None:
    assert looked_up(f"PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match {{ {conditions} }} WITHIN 9") == expected


def test_contiguity_finds_no_runs_by_value() -> None:
    """An event that a run does not equal ends it."""
    text = "PATTERN SEQ(A+ a[], B b) WHERE strict_contiguity { b.src = a[1].dst } WITHIN 9"
    assert looked_up(text) == [[], [], []]


def looked_up(text: str) -> list[list[str]]:
    """By edge: what runs are found by."""
    (plan,) = Engine(bound(linked(1), text), WITH).plan.alternatives
    assert isinstance(plan, AutomatonPlan)
    edges = []
    for state in plan.states:
        edges += [state.begin, state.take] if state.component.kind is ComponentKind.KLEENE else [state.begin]
    return [list(map(print_clause, edge.equalities)) for edge in edges]


# Wrong look-ups ------------------------------------------------------------------------------------------------------

_KERNEL = "kernels/lookups.py"
MUTATIONS = (
    Mutation(
        _KERNEL,
        "a run is filed under what it was before it took an event",
        "bindings[0, PREVIOUS] = runs.nodes[node, EVENT]",
        "bindings[0, PREVIOUS] = runs.nodes[node, 3]",
        ("runs",),
    ),
    Mutation(
        _KERNEL,
        "a run is filed without its last event",
        "    if machine.last[state] >= 0:\n",
        "    if machine.last[state] >= 1000:\n",
        ("shapes",),
    ),
    Mutation(
        "engine/executors/run_lookups.py",
        "an integer is no real number",
        "(AS_REAL, 1) if measure.as_real else",
        "(WHOLE, 1) if measure.as_real else",
        ("shapes",),
    ),
    Mutation(_KERNEL, "zero differs from minus zero", "real + 0.0", "real", ("shapes",)),
    Mutation(
        _KERNEL,
        "a run that an event could take and leave meets it twice",
        "taking += 1 if found[TAKING, taking] == newest else 0",
        "taking += 1 if found[TAKING, taking] == newest != found[BEGINNING, beginning] else 0",
        ("shapes",),
    ),
    Mutation(
        _KERNEL,
        "only runs that take an event are found where it could begin the next component as well",
        "found = takes and (not offer.can_begin or",
        "found = takes and (offer.can_take or",
        ("runs",),
        first=90,
    ),
    Mutation(
        _KERNEL,
        "dead runs on a chain are found",
        "elif death(node, event, measured, time, machine, runs) == LIVES:",
        "elif True:",
        ("shapes",),
    ),
    Mutation(
        _KERNEL,
        "chains that are made anew hold nothing",
        "        if runs.limit[key] > few:\n",
        "        if runs.limit[key] > few + 1000:\n",
        ("runs",),
    ),
    Mutation(
        _KERNEL,
        "runs that were there before the others are not filed",
        "_encode(node, key, machine, scope, runs)\n                node",
        "runs.codes[node] = NOTHING\n                node",
        ("runs",),
    ),
    Mutation(
        _KERNEL,
        "dead runs are never swept",
        "        sweep(state, event, time, machine, runs)\n",
        "        pass\n",
        ("shapes",),
    ),
    Mutation(
        _KERNEL,
        "chains have the oldest run first",
        "            node = _turned(runs.top[key, state], runs)\n            older: Int = np.int32(-1)\n",
        "            node = runs.top[key, state]\n            older: Int = np.int32(-1)\n",
        ("shapes",),
    ),
    Mutation(
        "optimize/look_up_runs.py",
        "a type that lacks an attribute equals nothing",
        "or _has(present[each.variable], each.attribute, schema)",
        "or True",
        ("runs",),
    ),
    Mutation(
        "optimize/look_up_runs.py",
        "contiguity passes over runs",
        "or query.strategy.is_contiguous",
        "or False",
        ("runs",),
    ),
)


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Workshop]:
    with opened("tests.engine.run_lookup_cases", MUTATIONS, tmp_path_factory.mktemp("mutants"), request) as made:
        yield made


@pytest.mark.slow
@pytest.mark.parametrize("mutation", one_of(MUTATIONS))
def test_a_wrong_look_up_is_caught(mutation: Mutation, workshop: Workshop) -> None:
    workshop.check_caught(mutation)


def test_every_mutation_can_be_made() -> None:
    check_can_be_made(MUTATIONS)


@pytest.mark.slow
def test_what_catches_mutants_passes_without_a_mutation(workshop: Workshop) -> None:
    workshop.check_passes_unchanged()
