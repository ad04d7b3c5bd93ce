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

from kleene.lang import parser_tables
from kleene.lang.build_clauses import Clauses
from kleene.lang.build_eql import DelayedQueries, EqlQueries
from kleene.lang.build_patterns import Patterns
from kleene.lang.declared_query import read_declared
from kleene.lang.eql_advice import eql_advice, eql_end_advice
from kleene.lang.eql_tree import EqlQuery
from kleene.lang.reading import Adviser, read
from kleene.lang.statements import query_start

STARTS = ("eql_query",)
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


def _parse(text: str, builder: type[Transformer[Token, Any]]) -> EqlQuery:
    declarations, query = read_declared(text, partial(read, _parser(builder), start="eql_query", adviser=_ADVISER))
    return replace(cast(EqlQuery, query), declarations=declarations)


@cache
def _parser(builder: type[Transformer[Token, Any]]) -> Lark:
    return parser_tables.parser(Path(__file__).with_name("eql.lark"), start=STARTS, builder=builder())
