"""Memory is counted in bytes: long strings that the window has left behind go, and `state_bytes` says what is there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.soaking import SOAKING

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
FEW, MANY = (20_000, 200_000) if SOAKING else (10_000, 20_000)
# In a process of its own: a peak never goes down. Strings of 10 kB, each another one, 2 000 a batch.
STREAMING = """
import gc, json, os, sys
import numpy as np
import pyarrow as pa
from kleene.engine.engine import Engine
from kleene.frames.arrow import schema_on
from kleene.pattern import Query, Schema

text, size = sys.argv[1], 2_000
kinds = np.array(["A", "B"])


def memory(name):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(name))


def batch(first):
    ts = np.arange(first, first + size)
    noise = os.urandom(5_000 * size).hex()
    names = pa.array([noise[10_000 * at : 10_000 * (at + 1)] for at in range(size)])
    return pa.table({"type": kinds[ts % 2], "ts": ts, "x": ts % 100, "name": names})


def engine():
    return Engine(Query(text).bind(schema_on(batch(0).schema, Schema())))


warm = engine()
warm.process(batch(0), size)
del warm
gc.collect()
before = memory("VmRSS")
with open("/proc/self/clear_refs", "w") as clear:
    clear.write("5")
running, told, peaks = engine(), [], {}
for at in range(0, int(sys.argv[2]), size):
    running.process(batch(at), at + size)
    told.append((running.nbytes, memory("VmRSS") - before))
    peaks[at + size] = memory("VmHWM")
print(json.dumps({"peaks": peaks, "told": told, "batch": batch(0).nbytes}))
"""


# Memory that is freed goes back to the system at once, so that what is resident is what is held.
GIVING_BACK = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_MMAP_THRESHOLD_": "65536",
    "MALLOC_TRIM_THRESHOLD_": "131072",
}


def run(text: str, events: int, settings: dict[str, str] | None = None) -> dict[str, Any]:
    command = [sys.executable, "-c", STREAMING, text, str(events)]
    environment = os.environ | (settings or {})
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    made: dict[str, Any] = json.loads(ran.stdout)
    return made


QUERIES = {
    "stacks": "PATTERN SEQ(A a, B b) WHERE a.name = b.name WITHIN 100",
    "runs": "PATTERN SEQ(A+ a[], B b) WHERE a[i].name = a[i-1].name AND b.name = a[1].name WITHIN 100",
    "trees": "PATTERN A a & B b WHERE a.name = b.name WITHIN 100",
    "keys": "PATTERN SEQ(A a, B b) WHERE [name] WITHIN 100",
    "of no use": "PATTERN SEQ(A a, B b) WHERE a.name = 'n' AND b.name = 'n' AND a.x > 90 AND b.x > 90 WITHIN 100",
}


@pytest.mark.parametrize(
    "name", ["keys", *(pytest.param(name, marks=pytest.mark.soak) for name in ("stacks", "runs", "trees", "of no use"))]
)
def test_ten_times_the_long_strings_have_the_same_peak(name: str) -> None:
    text = QUERIES[name]
    made = run(text, MANY)
    few, many = made["peaks"][str(FEW)], made["peaks"][str(MANY)]
    print(f"{few >> 20} MB after {FEW:,} events, {many >> 20} MB after {MANY:,}: {text}")
    assert many <= 1.2 * few


@pytest.mark.parametrize(
    "name", ["stacks", *(pytest.param(name, marks=pytest.mark.soak) for name in ("runs", "trees", "keys"))]
)
def test_state_bytes_say_how_much_memory_there_is_of_it(name: str) -> None:
    """Once more is held than a batch takes on its way in."""
    text = QUERIES[name].replace("100", "10000")
    made = run(text, 16_000, GIVING_BACK)
    for held, grown in made["told"]:
        if held > 6 * made["batch"]:
            assert grown / 1.5 <= held <= 1.5 * grown, (held, grown, text)
    assert max(made["told"])[0] > 10 * made["batch"]
