"""G5: memory follows the window. The same query over a stream, and over one ten times as long, in a process each.

`python -m bench.memory W1 10` streams ten batches and prints its peak; without arguments, both are compared.
"""

from __future__ import annotations

import importlib.util
import json
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from bench.measure import Verdict
from bench.workloads import sase, sequence, stock, stock_query

BATCH = 50_000
BATCHES = 10
MOST_GROWTH = 0.10

# By name: the stream's batches, and the query.
STREAMS: dict[str, tuple[Callable[[int], pa.Table], str]] = {
    "W1": (lambda number: sase(BATCH, 1_000, seed=number, first=number * BATCH), sequence().text),
    "W3": (lambda number: stock(BATCH, seed=number, first=number * BATCH), stock_query("p2", "s3", compressed=True)),
}


def engine_is_there() -> bool:
    try:
        return importlib.util.find_spec("kleene.engine.engine") is not None
    except ImportError:
        return False


def stream(name: str, batches: int) -> dict[str, Any]:
    """Stream so many batches through an engine, and forget what it gives."""
    from bench.running import bound
    from kleene.engine.engine import Engine

    make, text = STREAMS[name]
    engine = Engine(bound(make(0), text))
    matches = held = 0
    for number in range(batches):
        made = engine.process(make(number), (number + 1) * BATCH)
        matches += made.statistics.matches
        held = max(held, engine.nbytes)
    matches += engine.finish().statistics.matches
    return {"peak": peak_bytes(), "matches": matches, "state": held}


def peak_bytes() -> int:
    """This process's own peak; `ru_maxrss` would begin with that of the process which started it."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def memory() -> list[Verdict]:
    """Peaks of both lengths, for stacks and for runs."""
    if not engine_is_there():
        return [Verdict("G5", None, "kleene.engine.engine cannot be imported, so nothing streams yet")]
    print(f"\nG5: batches of {BATCH:,} events through an engine, a fresh process each")
    verdicts = []
    for name in STREAMS:
        short, long = (_in_a_process(name, number) for number in (BATCHES, 10 * BATCHES))
        if short is None or long is None:
            verdicts.append(Verdict("G5", False, f"{name} did not run"))
            continue
        growth = long["peak"] / short["peak"] - 1
        for number, made in ((BATCHES, short), (10 * BATCHES, long)):
            print(
                f"  {name}{number * BATCH:12,} events{made['matches']:12,} rows out, "
                f"peak {made['peak'] / 2**20:6.0f} MB, state at most {made['state'] / 2**20:6.1f} MB"
            )
        figures = f"{name}, 10 x the stream: peak {short['peak'] / 2**20:.0f} → {long['peak'] / 2**20:.0f} MB"
        verdicts.append(Verdict("G5", growth <= MOST_GROWTH, f"{figures} ({growth:+.0%}); goal within 10 %"))
    return verdicts


def _in_a_process(name: str, batches: int) -> dict[str, Any] | None:
    made = subprocess.run(
        [sys.executable, "-m", "bench.memory", name, str(batches)], capture_output=True, text=True, check=False
    )
    if made.returncode:
        print(f"  {name} with {batches} batches failed:\n{made.stderr}")
        return None
    answer: dict[str, Any] = json.loads(made.stdout.splitlines()[-1])
    return answer


def main(arguments: list[str]) -> int:
    if arguments:
        print(json.dumps(stream(arguments[0], int(arguments[1]))))
    else:
        for verdict in memory():
            print(verdict.line())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
