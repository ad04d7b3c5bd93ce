"""Without a compiler the engine gives the same: every kernel is a plain Python function, too, in the same process."""

from __future__ import annotations

import importlib
import pkgutil
import random
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import numpy as np
import pyarrow as pa
import pytest
from tests.engine.agreement import STRATA, case_of, pair_of
from tests.engine.batches import bound, events
from tests.engine.quick_agreement import run as run_agreement

from kleene import kernels
from kleene.engine.engine import Engine
from kleene.kernels.identity import mixed
from kleene.kernels.interpreting import Kernel, OutOfTime, interpreted
from kleene.plan.settings import Budget, Policy, Settings

ROUNDS = 2
MANY = f"a1 x2 {' '.join(f'c{number}/{number % 2}' for number in range(3, 78))} b90 b91/1"
FEW = "c1 c2/1 c3 n3/1 c4 c5/1 c6/1 b9 b9/1 c10 b11"
DROPPING = Settings(budget=Budget(runs_per_partition=6, matches_per_event=20, policy=Policy.DROP_OLDEST))
# What random queries come to too rarely: many matches of one event, long lists, computed columns, drops, counts alone,
# negation in trees, runs that are found by value.
RUNS = (
    ("PATTERN SEQ(A a, X x, C c, B b) WHERE c.ts > x.ts + 1 WITHIN 500", MANY, Settings()),
    ("PATTERN SEQ(C+ c[], B b) WHERE skip_till_next_match { [id] } WITHIN 500", MANY, Settings()),
    ("PATTERN SEQ(C+ c[], B b) WITHIN 500 OUTPUT COMPRESSED", MANY, Settings()),
    ("PATTERN SEQ(A a, C+ c[], B b) WITHIN 500 OUTPUT COMPRESSED", MANY, Settings()),
    ("PATTERN SEQ(C+ c[], B b) WHERE skip_till_next_match { } WITHIN 60 OUTPUT COMPRESSED", MANY, Settings()),
    ("PATTERN SEQ(C+ c[], B b) WITHIN 60 OUTPUT COMPRESSED", MANY, Settings(graphs=False)),
    (
        "PATTERN SEQ(C+ c[], B b) WHERE skip_till_next_match { } WITHIN 60 OUTPUT COMPRESSED",
        MANY,
        Settings(graphs=False),
    ),
    ("PATTERN SEQ(C+ c[], B b) WHERE c[i].ts > c[1].ts + 1 WITHIN 70", MANY, DROPPING),
    ("PATTERN SEQ(C+ c[], !(N n), B b) WHERE [id] AND n.ts > c[1].ts WITHIN 8", FEW, Settings()),
    (
        "PATTERN SEQ(C{2,3} c[], B b) WHERE max(c[..].id) = '1' AND sum(c[..].ts) > 5 WITHIN 60 "
        "RETURN sum(c.ts) AS total, avg(c.ts) AS mean, min(c.id) AS least, b.ts - c[1].ts AS length, count(c) AS n",
        FEW,
        Settings(),
    ),
    ("PATTERN (C c ; !(N n) ; B b) & C d WHERE n.id = b.id WITHIN 8", FEW, Settings()),
    ("PATTERN C c ; !(N n) ; (B b & C d) WHERE n.ts > c.ts + 1 WITHIN 8", FEW, Settings()),
    ("PATTERN C c ; (C{1,3} d[] & B b) WHERE d[i].ts > c.ts + 2 AND d[i].id != d[i-1].id WITHIN 8", FEW, Settings()),
    ("PATTERN (C c & B b) ; C+ WHERE [id] WITHIN 9", FEW, Settings()),
    ("PATTERN C c & B b WHERE c.ts < b.ts WITHIN 9", FEW, Settings()),
    (
        "PATTERN SEQ(C c, C d, B b) WHERE skip_till_next_match { d.ts = c.ts + 70 AND b.id = c.id } WITHIN 500",
        MANY,
        Settings(),
    ),
)
# Modules whose functions only the engine calls; the others have tests of their own beside this one.
OF_THE_ENGINE = (
    "automaton",
    "completion",
    "counting",
    "deaths",
    "extension",
    "first_paths",
    "gathering",
    "graph_blocks",
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
    "lookups",
    "values",
)


