"""`kleene generate`: events to try queries on."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pyarrow as pa

from kleene.frames.card_payments import card_payments
from kleene.frames.files import write_table
from kleene.frames.supermarket import supermarket


def generate_supermarket(events: int, seed: int, output: Path, format: str | None, planted: Path | None) -> None:
    market = supermarket(events, seed)
    write_table(market.events, output, format)
    if planted is not None:
        write_table(market.planted, planted)
    _tell(f"{market.events.num_rows:,} events in {output}", market.planted)


def generate_payments(
    payments: int, seed: int, output: Path, closed: Path | None, format: str | None, planted: Path | None
) -> None:
    day = card_payments(payments, seed)
    write_table(day.payments, output, format)
    said = f"{day.payments.num_rows:,} payments in {output}"
    if closed is not None:
        write_table(day.closed, closed, format)
        said += f", {day.closed.num_rows:,} closed accounts in {closed}"
    if planted is not None:
        write_table(day.planted, planted)
    _tell(said, day.planted)


def _tell(said: str, planted: pa.Table) -> None:
    cases = Counter(planted.column("case").to_pylist())
    hidden = ", ".join(f"{count} {case}" for case, count in cases.items())
    print(f"{said}; hidden in them: {hidden}", file=sys.stderr)
