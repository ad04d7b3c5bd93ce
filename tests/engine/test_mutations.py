"""Wrong kernels are caught: each mutation of a kernel makes the engine disagree with the reference.

A mutant is a copy of the package with one line changed. It runs uncompiled, in a process of its own, on a quick part of
the random agreement, up to the first disagreement. Where mutants fail, the copy without a change passes.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.engine.agreement import STRATA

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
AT_A_TIME = 2
# Random cases of each stratum that a mutant must survive, and of every stratum that all kernels must pass uncompiled.
SEEDS = 60
ROUNDS = 10

Place = tuple[str, int]


@dataclass(frozen=True)
class Mutation:
    kernel: str
    # What is wrong, what stands there, and what stands there instead.
    name: str
    old: str
    new: str
    # Where it should be noticed, and the first seed to try: rare combinations are known to come late.
    strata: tuple[str, ...]
    first: int = 0


MUTATIONS = (
    Mutation(
        "automaton",
        "simultaneous events see each other",
        "if rights[held] >= lefts[number]:",
        "if rights[held] > lefts[number]:",
        ("ties",),
    ),
    Mutation(
        "merging",
        "runs are one without having the same future",
        "    if plain[state]:",
        "    if True:",
        ("kleene_any", "skip_till_next_match"),
    ),
    Mutation(
        "automaton",
        "a run that cannot stay is gone for the other events of its group",
        "steps[killer] < step",
        "steps[killer] <= step",
        ("ties", "skip_till_next_match"),
    ),
    Mutation(
        "automaton",
        "a list has one event too many",
        "NUMBER] >= maximum[state]",
        "NUMBER] > maximum[state]",
        ("kleene_any", "skip_till_next_match"),
    ),
    Mutation(
        "automaton",
        "a list is left too early",
        "NUMBER] < minimum[state]",
        "NUMBER] + 1 < minimum[state]",
        ("kleene_any", "skip_till_next_match"),
    ),
    Mutation(
        "automaton",
        "one event between two breaks no contiguity",
        "contiguous and barriers[number] > rights[held]",
        "contiguous and barriers[number] > rights[held] + 1",
        ("strict_contiguity", "partition_contiguity"),
    ),
    Mutation(
        "keys",
        "an event that overlaps a run's last one breaks contiguity",
        "max(counts[key, AHEAD], lefts[event])",
        "max(counts[key, AHEAD], steps[event])",
        ("durations_strict", "durations_partition"),
    ),
    Mutation(
        "keys",
        "the position of an event that lasts is that of its end",
        "positions[end], places[end] = past[at, TOTAL]",
        "positions[end], places[end] = past[latest, TOTAL]",
        ("durations_counted",),
    ),
    Mutation(
        "automaton",
        "a window of events that last closes",
        "if not dead and early and closes:",
        "if not dead and early:",
        ("durations_counted",),
        first=230,
    ),
    Mutation(
        "automaton",
        "an event that could be taken is ignored",
        "stays = False",
        "stays = True",
        ("skip_till_next_match",),
    ),
    Mutation(
        "completion",
        "a negated event that is simultaneous with the right neighbour forbids",
        ">= ceiling or",
        "> ceiling or",
        ("negation", "ties"),
    ),
    Mutation(
        "timeline",
        "a window is one step too long",
        "distance > size or (distance == size and not inclusive)",
        "distance > size",
        ("sequence",),
        first=20,
    ),
    Mutation(
        "negation",
        "a negated event that is simultaneous with a sequence's right neighbour forbids",
        "rights[other] >= ceilings[row]",
        "rights[other] > ceilings[row]",
        ("negation", "ties"),
    ),
    Mutation(
        "negation",
        "a negated event before the window forbids",
        "if where == AT_START and",
        "if False and",
        ("negation",),
        first=75,
    ),
    Mutation(
        "negation",
        "a negated event after the window forbids",
        "if where == AT_END and",
        "if False and",
        ("negation",),
        first=100,
    ),
    Mutation(
        "aggregates",
        "a sum is twice the last value",
        "arithmetic.add(held, value)",
        "arithmetic.add(value, value)",
        ("skip_till_next_match", "kleene_any"),
    ),
    Mutation(
        "sequence",
        "the most recent instance of the place before is forgotten",
        "recent[instance] = previous",
        "recent[instance] = below[previous] if previous >= 0 else previous",
        ("sequence",),
    ),
    Mutation(
        "sequence",
        "construction pairs simultaneous events",
        "time.rights[candidate] >= time.lefts",
        "time.rights[candidate] > time.lefts",
        ("ties",),
        first=25,
    ),
    Mutation(
        "paths",
        "matches that only just begin in the window are not written",
        "NEWEST]] < low:",
        "NEWEST]] <= low:",
        ("kleene_any", "non_overlap"),
    ),
    Mutation(
        "keys",
        "all keys are one",
        "while code >= 0 and (known_values[code] != value or known_groups[code] != group):",
        "slot = np.uint64(0)\n        code = table[slot]\n        while False:",
        ("partition_contiguity",),
    ),
    Mutation(
        "keys",
        "simultaneous events have places of their own",
        "positions[event] = counts[key, BEFORE]",
        "positions[event] = counts[key, COUNT]",
        ("count_window",),
        first=130,
    ),
    Mutation(
        "selection",
        "matches that touch do not overlap",
        "lefts[match] > frontier[partition]",
        "lefts[match] >= frontier[partition]",
        ("non_overlap",),
        first=20,
    ),
    Mutation(
        "ordering",
        "the earliest start stands first",
        "ranked.starts[left] > ranked.starts[right]",
        "ranked.starts[left] < ranked.starts[right]",
        ("kleene_any",),
        first=45,
    ),
    Mutation(
        "counting",
        "a match that begins where another goes on is not counted",
        "ways[size, 0] = _ONE",
        "ways[size, 0] = _ZERO",
        ("compressed",),
        first=25,
    ),
    Mutation(
        "first_paths",
        "a row is named after a match of the earliest start",
        "starts[events[node]] > starts[events[other]]",
        "starts[events[node]] < starts[events[other]]",
        ("compressed",),
    ),
)


@dataclass(frozen=True)
class Workshop:
    """Runs copies of the package, a few at a time."""

    folder: Path
    pool: ThreadPoolExecutor
    begun: dict[str, Future[dict[str, Any]]]

    def begin(self, mutation: Mutation) -> None:
        places = [
            (stratum, seed) for seed in range(mutation.first, mutation.first + SEEDS) for stratum in mutation.strata
        ]
        self.begun[mutation.name] = self.pool.submit(self.run, places, mutation)

    def run(self, places: Sequence[Place], mutation: Mutation | None = None) -> dict[str, Any]:
        copy = self.folder / ("as it is" if mutation is None else mutation.name)
        shutil.copytree(ROOT / "src" / "kleene", copy / "kleene", ignore=shutil.ignore_patterns("__pycache__"))
        if mutation is not None:
            path = copy / "kleene" / "kernels" / f"{mutation.kernel}.py"
            text = path.read_text(encoding="utf-8")
            times = text.count(mutation.old)
            assert times == 1, f"`{mutation.old}` stands {times} times in {path.name}: choose another mutation"
            path.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
        run = subprocess.run(
            [sys.executable, "-m", "tests.engine.quick_agreement", json.dumps(places)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(copy), "NUMBA_DISABLE_JIT": "1", "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert run.returncode == 0, run.stderr
        found: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
        assert Path(found["kleene"]).is_relative_to(copy), "the copy ran"
        shutil.rmtree(copy)
        return found


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Workshop]:
    """The mutants that are asked for, begun ahead of the tests that ask."""
    items = [item for item in request.session.items if isinstance(item, pytest.Function) and hasattr(item, "callspec")]
    chosen = {item.callspec.id for item in items}
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        made = Workshop(tmp_path_factory.mktemp("mutants"), pool, {})
        for mutation in MUTATIONS:
            if mutation.name in chosen:
                made.begin(mutation)
        yield made


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_wrong_kernel_is_caught(mutation: Mutation, workshop: Workshop) -> None:
    found = workshop.begun[mutation.name].result()
    assert "problem" in found, f"nothing notices that {mutation.name}, in {found['compared']} pairs"
    stratum, seed = found["place"]
    print(f"\n{mutation.kernel}, {mutation.name}: {stratum} {seed}, after {found['compared']} pairs")


def test_what_catches_mutants_passes_without_a_mutation(workshop: Workshop) -> None:
    caught = [found["place"] for begun in workshop.begun.values() if "place" in (found := begun.result())]
    found = workshop.run(caught)
    assert "problem" not in found, found
    assert found["compared"] == len(caught)


def test_uncompiled_kernels_agree_with_the_reference(workshop: Workshop) -> None:
    """Each kernel as the plain Python function that it is with NUMBA_DISABLE_JIT=1, on every stratum."""
    found = workshop.run([(stratum, seed) for seed in range(ROUNDS) for stratum in STRATA])
    assert "problem" not in found, found
    print(f"\n{found['compared']} pairs, uncompiled")
    assert found["compared"] >= 14 * ROUNDS