def results() -> list[tuple[pa.Table, str]]:
    """The matches and the counts of each run."""
    gathered = []
    for text, stream, settings in RUNS:
        engine = Engine(bound(text), settings)
        engine.process(events(stream))
        batch = engine.finish()
        assert batch.matches is not None
        gathered.append((batch.matches, repr(engine.statistics)))
    return gathered


def outputs(query: object, table: pa.Table) -> tuple[object, ...]:
    engine = Engine(query)  # type: ignore[arg-type]
    engine.process(table)
    batch = engine.finish()
    return batch.matches, batch.timeouts, batch.compressed


def functions() -> set[str]:
    """Every kernel and every step of one, as module and name."""
    modules = [
        importlib.import_module(f"{kernels.__name__}.{found.name}") for found in pkgutil.iter_modules(kernels.__path__)
    ]
    every = [value for module in modules for value in vars(module).values() if isinstance(value, Kernel)]
    return {named(kernel.plain.__code__.co_filename, kernel.plain.__name__) for kernel in every}


def named(file: str, function: str) -> str:
    return f"{Path(file).stem}.{function}"


@dataclass
class Plain:
    """What uncompiled kernels gave, and which of them ran as Python."""

    agreed: dict[str, object]
    results: list[tuple[pa.Table, str]]
    ran: set[str]


@pytest.fixture(scope="module")
def plain() -> Plain:
    ran: set[str] = set()
    folder = kernels.__path__[0]

    def called(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(folder):
            ran.add(named(frame.f_code.co_filename, frame.f_code.co_name))

    with interpreted(), warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        sys.setprofile(called)
        try:
            agreed = run_agreement([(stratum, seed) for seed in range(ROUNDS) for stratum in STRATA])
            gathered = results()
        finally:
            sys.setprofile(None)
    return Plain(agreed, gathered, ran)


@pytest.mark.slow
def test_uncompiled_kernels_agree_with_the_reference_and_give_no_warnings(plain: Plain) -> None:
    assert "problem" not in plain.agreed, plain.agreed
    print(f"{plain.agreed['compared']} pairs, uncompiled")
    assert int(str(plain.agreed["compared"])) >= 25


@pytest.mark.slow
def test_uncompiled_kernels_give_what_compiled_ones_give(plain: Plain) -> None:
    for (text, _, _), one, other in zip(RUNS, results(), plain.results, strict=True):
        assert one[0].equals(other[0]), text
        assert one[1] == other[1], text
        assert one[0].num_rows, f"no match: {text}"


def test_both_give_the_same_ids_in_every_stratum() -> None:
    compared = matched = 0
    for stratum in STRATA:
        pair = pair_of(case_of(random.Random(f"both {stratum}"), stratum))
        if pair is None:
            continue
        compiled = outputs(pair.bound, pair.table)
        with interpreted():
            assert outputs(pair.bound, pair.table) == compiled, pair.text
        compared += 1
        matched += compiled[0] is not None and bool(compiled[0].num_rows)  # type: ignore[attr-defined]
    print(f"{compared} queries in both ways, {matched} with matches")
    assert compared > len(STRATA) / 2
    assert matched > compared / 3


@pytest.mark.slow
def test_every_kernel_of_the_engine_ran_uncompiled(plain: Plain) -> None:
    """A compiled function is no Python function, so that what is counted here is what is plain."""
    assert set(OF_THE_ENGINE) <= {name.partition(".")[0] for name in plain.ran}
    idle = functions() - plain.ran
    assert sorted(name for name in idle if name.partition(".")[0] in OF_THE_ENGINE) == []


def test_uncompiled_kernels_end_when_their_time_is_over() -> None:
    """2^15 matches of 16 events take longer than is given; afterwards kernels are compiled ones again."""
    many = " ".join(f"c{number}" for number in range(1, 16))
    query, table = bound("PATTERN SEQ(C+ c[], B b) WITHIN 500"), events(f"{many} b90")
    with pytest.raises(OutOfTime), interpreted(seconds=0.02):
        outputs(query, table)
    functions_called: list[str] = []

    def called(frame: FrameType, event: str, _: object) -> None:
        functions_called.append(frame.f_code.co_name)

    sys.setprofile(called)
    try:
        mixed(np.zeros(3, np.uint64))
    finally:
        sys.setprofile(None)
    # Numba reports the kernel itself to a profiler, not what is compiled into it.
    assert "mixed" in functions_called
    assert "mix" not in functions_called
