"""`kleene generate`: events to try queries on."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from kleene.frames.files import write_table
from kleene.frames.supermarket import supermarket


def generate(events: int, seed: int, output: Path, format: str | None, planted: Path | None) -> None:
    market = supermarket(events, seed)
    write_table(market.events, output, format)
    if planted is not None:
        write_table(market.planted, planted)
    cases = Counter(market.planted.column("case").to_pylist())
    hidden = ", ".join(f"{count} {case}" for case, count in cases.items())
    print(f"{market.events.num_rows:,} events in {output}; hidden in them: {hidden}", file=sys.stderr)
