"""Wrong trees are caught: each mutation of an operator or of a kernel makes some plan disagree with the reference.

As in `test_mutations`, a mutant is a copy of the package with one line changed, which runs uncompiled in a process of
its own, up to the first disagreement. Where mutants fail, the copy without a change passes.
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
from tests.engine.tree_agreement import COMMON, CRAFTED

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
AT_A_TIME = 2
# Random cases of each stratum that a mutant must survive.
SEEDS = 60

JOINING, PUSHED, MEMBERS = "kernels/joins.py", "kernels/pushed_negation.py", "kernels/closures.py"
JOINS, PAIRS, CLOSURES = "engine/trees/joins.py", "engine/trees/pair_tests.py", "engine/trees/closures.py"
RECORDS, LOOKUP, TREE = "engine/trees/records.py", "engine/trees/lookup.py", "engine/trees/tree.py"
EXECUTOR = "engine/trees/executor.py"
NEGATED = "PATTERN A a ; !(B b) ; C c"


@dataclass(frozen=True)
class Mutation:
    file: str
    # What is wrong, what stands there, and what stands there instead.
    name: str
    old: str
    new: str
    # Where it should be noticed: strata of `tree_agreement`, or queries that show it soon.
    strata: tuple[str, ...]


MUTATIONS = (
    Mutation(
        JOINING,
        "NSEQ beside the right neighbour forbids what is simultaneous with the negated event",
        "if right < lowest:",
        "if right <= lowest:",
        (NEGATED,),
    ),
    Mutation(
        JOINING,
        "NSEQ beside the left neighbour forbids what is simultaneous with the negated event",
        "own_left > ceilings[here]",
        "own_left >= ceilings[here]",
        (NEGATED,),
    ),
    Mutation(
        PUSHED,
        "NSEQ takes a negated event that is simultaneous with the right neighbour",
        "            if time.rights[other] >= ceilings[row]:\n                continue\n            # What",
        "            if time.rights[other] > ceilings[row]:\n                continue\n            # What",
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
        "if event >= 0 and event == inner.refs[other, tests.clashes[place, 1]]:",
        "if False and event == inner.refs[other, tests.clashes[place, 1]]:",
        ("conjunction", CRAFTED),
    ),
    Mutation(
        PAIRS,
        "an event fills two places of lists",
        "kept[whose[1:][twice]] = False",
        "kept[whose[1:][twice]] = True",
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
        "taken |= used[place] == other",
        "taken |= False",
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
        "if not self._gap.before or not self._gap.after:",
        "if not self._gap.before:",
        ("PATTERN !(C c) ; A a ; B+",),
    ),
    Mutation(
        MEMBERS,
        "a member of a group may be outside the window",
        "if ceilings[row] == FAR and size >= 0 and",
        "if ceilings[row] == FAR and False and",
        ("PATTERN (A a & C c) ; B+",),
    ),
    Mutation(
        LOOKUP,
        "two values that are NULL are equal",
        "missing = at.events.states[self.column.index, rows] != VALUE",
        "missing = at.events.states[self.column.index, rows] < VALUE",
        ("PATTERN A a & B b WHERE a.y = b.y",),
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


@dataclass(frozen=True)
class Workshop:
    """Runs copies of the package, a few at a time."""

    folder: Path
    pool: ThreadPoolExecutor
    begun: dict[str, Future[dict[str, Any]]]

    def begin(self, mutation: Mutation) -> None:
        places = [(stratum, seed) for seed in range(SEEDS) for stratum in mutation.strata]
        self.begun[mutation.name] = self.pool.submit(self.run, places, mutation)

    def run(self, places: Sequence[tuple[str, int]], mutation: Mutation | None = None) -> dict[str, Any]:
        copy = self.folder / ("as it is" if mutation is None else mutation.name)
        shutil.copytree(ROOT / "src" / "kleene", copy / "kleene", ignore=shutil.ignore_patterns("__pycache__"))
        if mutation is not None:
            path = copy / "kleene" / mutation.file
            text = path.read_text(encoding="utf-8")
            times = text.count(mutation.old)
            assert times == 1, f"`{mutation.old}` stands {times} times in {path.name}: choose another mutation"
            path.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
        run = subprocess.run(
            [sys.executable, "-m", "tests.engine.tree_agreement", json.dumps(places)],
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
def test_a_wrong_tree_is_caught(mutation: Mutation, workshop: Workshop) -> None:
    found = workshop.begun[mutation.name].result()
    assert "problem" in found, f"nothing notices that {mutation.name}, in {found['compared']} pairs"
    stratum, seed = found["place"]
    print(f"\n{mutation.file}, {mutation.name}: {stratum} {seed}, after {found['compared']} pairs")


def test_what_catches_mutants_passes_without_a_mutation(workshop: Workshop) -> None:
    caught = [found["place"] for begun in workshop.begun.values() if "place" in (found := begun.result())]
    found = workshop.run(caught)
    assert "problem" not in found, found
    assert found["compared"] == len(caught)
