"""Patterns in SQL: `KLEENE(table, 'PATTERN …')` stands where a table can stand.

    SELECT s.tag_id, e.ts
    FROM KLEENE(readings, 'PATTERN SEQ(Shelf s, !(Till t), Exit e) WHERE [tag_id] WITHIN 12 hours')

Each call becomes a temporary view over the matches, and Spark reads the rest of the statement. The table is a name, or
a query in parentheses; the pattern is a string in '…' ('' is a quote in it), "…" or $$…$$.

A table function in Python would be given the rows one by one: Spark's Arrow table functions, which are given batches,
cannot have columns that depend on their arguments (seen in PySpark 4.3).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

from kleene.errors import BadStatement, Span
from kleene.plan.settings import Settings
from kleene.queries.any_query import read_query
from kleene.spark.batch import spark_outputs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# What must be passed over as a whole: strings, quoted names and comments. Then what a call is made of.
_TOKEN = re.compile(
    r"""
    (?P<string> '(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*" | \$\$.*?\$\$ )
    | `(?:[^`]|``)*` | --[^\n]* | /\*.*?\*/
    | (?P<call> \bKLEENE\s*\( )
    | (?P<open> \( ) | (?P<close> \) ) | (?P<comma> , )
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)


def sql(session: SparkSession, statement: str, *, settings: Settings | None = None) -> DataFrame:
    """Run a statement of SQL in which patterns stand as `KLEENE(table, 'PATTERN …')`."""
    parts, end = [], 0
    for call in _calls(statement):
        name = _view(session, call, settings)
        parts += [statement[end : call.begin], name]
        end = call.end
    return session.sql("".join([*parts, statement[end:]]))


@dataclass(frozen=True)
class _Call:
    """One call: where it stands, its table and its pattern."""

    begin: int
    end: int
    table: str
    text: str


def _calls(statement: str) -> list[_Call]:
    tokens = _TOKEN.finditer(statement)
    return [_call(statement, token, tokens) for token in tokens if token.lastgroup == "call"]


def _call(statement: str, opening: re.Match[str], tokens: Iterator[re.Match[str]]) -> _Call:
    """The call that begins here; the tokens are taken to its end."""
    depth, inside = 1, []
    for token in tokens:
        depth += (token.lastgroup in ("open", "call")) - (token.lastgroup == "close")
        if depth == 0:
            break
        if depth == 1 and token.lastgroup in ("comma", "string"):
            inside.append(token)
    else:
        raise _wrong(statement, opening.start(), len(statement), "this call of KLEENE has no end")
    if [part.lastgroup for part in inside] == ["comma", "string"]:
        comma, text = inside
        table = statement[opening.end() : comma.start()].strip()
        if table:
            return _Call(opening.start(), token.end(), table, _unquoted(text[0]))
    raise _wrong(statement, opening.start(), token.end(), "KLEENE takes a table and a pattern")


def _unquoted(literal: str) -> str:
    if literal.startswith("$$"):
        return literal[2:-2]
    quote = literal[0]
    return literal[1:-1].replace(2 * quote, quote).replace("\\" + quote, quote)


def _view(session: SparkSession, call: _Call, settings: Settings | None) -> str:
    inner = call.table[1:-1] if call.table.startswith("(") else None
    events = session.table(call.table) if inner is None else sql(session, inner, settings=settings)
    outputs = spark_outputs(events, [read_query(call.text)], schema=None, several=False, settings=settings)
    name = "kleene_" + blake2b(f"{call.table}\0{call.text}".encode(), digest_size=8).hexdigest()
    outputs.matches.createOrReplaceTempView(name)
    return name


def _wrong(statement: str, begin: int, end: int, message: str) -> BadStatement:
    error = BadStatement(
        message, Span(begin, end), hint="for example KLEENE(events, 'PATTERN SEQ(A a, B b) WITHIN 10')"
    )
    error.locate(statement, "statement")
    return error
