"""Our side of a measurement: a query over a table as a user runs it, and on the engine with rules switched off."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

import kleene
from kleene.engine.engine import Engine
from kleene.frames.arrow import schema_on
from kleene.optimize.rules import LINE_RULES
from kleene.pattern import Query, Schema
from kleene.pattern.query import BoundQuery
from kleene.plan.program import NotCompilable
from kleene.plan.settings import Settings

ALL_RULES = frozenset(name for name, _ in LINE_RULES)


class NotCompiled(Exception):
    """The engine leaves the query to the reference evaluator, of which there is nothing to measure."""


def found(table: pa.Table, text: str, threads: int | None = 1) -> pa.Table:
    """The matches, as a user has them, on so many cores; None: on all."""
    matches: pa.Table = kleene.match(table, text, settings=Settings(threads=threads))
    return matches


def rows_found(table: pa.Table, text: str, threads: int | None = 1) -> int:
    """How many rows the table of matches has, which is made and dropped."""
    return int(found(table, text, threads).num_rows)


def bound(table: pa.Table, text: str) -> BoundQuery:
    return Query(text).bind(schema_on(table.schema, Schema()))


def found_with(table: pa.Table, text: str, settings: Settings) -> pa.Table:
    """The matches, from the engine with these settings."""
    try:
        engine = Engine(bound(table, text), settings)
        engine.process(table)
        return engine.finish().matches
    except NotCompilable:
        raise NotCompiled(text) from None


def without(*rules: str) -> Settings:
    """All rules but these; a name that the planner does not know changes nothing."""
    return Settings(without=frozenset(rules))


def number_of_matches(table: pa.Table) -> int:
    """Rows, or with OUTPUT COMPRESSED the counts in them."""
    if "count" not in table.column_names:
        return int(table.num_rows)
    return sum(int(count) for count in table["count"].to_pylist())


def references(table: pa.Table) -> int:
    """Events in all matches together, SASE+'s output complexity: the lists of `a`, and one `b` each."""
    return int(pc.sum(pc.list_value_length(table["a"])).as_py() or 0) + int(table.num_rows)
