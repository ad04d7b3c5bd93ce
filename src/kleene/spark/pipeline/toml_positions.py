"""The position of each key in a TOML file: `tomllib` does not give it, and an error must show it.

The text has passed `tomllib`, so the scanner meets valid TOML only.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field

from kleene.errors import Span

Path = tuple[str | int, ...]

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_KEY_PART = re.compile(r"""[A-Za-z0-9_-]+|"(?:\\.|[^"\\])*"|'[^']*'""")
_DOT = re.compile(r"[ \t]*\.[ \t]*")
_SCALAR = re.compile(
    r'''"""(?:\\.|(?!""")[^\\])*"""(?:"{0,2})'''
    r"""|\'\'\'.*?\'\'\'(?:'{0,2})"""
    r'''|"(?:\\.|[^"\\])*"'''
    r"""|'[^']*'"""
    r"""|[^,\]}#\s]+(?:[ ][0-9:.]+)?""",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class TomlPosition:
    """A key and its value; of a table's header both are its name."""

    key: Span
    value: Span


def places(text: str) -> dict[Path, TomlPosition]:
    """The place of every key, table and element: ("sinks", 1, "path") is the path of the second sink."""
    scanner = _Scanner(text)
    scanner.scan()
    return scanner.positions


@dataclass
class _Scanner:
    text: str
    at: int = 0
    table: Path = ()
    # How many tables an array of tables has so far.
    counts: dict[Path, int] = field(default_factory=dict)
    positions: dict[Path, TomlPosition] = field(default_factory=dict)

    def scan(self) -> None:
        self._skip()
        while self.at < len(self.text):
            if self.text[self.at] == "[":
                self._header()
            else:
                self._pair(self.table)
            self._skip()

    def _skip(self) -> None:
        blank = _BLANK.match(self.text, self.at)
        self.at = self.at if blank is None else blank.end()

    def _header(self) -> None:
        listed = self.text.startswith("[[", self.at)
        self.at += 2 if listed else 1
        self._skip()
        names, span = self._key()
        self.at = self.text.index("]", self.at) + (2 if listed else 1)
        if listed:
            array = (*self._inside(names[:-1]), names[-1])
            self.counts[array] = self.counts.get(array, 0) + 1
            self.positions.setdefault(array, TomlPosition(span, span))
        self.table = self._inside(names)
        for size in range(1, len(self.table) + 1):
            self.positions.setdefault(self.table[:size], TomlPosition(span, span))

    def _inside(self, names: Iterable[str]) -> Path:
        """The path of a table; inside an array of tables that is the last one so far."""
        path: Path = ()
        for name in names:
            path += (name,)
            if path in self.counts:
                path += (self.counts[path] - 1,)
        return path

    def _key(self) -> tuple[list[str], Span]:
        start, names = self.at, []
        while True:
            part = _KEY_PART.match(self.text, self.at)
            if part is None:
                raise ValueError(f"no key at {self.at}")
            names.append(tomllib.loads(f"name = {part[0]}")["name"] if part[0][0] in "\"'" else part[0])
            self.at = part.end()
            dot = _DOT.match(self.text, self.at)
            if dot is None:
                return names, Span(start, self.at)
            self.at = dot.end()

    def _pair(self, table: Path) -> None:
        names, span = self._key()
        self.at = self.text.index("=", self.at) + 1
        self._skip()
        path = (*table, *names)
        for size in range(len(table) + 1, len(path)):
            self.positions.setdefault(path[:size], TomlPosition(span, span))
        self.positions[path] = TomlPosition(span, self._value(path))

    def _value(self, path: Path) -> Span:
        start = self.at
        if self.text[start] == "[":
            self.at += 1
            number = 0
            while not self._ends("]"):
                element = self._value((*path, number))
                self.positions[(*path, number)] = TomlPosition(element, element)
                number += 1
        elif self.text[start] == "{":
            self.at += 1
            while not self._ends("}"):
                self._pair(path)
        else:
            scalar = _SCALAR.match(self.text, start)
            if scalar is None:
                raise ValueError(f"no value at {start}")
            self.at = scalar.end()
        return Span(start, self.at)

    def _ends(self, closing: str) -> bool:
        """Skip to the next element, or past the end."""
        self._skip()
        if self.text[self.at] == ",":
            self.at += 1
            self._skip()
        if self.text[self.at] != closing:
            return False
        self.at += 1
        return True
