"""CESAR's spelling: `σ{…}(S1 ;{…} S2)`, or `select{…}(S1 next{…} S2)`, to the syntax tree of streams."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, cast

from lark import Lark, Token, Transformer

from kleene.lang import main_spelling, parser_tables
from kleene.lang.build_clauses import Clauses
from kleene.lang.build_expressions import Expressions
from kleene.lang.build_patterns import Patterns
from kleene.lang.build_streams import Streams
from kleene.lang.reading import read
from kleene.lang.statements import declares, query_start
from kleene.lang.stream_tree import StreamQuery

STARTS = ("stream_query",)
_FIRST = re.compile(
    r"(?:[σπραμµ]|(?:select|project|rename|compute|fold)\b)\s*_?\s*\{|(?:[μµ]|fold\b)\s*\("
    r"|\("
    r"|(?!(?:pattern|event)\b)(?:`[^`\n]+`|[^\W\d][\w-]*)(?:\s+(?:`[^`\n]+`|[^\W\d]\w*))?\s*(?:;|∪|\b(?:union|next|publish)\b)",
    re.IGNORECASE,
)


class StreamBuilder(Streams, Clauses, Patterns, Expressions, Transformer[Token, Any]):
    """Builds the tree bottom up."""


def recognises(text: str) -> bool:
    """CESAR opens with an operation and its braces, a parenthesis, or a stream that another one follows."""
    return _FIRST.match(text, query_start(text)) is not None


def parse(text: str) -> StreamQuery:
    """The tree of a query, or one error with its place."""
    start = query_start(text)
    declarations = main_spelling.parse_declarations(text[:start]) if declares(text) else ()
    # Blanks in place of the declarations: places are those of the whole text.
    query = cast(StreamQuery, read(_parser(), " " * start + text[start:], "stream_query"))
    return replace(query, declarations=declarations)


@cache
def _parser() -> Lark:
    return parser_tables.parser(Path(__file__).with_name("cesar.lark"), start=STARTS, builder=StreamBuilder())
