"""Where the parser gave up in a query of EQL: in which clause, behind which word, inside which brackets."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from kleene.errors import Span
from kleene.lang.advice import ErrorContext
from kleene.lang.stream_context import open_brackets

SHAPE = "`SELECT * FROM t S1 ; t S2 WHERE …`"
NAME = r"(?:`[^`\n]+`|[^\W\d][\w-]*)"
_LAST_WORD = re.compile(r"(?<![\w.`-])([^\W\d][\w-]*)\s*\Z")
_CLAUSE = re.compile(
    r"'[^']*(?:''[^']*)*'|\"[^\"]*\"|`[^`\n]*`|--[^\n]*|/\*.*?\*/|(?<![\w.])(?P<clause>select|from|where|into)(?![\w-])",
    re.IGNORECASE | re.DOTALL,
)
# The last name of each source, behind which a sign stands, or nothing more.
_CALLED = re.compile(rf"({NAME})\s*\+?\s*(?=[;|\\)]|\Z)")


@dataclass(frozen=True, slots=True)
class ClauseWord:
    """A word that opens a clause, in capital letters, and its place."""

    word: str
    span: Span


@dataclass(frozen=True)
class EqlContext(ErrorContext):
    @cached_property
    def clauses(self) -> list[ClauseWord]:
        """The words before the place that open clauses."""
        found = (match for match in _CLAUSE.finditer(self.before) if match["clause"])
        return [ClauseWord(match["clause"].upper(), Span(*match.span())) for match in found]

    @property
    def clause(self) -> str:
        """The clause that the place stands in."""
        return self.clauses[-1].word if self.clauses else ""

    @property
    def since(self) -> str:
        """The text from the word that opens the clause to the place."""
        return self.before[self.clauses[-1].span.end :] if self.clauses else self.before

    @cached_property
    def brackets(self) -> list[int]:
        """The places of the brackets that are open before the place, the innermost last."""
        return open_brackets(self.before)

    @property
    def word_before(self) -> tuple[str, Span]:
        """The word that the place follows, in small letters, and where it stands; empty after anything else."""
        return self._word_until(self.span.start)

    @property
    def second_word_before(self) -> tuple[str, Span]:
        """The word before that one."""
        return self._word_until(self.word_before[1].start)

    def _word_until(self, end: int) -> tuple[str, Span]:
        found = _LAST_WORD.search(self.text[:end])
        return ("", self.span) if found is None else (found[1].casefold(), Span(found.start(1), found.end(1)))

    def is_word(self) -> bool:
        return re.fullmatch(r"[^\W\d][\w-]*", self.word) is not None

    @property
    def window(self) -> str:
        """The condition that WITHIN of another language is here, from the first name of the pattern to its last."""
        pattern = re.search(r"\bfrom\b(.*?)(?=\bwhere\b|\bwithin\b|\Z)", self.text, re.IGNORECASE | re.DOTALL)
        names = [] if pattern is None else _CALLED.findall(pattern[1])
        first, last = (names[0], names[-1]) if len(set(names)) > 1 else ("S1", "S2")
        amount = re.search(r"\bwithin\s*(\d+(?:\.\d+)?(?:\s*[^\W\d]\w*)?)", self.text, re.IGNORECASE)
        shown = "12 hours" if amount is None else " ".join(amount[1].split())
        return f"a length of time is a condition in WHERE: `({first}, {last}) OCCURS WITHIN {shown}`"


@dataclass(frozen=True)
class PartContext(EqlContext):
    """A place in a part of a clause that is written without the rest of its query."""

    within: str = "WHERE"

    @property
    def clause(self) -> str:
        return self.within
