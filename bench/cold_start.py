"""G4, in fresh processes: the first match of a query never seen, what is compiled for it, and what a check imports."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bench.measure import Verdict

PROCESSES = 5
MOST_SECONDS = 1.0
COLD_PROCESSES = 3
MOST_COLD_SECONDS = 3.0
EVENTS = 1_000
HEAVY = ("numba", "pyspark")
FIRST_MATCH = ("-m", "bench.first_match")

_CHECK = """
import json, sys
from kleene.cli import main
sys.argv = ["kleene", "check", sys.argv[1]]
try:
    main()
except SystemExit as end:
    code = end.code
else:
    code = 0
print(json.dumps({"code": code or 0, "modules": [name for name in sys.modules if "." not in name]}))
"""


def fresh(*arguments: str, **environment: str) -> dict[str, Any]:
    """What a new Python process printed last."""
    made = subprocess.run(
        [sys.executable, *arguments],
        env={**_usual(), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    if made.returncode:
        raise SystemExit(f"a fresh process failed:\n{made.stderr}")
    answer: dict[str, Any] = json.loads(made.stdout.splitlines()[-1])
    return answer


def _usual() -> dict[str, str]:
    """The environment of a user, whose Python keeps the bytecode of what it imports; kernels are compiled."""
    usual = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**usual, "KLEENE_WARM": "now"}


def first_match() -> list[Verdict]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.arrow"
        table = events()
        with pa.ipc.new_file(path, table.schema) as file:
            file.write_table(table)
        program = (*FIRST_MATCH, str(path))
        return [*_first_match(program), _first_answer(program)]


def _first_answer(program: tuple[str, ...]) -> Verdict:
    """As after an installation: no kernel is compiled, and none is in the background, which would be measured too."""
    walls = []
    for number in range(COLD_PROCESSES):
        with tempfile.TemporaryDirectory() as cache:
            began = time.perf_counter()
            fresh(*program, str(number), NUMBA_CACHE_DIR=cache, KLEENE_WARM="0")
            walls.append(time.perf_counter() - began)
    wall = statistics.median(walls)
    return Verdict(
        "G4",
        wall <= MOST_COLD_SECONDS,
        f"kernel cache empty: first answer after {wall:.2f} s; goal {MOST_COLD_SECONDS:g} s",
    )


def events() -> pa.Table:
    rows = np.arange(EVENTS)
    kinds = pa.array(["A", "B"]).take(pa.array(np.where(rows % 3 == 0, 1, 0)))
    return pa.table({"type": kinds, "ts": rows, "x": rows * 7 % 101, "k": rows % 5})


def _first_match(program: tuple[str, ...]) -> list[Verdict]:
    """One process fills the cache of kernels, one is watched for compilation, and five are timed."""
    fresh(*program, "50")
    compiled = fresh(*program, "60", "watched")["compiled"]
    runs = []
    walls = []
    for number in range(PROCESSES):
        began = time.perf_counter()
        runs.append(fresh(*program, str(number)))
        walls.append(time.perf_counter() - began)
    parts = {name: statistics.median(run[name] for run in runs) for name in ("import", "read", "match", "total")}
    print(
        f"\nG4: {PROCESSES} fresh processes, kernels cached, a new Kleene query over {EVENTS:,} events, median seconds"
    )
    print("  " + ", ".join(f"{name} {spent:.2f}" for name, spent in parts.items()), end="")
    print(f" (whole process {statistics.median(walls):.2f}; {runs[0]['matches']} matches)")
    fast = parts["total"] <= MOST_SECONDS
    names = ", ".join(compiled[:5]) + (" …" if len(compiled) > 5 else "")
    return [
        Verdict(
            "G4",
            fast,
            f"import and first match in {parts['total']:.2f} s; goal {MOST_SECONDS:g} s",
            "" if fast else _slow_imports(program),
        ),
        Verdict("G4", not compiled, f"{len(compiled)} kernels compiled for a new query {names}".rstrip()),
    ]


def _slow_imports(program: tuple[str, ...], top: int = 12) -> str:
    """The slowest imports of a first match, cumulative."""
    made = subprocess.run(
        [sys.executable, "-X", "importtime", *program, "7"],
        env=_usual(),
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line.removeprefix("import time:").split("|") for line in made.stderr.splitlines() if "|" in line]
    costs = sorted(((int(line[1]), line[2].strip()) for line in lines[1:]), reverse=True)
    return "\n".join(f"{cost / 1e6:8.3f} s  import {name}" for cost, name in costs[:top]) + "\n" + made.stdout.strip()


def light_check() -> Verdict:
    """`kleene check` parses and binds without Numba or Spark."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "query.kleene"
        path.write_text("PATTERN SEQ(A+ a[], B b) WHERE [k] AND a[i].x > a[i-1].x WITHIN 10\n", encoding="utf-8")
        answer = fresh("-c", _CHECK, str(path))
    if answer["code"]:
        raise SystemExit(f"kleene check ended with {answer['code']}")
    heavy = [name for name in HEAVY if name in answer["modules"]]
    return Verdict("G4", not heavy, f"`kleene check` imports {' and '.join(heavy) or 'neither Numba nor Spark'}")


def main() -> int:
    for verdict in (*first_match(), light_check()):
        print(verdict.line())
        if verdict.profile:
            print(verdict.profile)
    return 0


if __name__ == "__main__":
    sys.exit(main())
