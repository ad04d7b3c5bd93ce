"""Mutants: copies of the package with one line changed, each run uncompiled in a process of its own.

A mutant runs random comparisons with the reference up to the first disagreement. Where mutants fail, the copy without a
change passes.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark import ParameterSet

ROOT = Path(__file__).parents[2]
AT_A_TIME = 2
# Random cases of each stratum that a mutant must survive.
SEEDS = 60

Place = tuple[str, int]


@dataclass(frozen=True)
class Mutation:
    # Below the package.
    file: str
    # What is wrong, what stands there, and what stands there instead.
    name: str
    old: str
    new: str
    # Where it should be noticed, and the first seed to try: rare combinations are known to come late.
    strata: tuple[str, ...]
    first: int = 0


@dataclass(frozen=True)
class Workshop:
    """Runs copies of the package, a few at a time."""

    # The module that compares: its argument is a list of places, and it prints what it found.
    compares: str
    folder: Path
    pool: ThreadPoolExecutor
    begun: dict[str, Future[dict[str, Any]]]

    def begin(self, mutation: Mutation) -> None:
        seeds = range(mutation.first, mutation.first + SEEDS)
        places = [(stratum, seed) for seed in seeds for stratum in mutation.strata]
        self.begun[mutation.name] = self.pool.submit(self.run, places, mutation)

    def run(self, places: Sequence[Place], mutation: Mutation | None = None) -> dict[str, Any]:
        copy = self.folder / ("as it is" if mutation is None else mutation.name)
        shutil.copytree(ROOT / "src" / "kleene", copy / "kleene", ignore=shutil.ignore_patterns("__pycache__"))
        if mutation is not None:
            path = copy / "kleene" / mutation.file
            path.write_text(mutated(mutation, path.read_text(encoding="utf-8")), encoding="utf-8")
        run = subprocess.run(
            [sys.executable, "-m", self.compares, json.dumps(places)],
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

    def check_caught(self, mutation: Mutation) -> None:
        found = self.begun[mutation.name].result()
        assert "problem" in found, f"nothing notices that {mutation.name}, in {found['compared']} pairs"
        stratum, seed = found["place"]
        print(f"\n{mutation.file}, {mutation.name}: {stratum} {seed}, after {found['compared']} pairs")

    def check_passes_unchanged(self) -> None:
        caught = [found["place"] for begun in self.begun.values() if "place" in (found := begun.result())]
        found = self.run(caught)
        assert "problem" not in found, found
        assert found["compared"] == len(caught)


def mutated(mutation: Mutation, text: str) -> str:
    times = text.count(mutation.old)
    assert times == 1, f"`{mutation.old}` stands {times} times in {mutation.file}: choose another mutation"
    return text.replace(mutation.old, mutation.new)


def check_can_be_made(mutations: Sequence[Mutation]) -> None:
    for mutation in mutations:
        mutated(mutation, (ROOT / "src" / "kleene" / mutation.file).read_text(encoding="utf-8"))


def one_of(mutations: Sequence[Mutation]) -> list[ParameterSet]:
    """All of them in `make soak`; otherwise the first, which shows that what catches them does."""
    return [
        pytest.param(each, id=each.name, marks=[pytest.mark.soak] if number else [])
        for number, each in enumerate(mutations)
    ]


@contextmanager
def opened(
    compares: str, mutations: Sequence[Mutation], folder: Path, request: pytest.FixtureRequest
) -> Iterator[Workshop]:
    """The mutants that are asked for, begun ahead of the tests that ask."""
    items = [item for item in request.session.items if isinstance(item, pytest.Function) and hasattr(item, "callspec")]
    chosen = {item.callspec.id for item in items}
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        made = Workshop(compares, folder, pool, {})
        for mutation in mutations:
            if mutation.name in chosen:
                made.begin(mutation)
        yield made
