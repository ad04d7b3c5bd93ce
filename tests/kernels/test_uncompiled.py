"""Without a compiler the engine gives the same: NUMBA_DISABLE_JIT=1 leaves every kernel a plain Python function."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.kernels.uncompiled import RUNS, results

ROOT = Path(__file__).parents[2]
# Modules whose functions only the engine calls; the others have tests of their own beside this one.
OF_THE_ENGINE = (
    "automaton",
    "counting",
    "first_paths",
    "gathering",
    "keys",
    "negation",
    "ordering",
    "paths",
    "selection",
    "sequence",
    "timeline",
    "joins",
    "pushed_negation",
    "closures",
    "lists",
    "values",
)


@pytest.fixture(scope="module")
def plain() -> dict[str, Any]:
    run = subprocess.run(
        [sys.executable, "-m", "tests.kernels.uncompiled"],
        cwd=ROOT,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    found: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return found


def test_uncompiled_kernels_agree_with_the_reference(plain: dict[str, Any]) -> None:
    assert "problem" not in plain["agreed"], plain["agreed"]
    print(f"{plain['agreed']['compared']} pairs, uncompiled")
    assert plain["agreed"]["compared"] >= 25


def test_uncompiled_kernels_give_what_compiled_ones_give(plain: dict[str, Any]) -> None:
    compiled = results()
    for (text, _, _), one, other in zip(RUNS, compiled, plain["results"], strict=True):
        assert one == other, text
        assert len(one) > 1, f"no match: {text}"


def test_every_kernel_of_the_engine_ran_uncompiled(plain: dict[str, Any]) -> None:
    """A compiled function is no Python function, so that what is counted here is what is plain."""
    ran = {name.partition(".")[0] for name in plain["ran"]}
    assert set(OF_THE_ENGINE) <= ran
    assert [name for name in plain["idle"] if name.partition(".")[0] in OF_THE_ENGINE] == []
