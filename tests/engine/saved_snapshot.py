"""The stream whose snapshot lies in `data/version-2.kleene`: what every later version must go on from.

`python -m tests.engine.saved_snapshot` writes the snapshot. A new version of the format gets a file of its own beside
the old one, which stays as it is.
"""

from __future__ import annotations

from pathlib import Path

from tests.engine.batches import bound, events

from kleene.engine.engine import Engine
from kleene.engine.state import container

DATA = Path(__file__).parent / "data"
QUERY = "PATTERN SEQ(A+ a[], !(N n), B b) WHERE [id] WITHIN 10 OUTPUT NON_OVERLAP"
# Before the snapshot: a match of key 0 up to 4, open runs of both keys, a row that is none, one that waits.
BEFORE = events("a1 a2/1 b4 a5 a- a6 a7/1 n8/1 a9"), 9
# After it: one event is late, one would overlap, one is spoilt by n8, one is too far away.
AFTER = events("b3 b10 b11/1 b30"), 31
FOUND = ["a9 b10"]


def write() -> Path:
    engine = Engine(bound(QUERY))
    engine.process(*BEFORE)
    path = DATA / f"version-{container.VERSION}.kleene"
    path.write_bytes(engine.snapshot())
    return path


if __name__ == "__main__":
    print(write())
