"""Random sets of queries that share prefixes, and streams that they have matches on."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import pyarrow as pa
from tests.query_sets.patterns import random_pattern
from tests.streams.agreement import table_of

import kleene
from kleene.frames.arrow import schema_on
from kleene.lang.literals import liftable, lifted
from kleene.pattern.schema import Schema
from kleene.plan.settings import Budget, Settings
from kleene.queries.any_query import read_query
from kleene.testing.generators.streams import GeneratedStreamCase, random_rows, random_stream_case

# Random queries may wait for ever.
UNBOUNDED = Settings(budget=Budget(state_bytes=1 << 40))


@dataclass(frozen=True)
class DrawnSet:
    """Queries by name, and the stream that they run over."""

    queries: dict[str, kleene.Query | kleene.StreamQuery | kleene.EqlQuery]
    table: pa.Table
    schema: Schema

    def alone(self, name: str, *, since: int | None = None, until: int | None = None) -> list[tuple[Any, ...]]:
        """The matches of a query that runs by itself over what ends from a moment on.

        until   when it is removed: what is not certain then is no match of it
        """
        rows = self.table
        ends = rows.column("ts").to_pylist()
        kept = [(since is None or end >= since) and (until is None or end < until) for end in ends]
        rows, query = rows.filter(pa.array(kept)), self.queries[name]
        if until is None or not isinstance(query, kleene.Query):
            return content(kleene.match(rows, query, schema=self.schema))
        engine = kleene.Engine(query.bind(schema_on(rows.schema, self.schema)), UNBOUNDED)
        matches = engine.process(rows, until).matches
        return [] if matches is None else content(matches)


def content(table: pa.Table) -> list[tuple[Any, ...]]:
    """The ids of matches with their times."""
    return sorted(zip(*(table.column(name).to_pylist() for name in ("match_id", "start", "end")), strict=True))


def draw_set(seed: int, size: int, *, patterns: int = 0, length: int = 4) -> DrawnSet:
    """So many queries: a few expressions, and so many patterns, each with several constants."""
    rng = Random(seed)
    first = random_stream_case(rng, linear_plus=True)
    roles = first.start, first.tie_breaker
    texts: list[tuple[str, str]] = []
    while len(texts) < size - patterns:
        case = random_stream_case(rng, linear_plus=rng.random() < 0.95)
        if (case.start, case.tie_breaker) == roles:
            texts += [(_varied(rng, case.text, "cesar"), "cesar") for _ in range(rng.randint(1, 6))]
    texts = texts[: size - patterns]
    while len(texts) < size:
        text = random_pattern(rng)
        texts += [(_varied(rng, text, "kleene"), "kleene") for _ in range(min(rng.randint(1, 4), size - len(texts)))]
    queries = {
        f"q{number}": kleene.query(text, name=f"q{number}", spelling=spelling)
        for number, (text, spelling) in enumerate(texts)
    }
    return DrawnSet(queries, _stream(rng, first, length), first.schema)


def _varied(rng: Random, text: str, spelling: str) -> str:
    """The text with some of the numbers that it compares changed."""
    shape, literals = lifted(text)
    parts = shape.split("\0")
    compared = {each.place for each in liftable(text, read_query(text, spelling=spelling).tree)}
    changed = [
        str(rng.randint(0, 5)) if number in compared and literal.isdigit() and rng.random() < 0.4 else literal
        for number, literal in enumerate(literals)
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
