"""Random queries that feed each other, and lists of queries that do not, with streams for them."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

import pyarrow as pa
from tests.engine.agreement import case_of, content

from kleene.composition import graph_run
from kleene.errors import KleeneError
from kleene.evaluation import evaluate
from kleene.frames.outputs import Outputs
from kleene.frames.streams import to_table
from kleene.pattern import Query, Schema
from kleene.pattern.nodes import ComponentKind
from kleene.pattern.query import BoundQuery
from kleene.plan.settings import Settings
from kleene.queries.any_query import AnyQuery
from kleene.reference.evaluator import reference_results
from kleene.testing.generators import GeneratedCase, schema_of
from kleene.testing.reference_outputs import table_outputs

MAKERS = ("sequence", "kleene_any", "negation", "ties", "optional", "skip_till_next_match", "tie_breaker", "durations")
READERS = (*MAKERS, "partition_contiguity", "count_window", "non_overlap", "timeouts", "nulls_missing", "compressed")
UNRELATED = (*READERS, "strict_contiguity", "arithmetic", "boolean_conditions")
ATTRIBUTES = ("id", "x", "y", "s", "f")
READER = "reader"
# Past these the reference takes too long.
MOST_EVENTS, MOST_COMPOSITES = 12, 10


@dataclass(frozen=True)
class Listed:
    """Queries in one run, their events, and what the reference says."""

    queries: tuple[AnyQuery, ...]
    schema: Schema
    table: pa.Table
    several: bool
    expected: Outputs[pa.Table]

    @property
    def text(self) -> str:
        return "\n\n".join(query.text for query in self.queries)

    def matched(self, name: str) -> bool:
        """Whether a query of this name has a match in the result."""
        return name in self.expected.matches.column("query").to_pylist()


def feeding_pair(draw: random.Random) -> Listed | None:
    """A query with RETURN … INTO S and one that reads S, in any order; None when one of them is wrong."""
    maker, reader = case_of(draw, draw.choice(MAKERS)), case_of(draw, draw.choice(READERS))
    # The type that the reader takes from the other query, wherever it stands.
    taken = draw.choice([name for name in "ABCD" if re.search(rf"\b{name}\b", reader.query_text)])
    text = re.sub(rf"\b{taken}\b", "S", reader.query_text)
    try:
        one = _query(maker, f"{maker.query_text} RETURN {_returned(maker, draw)} INTO S")
        table, schema = _input(maker, [maker, reader], draw)
        (made,) = reference_results(table, [one], schema=schema)
    except KleeneError:
        return None
    if len(made.matches) > MOST_COMPOSITES:
        return None
    queries = [one, replace(_query(reader, text), name=READER)]
    draw.shuffle(queries)
    return _listed(queries, schema, table, several=draw.random() < 0.8)


def late_pair(draw: random.Random) -> Listed | None:
    """A query whose timeouts are the stream S, and one that reads S; None when one of them is wrong."""
    maker = case_of(draw, draw.choice(("timeouts", "timeouts", "timeouts_counted")))
    # The reader can speak of the key and of how far a run came, and of no other attribute.
    pattern = draw.choice(LATE_READERS)
    window = draw.choice(["", "WITHIN 20", "WITHIN 40 INCLUSIVE", "WITHIN 9 EVENTS"])
    text = f"PATTERN {pattern} {window or ('WITHIN 30' if '!' in pattern else '')}"
    queries = [_query(maker, maker.query_text.replace("INTO late", "INTO S")), Query(text, name=READER)]
    draw.shuffle(queries)
    table, schema = _input(maker, [maker, case_of(draw, "sequence")], draw)
    return _listed(queries, schema, table, several=draw.random() < 0.8)


LATE_READERS = (
    "S s",
    "S s ; A b",
    "S s ; B b WHERE s.reached > 1 OR b.x > 3",
    "S s ; ANY(A, B, C) b WHERE skip_till_next_match { s.reached < b.x }",
    "A b ; S s",
    "B b & S s",
    "A b ; !S n ; B c",
    "S s ; S t ; C c",
    "S^2 s[] WHERE partition_contiguity { }",
    "S s ; A b WHERE strict_contiguity { }",
)


def unrelated_list(draw: random.Random) -> Listed | None:
    """Two to four queries over one stream."""
    cases = [case_of(draw, draw.choice(UNRELATED)) for _ in range(draw.randint(2, 4))]
    table, schema = _input(cases[0], cases[:2], draw)
    return _listed([_query(case, case.query_text) for case in cases], schema, table, several=True)


def _query(case: GeneratedCase, text: str) -> Query:
    return Query(text, params=dict(case.params))


def _returned(case: GeneratedCase, draw: random.Random) -> str:
    """Columns for most attributes, so that the reader's conditions speak of them, and sometimes whole events."""
    bound = _query(case, case.query_text).bind(Schema(**schema_of(case)))
    columns = [f"{_value(bound, name, draw)} AS {name}" for name in ATTRIBUTES if draw.random() < 0.85]
    component = draw.choice(bound.positives)
    if draw.random() < 0.3:
        columns.append(f"{component.variable} AS whole")
    if component.kind is not ComponentKind.SINGLE and draw.random() < 0.5:
        columns.append(f"count({component.variable}) AS n")
    return ", ".join(columns or ["1 AS one"])


