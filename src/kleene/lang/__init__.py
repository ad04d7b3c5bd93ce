"""From text to a syntax tree: grammars, one per spelling, and nothing else that parses."""

from kleene.lang.formatting import format_query
from kleene.lang.main_spelling import parse_class, parse_declarations, parse_duration
from kleene.lang.spellings import Spelling, parse, recognise, register, spellings

__all__ = [
    "Spelling",
    "format_query",
    "parse",
    "parse_class",
    "parse_declarations",
    "parse_duration",
    "recognise",
    "register",
    "spellings",
]
