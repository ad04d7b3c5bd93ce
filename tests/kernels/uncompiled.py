"""The kernels as the plain Python functions that they are without a compiler, in a process of their own.

`NUMBA_DISABLE_JIT=1 python -m tests.kernels.uncompiled` prints what runs of the engine give, and which kernels ran.
"""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import sys
import warnings
from pathlib import Path
from types import FrameType

from tests.engine.agreement import STRATA
from tests.engine.batches import bound, events
from tests.engine.quick_agreement import run

from kleene import kernels
from kleene.engine.engine import Engine
from kleene.plan.settings import Budget, Policy, Settings

ROUNDS = 2
MANY = f"a1 x2 {' '.join(f'c{number}/{number % 2}' for number in range(3, 78))} b90 b91/1"
FEW = "c1 c2/1 c3 n3/1 c4 c5/1 c6/1 b9 b9/1 c10 b11"
DROPPING = Settings(budget=Budget(runs_per_partition=6, matches_per_event=20, policy=Policy.DROP_OLDEST))
# What random queries come to too rarely: many matches of one event, long lists, computed columns, drops, counts alone,
# negation in trees.
RUNS = (
    ("PATTERN SEQ(A a, X x, C c, B b) WITHIN 500", MANY, Settings()),
    ("PATTERN SEQ(C+ c[], B b) WHERE skip_till_next_match { [id] } WITHIN 500", MANY, Settings()),
    ("PATTERN SEQ(C+ c[], B b) WITHIN 500 OUTPUT COMPRESSED", MANY, Settings()),
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
)


def results() -> list[list[str]]:
    """The rows of each run."""
    made = []
    for text, stream, settings in RUNS:
        engine = Engine(bound(text), settings)
        engine.process(events(stream))
        batch = engine.finish()
        assert batch.matches is not None
        made.append([*map(repr, batch.matches.to_pylist()), repr(engine.statistics)])
    return made


def functions() -> set[str]:
    """Every function of the kernels, as module and name."""
    modules = [
        importlib.import_module(f"{kernels.__name__}.{each.name}") for each in pkgutil.iter_modules(kernels.__path__)
    ]
    return {
        f"{module.__name__.rpartition('.')[2]}.{name}"
        for module in modules
        for name, function in vars(module).items()
        if inspect.isfunction(function) and function.__module__ == module.__name__
    }


def main() -> None:
    ran: set[str] = set()
    folder = kernels.__path__[0]

    def called(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(folder):
            ran.add(f"{Path(frame.f_code.co_filename).stem}.{frame.f_code.co_name}")

    warnings.simplefilter("ignore")
    sys.setprofile(called)
    agreed = run([(stratum, seed) for seed in range(ROUNDS) for stratum in STRATA])
    made = results()
    sys.setprofile(None)
    idle = sorted(functions() - ran)
    print(json.dumps({"agreed": agreed, "results": made, "ran": sorted(ran), "idle": idle}))


if __name__ == "__main__":
    main()
