"""EQL's spelling: `SELECT … FROM t S1 ; t S2 WHERE FILTER(…), …` to its syntax tree (NEXT §3.5).

The spelling "next" is EQL with `@`, the time operator of NEXT's core language (NEXT §3.4). No text is taken for it: it
has to be named.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, cast

from lark import Lark, Token, Transformer

from kleene.lang import parser_tables, tree
from kleene.lang.build_clauses import Clauses
from kleene.lang.build_eql import DelayedQueries, EqlQueries
from kleene.lang.build_patterns import Patterns
from kleene.lang.declared_query import read_declared
from kleene.lang.eql_advice import eql_advice, eql_end_advice, eql_part_advice
from kleene.lang.eql_tree import EqlQuery, Qualification
from kleene.lang.reading import Adviser, read
from kleene.lang.statements import query_start
from kleene.lang.stream_advice import part_end

STARTS = ("eql_query", "qualifications", "selection")
_ADVISER = Adviser(eql_advice, eql_end_advice)
# Also without FROM, where nothing else could be meant; `select{…}` is CESAR's.
_FIRST = re.compile(r"select\b(?!\s*\{)(?=\s*\*|.*\bfrom\b)", re.IGNORECASE | re.DOTALL)


class EqlBuilder(EqlQueries, Clauses, Patterns, Transformer[Token, Any]):
    """Builds the tree bottom up."""


class DelayedBuilder(DelayedQueries, Clauses, Patterns, Transformer[Token, Any]):
    """The same, and `@` too."""


def recognises(text: str) -> bool:
    """EQL opens with SELECT, and a FROM follows."""
    return _FIRST.match(text, query_start(text)) is not None


def parse(text: str) -> EqlQuery:
    """The tree of a query, or one error with its place."""
    return _parse(text, EqlBuilder)


def parse_delayed(text: str) -> EqlQuery:
    """The tree of a query that may hold `@`."""
    return _parse(text, DelayedBuilder)


def parse_conditions(text: str) -> tuple[Qualification, ...]:
    """Conditions with commas between them, as WHERE has them and the builder in Python is given them.

    >>> [each.filters for each in parse_conditions("FILTER(S1.acc = S2.acc), S1.amount < 100")]
    [True, False]
    """
    return cast("tuple[Qualification, ...]", _part(text, "qualifications", "WHERE", "condition"))


def parse_fields(text: str) -> tuple[tree.ReturnItem, ...]:
    """Fields with commas between them, as SELECT has them; none of `*`."""
    return cast("tuple[tree.ReturnItem, ...]", _part(text, "selection", "SELECT", "field") or ())


def _part(text: str, rule: str, clause: str, called: str) -> Any:
    adviser = Adviser(partial(eql_part_advice, clause, called), partial(part_end, called))
    return read(_parser(EqlBuilder), text, rule, adviser)


def _parse(text: str, builder: type[Transformer[Token, Any]]) -> EqlQuery:
    declarations, query = read_declared(text, partial(read, _parser(builder), start="eql_query", adviser=_ADVISER))
    return replace(cast(EqlQuery, query), declarations=declarations)


@cache
def _parser(builder: type[Transformer[Token, Any]]) -> Lark:
    return parser_tables.parser(Path(__file__).with_name("eql.lark"), start=STARTS, builder=builder())
