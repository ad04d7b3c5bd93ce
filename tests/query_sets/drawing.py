"""Random sets of queries that share prefixes, and streams that they have matches on."""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random
from typing import Any

import pyarrow as pa
from tests.streams.agreement import table_of

import kleene
from kleene.lang.literals import lifted
from kleene.pattern.schema import Schema
from kleene.testing.generators.streams import GeneratedStreamCase, random_rows, random_stream_case

# Patterns over the same events: they run by themselves, beside those that share.
PATTERNS = (
    "PATTERN SEQ(A a, B b) WHERE a.x = {0} AND [k] WITHIN {1}",
    "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match {{ [k] AND a[i].x > {0} }} WITHIN {1}",
)


@dataclass(frozen=True)
class DrawnSet:
    """Queries by name, and the stream that they run over."""

    queries: dict[str, kleene.Query | kleene.StreamQuery | kleene.EqlQuery]
    table: pa.Table
    schema: Schema

    def alone(self, name: str, *, since: int | None = None, until: int | None = None) -> list[tuple[Any, ...]]:
        """The matches of a query that runs by itself over what ends from a moment on and before another."""
        rows = self.table
        ends = rows.column("ts").to_pylist()
        kept = [(since is None or end >= since) and (until is None or end < until) for end in ends]
        return content(kleene.match(rows.filter(pa.array(kept)), self.queries[name], schema=self.schema))


def content(table: pa.Table) -> list[tuple[Any, ...]]:
    """The ids of matches with their times."""
    return sorted(zip(*(table.column(name).to_pylist() for name in ("match_id", "start", "end")), strict=True))


def draw_set(seed: int, size: int, *, patterns: int = 0, length: int = 4) -> DrawnSet:
    """So many queries: a few expressions, each with several constants."""
    rng = Random(seed)
    first = random_stream_case(rng, linear_plus=True)
    roles = first.start, first.tie_breaker
    texts: list[tuple[str, str]] = []
    while len(texts) < size - patterns:
        case = random_stream_case(rng, linear_plus=rng.random() < 0.95)
        if (case.start, case.tie_breaker) == roles:
            texts += [(_varied(rng, case.text), "cesar") for _ in range(rng.randint(1, 6))]
    texts = texts[: size - patterns]
    for number in range(patterns):
        pattern = PATTERNS[number % len(PATTERNS)]
        texts.append((pattern.format(rng.randint(0, 5), rng.randint(3, 9)), "kleene"))
    queries = {
        f"q{number}": kleene.query(text, name=f"q{number}", spelling=spelling)
        for number, (text, spelling) in enumerate(texts)
    }
    return DrawnSet(queries, _stream(rng, first, length), first.schema)


def _varied(rng: Random, text: str) -> str:
    """The text with some of its numbers changed; those of the ends of names are none."""
    shape, literals = lifted(text)
    parts = shape.split("\0")
    changed = [
        str(rng.randint(0, 5)) if re.fullmatch(r"\d+", literal) and rng.random() < 0.4 else literal
        for literal in literals
    ]
    return "".join(part + literal for part, literal in zip(parts, [*changed, ""], strict=True))


def _stream(rng: Random, case: GeneratedStreamCase, length: int) -> pa.Table:
    """Several short streams one after the other."""
    rows: list[dict[str, Any]] = []
    now = 0
    for _ in range(length):
        part = random_rows(rng, case.start, case.tie_breaker)
        for row in part:
            row["ts"] += now
            if case.start is not None:
                row[case.start] += now
        now = max(row["ts"] for row in part)
        rows += part
    return table_of(case, rows)
