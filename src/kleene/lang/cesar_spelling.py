"""CESAR's spelling: `σ{…}(S1 ;{…} S2)`, or `select{…}(S1 next{…} S2)`, to the syntax tree of streams."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, cast

from lark import Lark, Token, Transformer

from kleene.lang import parser_tables, tree
from kleene.lang.build_clauses import Clauses
from kleene.lang.build_expressions import Expressions
from kleene.lang.build_patterns import Patterns
from kleene.lang.build_streams import Streams
from kleene.lang.declared_query import read_declared
from kleene.lang.reading import Adviser, read
from kleene.lang.statements import query_start
from kleene.lang.stream_advice import end_advice, part_advice, part_end, stream_advice
from kleene.lang.stream_tree import StreamQuery

STARTS = ("stream_query", "condition", "value", "attribute_name")
_ADVISER = Adviser(stream_advice, end_advice)
# Parts that can be read by themselves: the rule of each.
_PARTS = {"condition": "condition", "value": "value", "attribute": "attribute_name"}
_NAME = r"(?:`[^`\n]+`|[^\W\d][\w-]*)"
# Also texts that are not quite right: what is said of them should be about streams.
_FIRST = re.compile(
    # An operation by its sign, or by its name where braces or parentheses follow; SELECT … FROM is another language's.
    r"[σπραμµ;∪(]|(?:select|project|rename|compute|fold)\b(?:\s*_?\s*\{|(?!.*\bfrom\b).*\()|(?:union|next)\s*\(|publish\b"
    rf"|(?!(?:pattern|event)\b){_NAME}(?:\s*\{{|(?:\s+{_NAME})?\s*(?:;|∪|->|=>|→|\b(?:union|next|publish)\b|\bU\s+{_NAME}))",
    re.IGNORECASE | re.DOTALL,
)


class StreamBuilder(Streams, Clauses, Patterns, Expressions, Transformer[Token, Any]):
    """Builds the tree bottom up."""


def recognises(text: str) -> bool:
    """CESAR opens with an operation, a parenthesis, or a stream that another one follows."""
    return _FIRST.match(text, query_start(text)) is not None


def parse(text: str) -> StreamQuery:
    """The tree of a query, or one error with its place."""
    declarations, query = read_declared(text, partial(read, _parser(), start="stream_query", adviser=_ADVISER))
    return replace(cast(StreamQuery, query), declarations=declarations)


def parse_part(text: str, part: str) -> tree.Expression:
    """A condition, a value or an attribute that stands by itself, as the builder in Python is given it.

    >>> parse_part("S1.price", "attribute").attribute
    'price'
    """
    adviser = Adviser(partial(part_advice, part), partial(part_end, part))
    return cast(tree.Expression, read(_parser(), text, _PARTS[part], adviser))


@cache
def _parser() -> Lark:
    return parser_tables.parser(Path(__file__).with_name("cesar.lark"), start=STARTS, builder=StreamBuilder())
