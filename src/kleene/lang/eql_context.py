"""Where the parser gave up in a query of EQL: in which clause, behind which word, inside which brackets."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from kleene.errors import Span
from kleene.lang.advice import ErrorContext
from kleene.lang.stream_context import open_brackets

_LAST_WORD = re.compile(r"(?<![\w.`-])([^\W\d][\w-]*)\s*\Z")
_SCANNED = re.compile(
    r"'[^']*(?:''[^']*)*'|\"[^\"]*\"|`[^`\n]*`|--[^\n]*|/\*.*?\*/|(?<![\w.])(?P<clause>select|from|where|into)(?![\w-])",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True)
class EqlContext(ErrorContext):
    @cached_property
    def clauses(self) -> list[re.Match[str]]:
        return [match for match in _SCANNED.finditer(self.before) if match["clause"]]

    @property
    def clause(self) -> str:
        """The clause that the place stands in."""
        return self.clauses[-1]["clause"].upper() if self.clauses else ""

    @property
    def since(self) -> str:
        """The text from the word that opens the clause to the place."""
        return self.before[self.clauses[-1].end() :] if self.clauses else self.before

    @cached_property
    def brackets(self) -> list[int]:
        """The places of the brackets that are open before the place, the innermost last."""
        return open_brackets(self.before)

    @property
    def word_before(self) -> tuple[str, Span]:
        """The word that the place follows, in small letters, and where it stands; empty after anything else."""
        found = _LAST_WORD.search(self.before)
        return ("", self.span) if found is None else (found[1].casefold(), Span(found.start(1), found.end(1)))
