"""A pipeline file's text and where each key stands in it: what an error needs to show its place."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path as File
from typing import Any, TypeVar

from kleene.errors import KleeneError, NotToml, Span
from kleene.frames.text_files import read_text
from kleene.spark.pipeline.toml_positions import Path, TomlPosition, places
from kleene.spark.pipeline.values import without_secrets

E = TypeVar("E", bound=KleeneError)
_AT = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)\Z")
_OPENING = re.compile(r"(\"\"\"|''')\n?|[\"']")


@dataclass(frozen=True)
class TomlSource:
    """`origin` is the file as the user named it; the text that is shown holds no secrets."""

    origin: str
    text: str
    content: Mapping[str, Any] = field(repr=False)
    places: Mapping[Path, TomlPosition] = field(repr=False)

    @staticmethod
    def read(path: File) -> TomlSource:
        text = read_text(path)
        shown = without_secrets(text)
        try:
            content = tomllib.loads(text)
        except tomllib.TOMLDecodeError as problem:
            raise _not_toml(str(problem), shown, str(path)) from None
        return TomlSource(str(path), shown, content, places(text))

    def error(self, kind: type[E], message: str, path: Path, hint: str | None = None, *, value: bool = False) -> E:
        """An error at a key, at its value, or at the nearest part that is there."""
        there = path
        while there and there not in self.places:
            there = there[:-1]
        place = self.places.get(there, TomlPosition(Span(0, 0), Span(0, 0)))
        error = kind(message, place.value if value and there == path else place.key, hint)
        error.locate(self.text, self.origin)
        return error

    def point_into(self, error: KleeneError, path: Path, query: str) -> None:
        """Let an error in a query that is written in this file show its place here, not in the query's own text."""
        place = self.places.get(path)
        if place is None or error.span is None or error.text != query:
            return
        opening = _OPENING.match(self.text, place.value.start)
        start = place.value.start if opening is None else opening.end()
        # Escapes would make the two differ.
        if self.text.startswith(query, start):
            error.span = Span(start + error.span.start, start + error.span.end)
            error.text, error.origin = self.text, self.origin


def _not_toml(message: str, text: str, origin: str) -> NotToml:
    match = _AT.search(message)
    start = len(text.rstrip())
    if match is not None and match[1] is not None:
        lines = text.split("\n")
        start = sum(len(line) + 1 for line in lines[: int(match[1]) - 1]) + int(match[2]) - 1
    said = _AT.sub("", message)
    hint = "a text stands in quotes" if said == "Invalid value" else None
    error = NotToml(said[:1].lower() + said[1:], Span(start, start + 1), hint)
    error.locate(text, origin)
    return error
