"""How many runs a node stands for, where many runs with different first events come together at one event."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest

import kleene

COMPRESSED = "OUTPUT COMPRESSED"


@pytest.mark.parametrize("number", [3, 70, 400])
@pytest.mark.parametrize("apart", [0, 1], ids=["at once", "one after the other"])
def test_runs_that_come_together_are_counted(number: int, apart: int) -> None:
    firsts = [1 + apart * place for place in range(number)]
    table = pa.table({"type": ["A"] * number + ["B", "B", "C"], "ts": [*firsts, 1000, 1001, 1002]})
    (row,) = kleene.match(table, f"PATTERN SEQ(A a, B b, C c) WITHIN 5000 {COMPRESSED}").to_pylist()
    assert row["count"] == str(2 * number)


_BURST = """
import kleene
rows = [{"type": "B", "ts": ts, "id": key} for ts, key in ((6, 2), (9, 1), (10, 2), (12, 1)) for _ in range(70)]
rows += [{"type": "A", "ts": 13, "id": 2}]
query = "PATTERN SEQ(B a, B b, A c) WHERE partition_contiguity { [id] } WITHIN 12 OUTPUT COMPRESSED"
print(*(row["count"] for row in kleene.match(rows, query)))
"""


@pytest.mark.slow
def test_a_burst_of_simultaneous_events_ends_no_process() -> None:
    """Each event at 10 follows 70 at 6: 70 · 70 runs, of which no more room may be taken than was made for them."""
    child = subprocess.run([sys.executable, "-c", _BURST], capture_output=True, text=True, check=False)
    assert child.returncode == 0, child.stderr
    assert child.stdout.split() == ["4900"]
