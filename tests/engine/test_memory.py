"""Memory follows the window and not the stream: ten million events need what one million need.

In `make soak`; otherwise three million need what 300,000 need.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.soaking import SOAKING

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
EVENTS = 10_000_000 if SOAKING else 3_000_000
# In a process of its own: a peak never goes down. SASE's Table 1: 20 types, keys uniform, one event a tick.
STREAMING = """
import json, resource, sys
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from kleene.engine.engine import Engine
from kleene.frames.arrow import schema_on
from kleene.pattern import Query, Schema

text, events, size = sys.argv[1], int(sys.argv[2]), 100_000
names = [f"E{number}" for number in range(1, 21)]
draw = np.random.default_rng(1)


def batch(first):
    ts = np.arange(first, first + size)
    kinds = pa.DictionaryArray.from_arrays(draw.integers(0, 20, size).astype(np.int8), names)
    columns = {"type": kinds, "ts": ts, "attr1": draw.integers(0, 1_000, size), "x": draw.random(size)}
    if ".name" in text or "[name" in text:
        columns["name"] = pc.cast(pa.array(ts), pa.string())
    return pa.table(columns)


engine = Engine(Query(text).bind(schema_on(batch(0).schema, Schema())))
peaks = {}
for at in range(0, events, size):
    engine.process(batch(at), at + size)
    if at + size in (events // 10, events):
        peaks[at + size] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
counted = engine.statistics
print(json.dumps({"peaks": list(peaks.values()), "rows": counted.rows, "matches": counted.matches}))
"""
SEQUENCE = "PATTERN SEQ(E1 a, E2 b, E3 c) WHERE [attr1] WITHIN 10000"
CLOSURE = "PATTERN SEQ(E1+ a[], E2 b) WHERE [attr1] AND a[i].x > a[i-1].x WITHIN 10000"
NEGATED = "PATTERN SEQ(E1 a, E2 b, !(E3 c)) WHERE [attr1] WITHIN 10000"
POSITIONS = "PATTERN SEQ(E1 a, E2 b) WHERE skip_till_next_match { [attr1] } WITHIN 50 EVENTS"


def streamed(text: str, events: int) -> tuple[int, int]:
    """The peaks after a tenth and after all of it, in megabytes, without the compiler's."""
    _run(text, 100_000)
    began = time.perf_counter()
    made = _run(text, events)
    seconds = time.perf_counter() - began
    assert made["rows"] == events
    early, late = made["peaks"]
    print(f"{events:,} events, {made['matches']:,} matches, {early} MB then {late} MB, {seconds:.1f} s: {text}")
    return early, late


def _run(text: str, events: int) -> dict[str, Any]:
    command = [sys.executable, "-c", STREAMING, text, str(events)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    made: dict[str, Any] = json.loads(run.stdout)
    return made


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(SEQUENCE, id="stacks", marks=pytest.mark.soak),
        pytest.param(CLOSURE, id="runs"),
        pytest.param(NEGATED, id="negated", marks=pytest.mark.soak),
        pytest.param(POSITIONS, id="places", marks=pytest.mark.soak),
    ],
)
def test_ten_times_the_stream_has_the_same_peak(text: str) -> None:
    early, late = streamed(text, EVENTS)
    assert late <= 1.15 * early + 20


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("PATTERN SEQ(E1 a, E2 b) WHERE [name] WITHIN 100", id="keys"),
        pytest.param(
            "PATTERN SEQ(E1 a, E2 b) WHERE a.name = b.name AND a.x > 0.99 AND b.x > 0.99 WITHIN 100",
            id="values",
            marks=pytest.mark.soak,
        ),
    ],
)
def test_strings_that_never_come_again_are_forgotten(text: str) -> None:
    early, late = streamed(text, EVENTS)
    assert late <= 1.15 * early + 20
