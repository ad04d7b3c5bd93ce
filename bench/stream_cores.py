"""Streams on one core and on two: W1 and W8 with equal triggers, each beside merely handing its rows to Python.

Spark's number of cores is that of its session, so each is measured in a process of its own. Besides rates it tells how
often slots were made anew, caught up with what other workers did or were handed over, how long that took, and what each
process has in memory.
"""

from __future__ import annotations

import argparse
import json
import logging
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.measure import Verdict
from bench.process_memory import MostMemory, workers_memory
from bench.spark_stream import STREAMING, WARM, Bench, Ran, handed_over
from bench.workloads import LATE_SECONDS, fraud, payments, sase, sequence
from kleene.spark.streaming.live_slot import ARRIVAL

GOAL_CORES, GOAL_HANDED = 1.6, 0.6
# How long workers may take to hear that a stream has ended.
_TOLD_SECONDS = 4


def _left() -> int:
    """Bytes that workers have for themselves once they were told of the end, which takes them up to a second."""
    least = workers_memory()
    for _ in range(_TOLD_SECONDS):
        time.sleep(1)
        least = min(least, workers_memory())
    return least


def measured(cores: int, events: int, batches: int) -> dict[str, Any]:
    """By workload: rates, what became of slots, and memory, on so many cores."""
    from kleene.spark.session import local_session

    session = local_session(f"local[{cores}]", **STREAMING)
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(session, Path(folder))
        for name, table, text, delay in (
            ("W8", payments(events), fraud("10 minutes"), f"{LATE_SECONDS:.0f} seconds"),
            ("W1", sase(events, 1_000), sequence(6).text, 0),
        ):
            stream = bench.files(name, table, batches)
            del table
            handed = bench.dropped(handed_over(stream))
            with MostMemory() as most:
                ran = bench.kleene(stream, text, delay, watch=True)
            slots: Counter[str] = Counter()
            for values in ran.arrivals:
                slots.update(values)
            found[name] = {
                "rate": ran.rate,
                "handed": handed.rate,
                "trigger": ran.seconds,
                "processor": _processor(ran, events // batches),
                "updates": len(ran.arrivals),
                "slots": {key: slots[key] for key in ARRIVAL},
                "memory": [process._asdict() for process in most.processes],
                "left": _left(),
            }
    session.stop()
    return found


def _processor(ran: Ran, each: int) -> dict[str, float]:
    """By role, the processor seconds of a million events, once warm; the last batch brings none."""
    first, last = ran.processor[WARM - 1], ran.processor[-2]
    events = each * (len(ran.processor) - 1 - WARM)
    return {role: (last[role] - first.get(role, 0.0)) / events * 1e6 for role in last}


def scaling(events: int, batches: int) -> list[Verdict]:
    """One core beside two."""
    print(
        f"\none core and two, {events // batches:,} events a trigger for both workloads, {batches - WARM} warm triggers"
    )
    by_cores = {cores: _in_process_of_its_own(cores, events, batches) for cores in (1, 2)}
    verdicts = []
    for name in by_cores[1]:
        for cores, workloads in by_cores.items():
            _say(name, cores, workloads[name])
        one, two = (by_cores[cores][name] for cores in (1, 2))
        ratio, part = two["rate"] / one["rate"], two["rate"] / two["handed"]
        print(f"    {name}: two cores {ratio:.2f} × one; {part:.2f} × handing the same rows to Python")
        if name == "W8":
            verdicts = [
                Verdict("G7 cores", ratio >= GOAL_CORES, f"W8 on two cores {ratio:.2f} × one (goal {GOAL_CORES})"),
                Verdict("G7 handed", part >= GOAL_HANDED, f"W8 {part:.2f} × handed to Python (goal {GOAL_HANDED})"),
            ]
    return verdicts


def _say(name: str, cores: int, workload: dict[str, Any]) -> None:
    slots = workload["slots"]
    print(
        f"  {name} on {cores}: {workload['rate']:.2f} M events/s, {workload['trigger']:.2f} s a trigger; "
        f"handed to Python {workload['handed']:.2f} M events/s"
    )
    print(
        f"    of {workload['updates']} updates of slots {slots['made_anew']} made anew, {slots['caught_up']} caught up "
        f"({slots['catching_up_ms'] / 1000:.2f} s), {slots['handed_over']} handed over"
    )
    spent = ", ".join(f"{role} {seconds:.2f}" for role, seconds in workload["processor"].items())
    print(f"    processor seconds a million events: {spent}")
    said = [f"{one['role']} {one['pss'] / 1e6:.0f} (own {one['uss'] / 1e6:.0f})" for one in workload["memory"]]
    print(f"    MB of memory at most, shared pages in parts: {', '.join(said)}")
    print(f"    MB that workers have of their own when the stream has ended: {workload['left'] / 1e6:.0f}")


def _in_process_of_its_own(cores: int, events: int, batches: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.stream_cores", "--cores", str(cores)]
    command += ["--events", str(events), "--batches", str(batches)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    workloads: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return workloads


def main(given: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cores", type=int, required=True)
    parser.add_argument("--events", type=int, required=True)
    parser.add_argument("--batches", type=int, required=True)
    arguments = parser.parse_args(given)
    logging.getLogger("kleene").setLevel(logging.ERROR)
    print(json.dumps(measured(arguments.cores, arguments.events, arguments.batches)))


if __name__ == "__main__":
    main(sys.argv[1:])
