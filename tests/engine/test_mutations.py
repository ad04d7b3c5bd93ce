"""Wrong kernels are caught: each mutation of a kernel makes the engine disagree with the reference."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.engine.agreement import STRATA
from tests.engine.mutating import Mutation, Workshop, check_can_be_made, one_of, opened
from tests.soaking import rounds

pytestmark = pytest.mark.slow

# Random cases of every stratum that all kernels must pass uncompiled.
ROUNDS = rounds(40)

MUTATIONS = (
    Mutation(
        "kernels/automaton.py",
        "simultaneous events see each other",
        "time.rights[nodes[node, EVENT]] < time.lefts[event.number]",
        "time.rights[nodes[node, EVENT]] <= time.lefts[event.number]",
        ("ties",),
    ),
    Mutation(
        "kernels/merging.py",
        "runs are one without having the same future",
        "    if plain[state]:",
        "    if True:",
        ("kleene_any", "skip_till_next_match"),
    ),
    Mutation(
        "kernels/deaths.py",
        "a run that cannot stay is gone for the other events of its group",
        "time.steps[killer] < event.step",
        "time.steps[killer] <= event.step",
        ("ties", "skip_till_next_match"),
    ),
    Mutation(
        "kernels/automaton.py",
        "a list has one event too many",
        "NUMBER] < machine.maximum[state]",
        "NUMBER] <= machine.maximum[state]",
        ("kleene_any", "skip_till_next_match"),
    ),
    Mutation(
        "kernels/automaton.py",
        "a list is left too early",
        "NUMBER] < machine.minimum[state]",
        "NUMBER] + 1 < machine.minimum[state]",
        ("kleene_any", "skip_till_next_match"),
    ),
    Mutation(
        "kernels/deaths.py",
        "one event between two breaks no contiguity",
        "time.barriers[event.number] > time.rights[runs.nodes[node, EVENT]]",
        "time.barriers[event.number] > time.rights[runs.nodes[node, EVENT]] + 1",
        ("strict_contiguity", "partition_contiguity"),
    ),
    Mutation(
        "kernels/keys.py",
        "an event that overlaps a run's last one breaks contiguity",
        "max(counts[key, AHEAD], lefts[event])",
        "max(counts[key, AHEAD], steps[event])",
        ("durations_strict", "durations_partition"),
    ),
    Mutation(
        "kernels/keys.py",
        "the position of an event that lasts is that of its end",
        "positions[end], places[end] = past[at, TOTAL]",
        "positions[end], places[end] = past[latest, TOTAL]",
        ("durations_counted",),
    ),
    Mutation(
        "kernels/deaths.py",
        "a window of events that last closes",
        "if measured and time.closes and outside",
        "if measured and outside",
        ("durations_counted",),
        first=230,
    ),
    Mutation(
        "kernels/automaton.py",
        "an event that could be taken is ignored",
        "stays = False",
        "stays = True",
        ("skip_till_next_match",),
    ),
    Mutation(
        "kernels/completion.py",
        "a negated event that is simultaneous with the right neighbour forbids",
        ">= gap.ceiling or",
        "> gap.ceiling or",
        ("negation", "ties"),
    ),
    Mutation(
        "kernels/timeline.py",
        "a window is one step too long",
        "return bool(end > last or (end == last and not within.inclusive))",
        "return bool(end > last)",
        ("sequence",),
        first=20,
    ),
    Mutation(
        "kernels/timeline.py",
        "a distance that does not fit in 64 bits is taken",
        "return bool(end > last or (end == last and not within.inclusive))",
        "return bool(end - start > within.size or (end - start == within.size and not within.inclusive))",
        ("edge sequence", "edge kleene_any", "edge conjunction"),
    ),
    Mutation(
        "kernels/timeline.py",
        "the end of a window may lie beyond all of time",
        "if start > LATEST - within.size:\n        return False",
        "if False:\n        return False",
        ("edge sequence", "edge kleene_any"),
    ),
    Mutation(
        "kernels/timeline.py",
        "the last end of a window is not taken beyond all of time",
        "if start > LATEST - within.size:\n        return LATEST",
        "if False:\n        return LATEST",
        ("edge sequence",),
    ),
    Mutation(
        "kernels/timeline.py",
        "the beginning of a window may lie before all of time",
        "return np.maximum(times, EARLIEST - by) + by if by < 0 else",
        "return times + by if by < 0 else",
        ("edge kleene_any", "edge skip_till_next_match"),
    ),
    Mutation(
        "kernels/negation.py",
        "a negated event that is simultaneous with a sequence's right neighbour forbids",
        "rights[other] >= ceilings[row]",
        "rights[other] > ceilings[row]",
        ("negation", "ties"),
    ),
    Mutation(
        "kernels/negation.py",
        "a negated event before the window forbids",
        "if floors[row] < 0 and",
        "if False and",
        ("negation",),
        first=75,
    ),
    Mutation(
        "kernels/negation.py",
        "a negated event after the window forbids",
        "if ceilings[row] == OPEN and",
        "if False and",
        ("negation",),
        first=100,
    ),
    Mutation(
        "kernels/aggregates.py",
        "a sum is twice the last value",
        "arithmetic.add(current, value)",
        "arithmetic.add(value, value)",
        ("skip_till_next_match", "kleene_any"),
    ),
    Mutation(
        "kernels/sequence.py",
        "the most recent instance of the place before is forgotten",
        "top[NEWEST], recent, rank",
        "top[NEWEST], stacks.instances[recent, BELOW] if recent >= 0 else recent, rank",
        ("sequence",),
    ),
    Mutation(
        "kernels/gates.py",
        "a place closes one moment early",
        "is_open = ends[at] <= gate_ends[gate]",
        "is_open = ends[at] < gate_ends[gate]",
        ("edge sequence", "durations_counted"),
    ),
    Mutation(
        "kernels/gates.py",
        "an event opens the place that it stands at itself",
        "gate_ends[(gate + np.uint64(1)) * np.uint64(is_open)]",
        "gate_ends[gate * np.uint64(is_open)]",
        ("sequence",),
    ),
    Mutation(
        "kernels/gates.py",
        "of an event that can stand at several places only the first is taken",
        "allowed |= np.int64(is_open) << place",
        "allowed = np.int64(is_open) << place",
        ("sequence", "ties"),
    ),
    Mutation(
        "kernels/sequence.py",
        "construction with conditions pairs simultaneous events",
        "time.rights[event] < time.lefts",
        "time.rights[event] <= time.lefts",
        ("ties",),
        first=100,
    ),
    Mutation(
        "kernels/sequence.py",
        "a last event pairs with simultaneous ones",
        "if time.steps[event] >= moment:",
        "if time.steps[event] > moment:",
        ("ties",),
    ),
    Mutation(
        "kernels/sequence.py",
        "sequences without conditions pair simultaneous events",
        "stacks.instances[before, AHEAD] += 1",
        "stacks.instances[before, AHEAD] += 0",
        ("ties",),
        first=240,
    ),
    Mutation(
        "kernels/paths.py",
        "matches that only just begin in the window are not written",
        "NEWEST]] < low:",
        "NEWEST]] <= low:",
        ("kleene_any", "non_overlap"),
    ),
    Mutation(
        "kernels/keys.py",
        "all keys are one",
        "while code >= 0 and (known_values[code] != value or known_groups[code] != group):",
        "slot = np.uint64(0)\n        code = table[slot]\n        while False:",
        ("partition_contiguity",),
    ),
    Mutation(
        "kernels/keys.py",
        "simultaneous events have places of their own",
        "positions[event] = counts[key, BEFORE]",
        "positions[event] = counts[key, COUNT]",
        ("count_window",),
        first=130,
    ),
    Mutation(
        "kernels/selection.py",
        "matches that touch do not overlap",
        "lefts[match] > frontier[partition]",
        "lefts[match] >= frontier[partition]",
        ("non_overlap",),
        first=20,
    ),
    Mutation(
        "kernels/ordering.py",
        "the earliest start stands first",
        "ranked.starts[left] > ranked.starts[right]",
        "ranked.starts[left] < ranked.starts[right]",
        ("kleene_any",),
        first=45,
    ),
    Mutation(
        "kernels/counting.py",
        "a match that begins where another goes on is not counted",
        "ways[size, 0] = _ONE",
        "ways[size, 0] = _ZERO",
        ("compressed",),
        first=25,
    ),
    Mutation(
        "kernels/first_paths.py",
        "a row is named after a match of the earliest start",
        "starts[events[node]] > starts[events[other]]",
        "starts[events[node]] < starts[events[other]]",
        ("compressed",),
    ),
)


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Workshop]:
    with opened("tests.engine.quick_agreement", MUTATIONS, tmp_path_factory.mktemp("mutants"), request) as made:
        yield made


@pytest.mark.parametrize("mutation", one_of(MUTATIONS))
def test_a_wrong_kernel_is_caught(mutation: Mutation, workshop: Workshop) -> None:
    workshop.check_caught(mutation)


def test_every_mutation_can_be_made() -> None:
    check_can_be_made(MUTATIONS)


def test_what_catches_mutants_passes_without_a_mutation(workshop: Workshop) -> None:
    workshop.check_passes_unchanged()


@pytest.mark.soak
def test_uncompiled_kernels_agree_with_the_reference(workshop: Workshop) -> None:
    """Each kernel as the plain Python function that it is with NUMBA_DISABLE_JIT=1, on every stratum."""
    found = workshop.run([(stratum, seed) for seed in range(ROUNDS) for stratum in STRATA])
    assert "problem" not in found, found
    print(f"\n{found['compared']} pairs, uncompiled")
    assert found["compared"] >= 14 * ROUNDS