def _value(bound: BoundQuery, attribute: str, draw: random.Random) -> str:
    component = draw.choice(bound.positives)
    name = component.variable
    if component.kind is ComponentKind.SINGLE:
        return f"{name}.{attribute}"
    return draw.choice([f"{name}[1].{attribute}", f"{name}[{name}.LEN].{attribute}", f"first({name}.{attribute})"])


def _input(first: GeneratedCase, cases: Iterable[GeneratedCase], draw: random.Random) -> tuple[pa.Table, Schema]:
    """The events of all cases, some of them later than others, with the columns of the first case's schema."""
    rows: list[dict[str, Any]] = []
    for case in cases:
        later = draw.choice([0, 0, 1, 4, 8]) if rows else 0
        rows += [_row(row, first, later, draw) for row in case.events]
    draw.shuffle(rows)
    rows = sorted(rows[:MOST_EVENTS], key=lambda row: row.get("ts") or 0)
    schema = Schema(**schema_of(first))
    table, given = to_table([{**dict.fromkeys(first.columns), **row} for row in rows], schema)
    return table.cast(pa.schema([(name, _TYPES.get(name, pa.int64())) for name in table.column_names])), given


_TYPES = {"type": pa.string(), "y": pa.float64(), "s": pa.string(), "f": pa.bool_()}


def _row(row: dict[str, Any], case: GeneratedCase, later: int, draw: random.Random) -> dict[str, Any]:
    made = {name: value for name, value in row.items() if name in case.columns}
    if made.get("ts") is not None:
        made["ts"] += later
        for name in {case.tie_breaker, case.start} - {None, *row}:
            made[str(name)] = draw.randint(0, 2) if name == case.tie_breaker else made["ts"] - draw.randint(0, 2)
        if case.start is not None and made.get(case.start) is not None:
            made[case.start] = min(made[case.start] + later, made["ts"])
    return made


def _listed(queries: list[Query], schema: Schema, table: pa.Table, *, several: bool) -> Listed | None:
    """None when a query is wrong or too much for the reference."""
    try:
        expected = table_outputs(table, queries, schema=schema, several=several)
    except KleeneError:
        return None
    return Listed(tuple(queries), schema, table, several, expected)


# Both sides ----------------------------------------------------------------------------------------------------------


def check(listed: Listed, settings: Settings, draw: random.Random) -> bool:
    """Compare whole rows, their order and their types; whether all queries ran on the engine."""
    rows = list(range(listed.table.num_rows))
    draw.shuffle(rows)
    with fallbacks() as slow:
        made = evaluate(
            listed.table.take(pa.array(rows, pa.int64())),
            listed.queries,
            schema=listed.schema,
            several=listed.several,
            settings=settings,
        )
    expected = listed.expected
    assert content(made.matches) == content(expected.matches), listed.text
    assert made.matches.schema.equals(expected.matches.schema), listed.text
    assert content(made.timeouts) == content(expected.timeouts), listed.text
    if expected.timeouts is not None and made.timeouts is not None:
        assert made.timeouts.schema.equals(expected.timeouts.schema), listed.text
    assert made.bad_rows.num_rows == expected.bad_rows.num_rows
    assert made.compressed is None
    return not slow


@contextmanager
def fallbacks() -> Iterator[list[str]]:
    """Why queries go to the reference meanwhile, one reason a query."""
    reasons: list[str] = []
    with mock.patch.object(graph_run, "say_slow", lambda _, reason: reasons.append(reason)):
        yield reasons
