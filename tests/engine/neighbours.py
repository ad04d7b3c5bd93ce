"""Random lists of queries over several streams: what each gives beside the others, and alone (semantics §3)."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from tests.engine.agreement import case_of

from kleene.errors import KleeneError
from kleene.evaluation import evaluate
from kleene.frames.outputs import Outputs
from kleene.frames.streams import concatenated
from kleene.pattern import Query, Schema
from kleene.testing.generators import GeneratedCase, schema_of
from kleene.testing.generators.patterns import CLASSES, TYPES

# The first of a list judges contiguity or counts positions, which events of other streams would change.
FIRST = ("strict_contiguity", "strict_contiguity", "durations_strict", "count_window", "partition_contiguity")
OTHERS = (
    *("strict_contiguity", "count_window", "skip_till_next_match", "sequence", "negation", "timeouts"),
    *("partition_contiguity", "non_overlap", "compressed", "nested", "ties", "durations"),
)
# There is time between the events of a query for those of others.
SLOWER = 3
# The stream whose events have types of their own.
TYPED = "typed"
Row = dict[str, Any]
# By kind of output.
Answers = Mapping[str, list[str]]


@dataclass(frozen=True)
class Neighbours:
    """Queries that read some of several streams each, these streams, and what each query gives alone."""

    queries: tuple[Query, ...]
    streams: Mapping[str, pa.Table]
    schema: Schema
    alone: tuple[Answers, ...] = ()

    @property
    def text(self) -> str:
        streams = "\n".join(f"{name}: {table.to_pylist()}" for name, table in self.streams.items())
        return "\n\n".join([*(query.text for query in self.queries), streams])

    def run(self, *queries: Query) -> Outputs[pa.Table]:
        return evaluate(self.streams, queries, schema=self.schema, several=True)

    def check(self, found: Outputs[pa.Table]) -> None:
        """Each query must have the answer that it has alone."""
        for query, expected in zip(self.queries, self.alone, strict=True):
            beside = answers(found, str(query.name))
            # A query without timeouts has none of its neighbours'.
            for kind in ("matches", "timeouts"):
                assert beside.get(kind, []) == expected.get(kind, []), f"{kind} of {query.name}\n{self.text}"

    @property
    def could_change(self) -> bool:
        """Whether one of them has matches that would be others if it were given the streams of its neighbours."""
        return any(
            alone["matches"] and self._changes(query, alone)
            for query, alone in zip(self.queries, self.alone, strict=True)
        )

    def _changes(self, query: Query, alone: Answers) -> bool:
        if not re.search(r"contiguity|\bEVENTS\b", query.text, re.IGNORECASE):
            return False
        try:
            return _spans(alone) != _spans(answers(self._as_one_stream(query), str(query.name)))
        except KleeneError:
            return True

    def _as_one_stream(self, query: Query) -> Outputs[pa.Table]:
        """What the query would give if every stream were part of its input."""
        typed = [
            (name, table if name == TYPED else table.append_column("type", pa.array([name] * table.num_rows)))
            for name, table in self.streams.items()
        ]
        return evaluate(concatenated(typed, hint=""), [query], schema=self.schema, several=True)


def neighbours(draw: random.Random) -> Neighbours | None:
    """Two or three queries, most over streams of their own.

    None when one of them is wrong alone, and mostly when the first has no match that could be changed.
    """
    others = [case_of(draw, draw.choice(OTHERS)) for _ in range(draw.choice((1, 1, 2)))]
    # Timeouts of several queries are one table, in which a variable has one type.
    others[1:] = [replace(case, query_text=case.query_text.replace(" TIMEOUTS INTO late", "")) for case in others[1:]]
    cases = [case_of(draw, draw.choice(FIRST)), *others]
    first = cases[0]
    renamed = [_over_own_streams(case, f"{number}", draw) for number, case in enumerate(cases)]
    rows = [_timed(row, first, number, draw) for number, case in enumerate(renamed) for row in case.events]
    queries = [
        Query(_returning(case.query_text, draw), name=f"q{number}", params=dict(case.params))
        for number, case in enumerate(renamed)
    ]
    made = Neighbours(tuple(queries), _streams(rows, queries, first, draw), Schema(**_roles(first)))
    alone = []
    try:
        for query in queries:
            alone.append(answers(made.run(query), str(query.name)))
            if not alone[0]["matches"] and draw.random() < 0.8:
                return None
    except KleeneError:
        return None
    return replace(made, alone=tuple(alone))


def _roles(case: GeneratedCase) -> dict[str, Any]:
    return {name: value for name, value in schema_of(case).items() if name in ("tie_breaker", "start")}


def _over_own_streams(case: GeneratedCase, suffix: str, draw: random.Random) -> GeneratedCase:
    """The case with other names for most of its types, and for its classes."""
    others = {name: f"{name}{suffix}" for name in TYPES if draw.random() < 0.8}
    others |= {name: f"{name}{suffix}" for name in CLASSES}
    text = re.sub(r"\w+", lambda word: others.get(word[0], word[0]), case.query_text)
    text = re.sub(r"WITHIN (\d+)(?! EVENTS)\b", lambda window: f"WITHIN {SLOWER * int(window[1])}", text)
    events = [{**row, "type": others.get(row["type"], row["type"])} for row in case.events]
    return replace(case, query_text=text, events=events)


def _timed(row: Row, case: GeneratedCase, number: int, draw: random.Random) -> Row:
    """The row with all columns of the case; most events of a query lie between those of the others."""
    made = {name: value for name, value in row.items() if name in case.columns}
    later = draw.choice((0, number, number))
    for name in {"ts", case.start}.intersection(made):
        made[str(name)] = None if made[str(name)] is None else SLOWER * made[str(name)] + later
    if made.get("ts") is not None:
        for name in {case.tie_breaker, case.start} - {None, *row}:
            made[str(name)] = draw.randint(0, 2) if name == case.tie_breaker else made["ts"] - draw.randint(0, 2)
    return made


def _returning(text: str, draw: random.Random) -> str:
    if draw.random() < 0.7 or "COMPRESSED" in text:
        return text
    return f"{text} RETURN {draw.choice(('1', '2.5', repr('one')))} AS what, 7 AS seven"


_KINDS = {"type": pa.string(), "y": pa.float64(), "s": pa.string(), "f": pa.bool_()}


def _streams(
    rows: Iterable[Row], queries: Sequence[Query], case: GeneratedCase, draw: random.Random
) -> Mapping[str, pa.Table]:
    """A stream for each type, with a column of its own; some rows in one whose events have types of their own."""
    named = {name for query in queries for name in query.inputs}
    mixed = draw.random() < 0.3
    rows_of: dict[str, list[Row]] = {name: [] for name in sorted(named) if not name.startswith(tuple(CLASSES))}
    if mixed:
        rows_of[TYPED] = []
    for row in rows:
        name = TYPED if mixed and draw.random() < 0.3 else row["type"]
        rows_of.setdefault(str(name), []).append({**row, f"of_{name}": draw.randint(0, 3)})
    columns = [(name, _KINDS.get(name, pa.int64())) for name in case.columns]
    return {
        name: pa.Table.from_pylist(
            listed,
            pa.schema([*(c for c in columns if name == TYPED or c[0] != "type"), (f"of_{name}", pa.int64())]),
        )
        for name, listed in rows_of.items()
    }


# What is compared ----------------------------------------------------------------------------------------------------


def answers(tables: Outputs[pa.Table], query: str) -> Answers:
    """The matches and timeouts of a query, in an order of their own; NULL columns of other streams do not count."""
    return {
        kind: sorted(repr(_plain(_told_apart(row))) for row in table.to_pylist() if row["query"] == query)
        for kind, table in (("matches", tables.matches), ("timeouts", tables.timeouts))
        if table is not None
    }


def _told_apart(row: Row) -> Row:
    """A query with RETURN tells events apart by the columns that it reads, and every query reads type and time."""
    if row.get("returned") is None:
        return row
    events = [(one["variable"], one["position"], one["event"]["type"], one["event"]["ts"]) for one in row["events"]]
    return {**row, "events": events}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in sorted(value.items()) if inner is not None}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _spans(found: Answers) -> list[list[str]]:
    """When matches end and start: on other columns their ids are others."""
    return sorted(re.findall(r"'(?:end|start)': (-?\d+)", row) for row in found["matches"])
