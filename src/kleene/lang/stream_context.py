"""Where the parser gave up in an expression of streams: which brackets are open there, and whose they are."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from kleene.lang.advice import ErrorContext

# What an operation looks like, by its sign and by its name.
FORMS = {
    "σ": "σ{price > 5}(S)",
    "π": "π{name, price}(S)",
    "ρ": "ρ{price ↦ old}(S)",
    "α": "α{n ↦ n + 1}(S)",
    "μ": "μ{σ{…}, condition}(S1, S2)",
}
SIGNS = {"select": "σ", "project": "π", "rename": "ρ", "compute": "α", "fold": "μ", "µ": "μ"} | {
    sign: sign for sign in FORMS
}
_OPENING = re.compile(
    r"'[^']*(?:''[^']*)*'|\"[^\"]*\"|`[^`\n]*`|--[^\n]*|/\*.*?\*/|(?P<open>[{(\[])|(?P<close>[})\]])", re.DOTALL
)
OPERATION = r"(?:[σπραμµ]|\b(?:select|project|rename|compute|fold)\b)"
_HEAD = re.compile(rf"(?P<mark>{OPERATION}|;|\bnext\b)\s*_?\s*\Z", re.IGNORECASE)


@dataclass(frozen=True)
class StreamContext(ErrorContext):
    @cached_property
    def brackets(self) -> list[int]:
        """The places of the brackets that are open before the place, the innermost last."""
        return open_brackets(self.before)

    @property
    def opened(self) -> tuple[str, str]:
        """The innermost bracket that is open, and the mark that it belongs to."""
        if not self.brackets:
            return "", ""
        return self.text[self.brackets[-1]], mark_before(self.text[: self.brackets[-1]])

    @property
    def inside(self) -> str:
        """The sign whose braces the place stands in, also inside parentheses there; empty elsewhere."""
        braces = [at for at in self.brackets if self.text[at] == "{"]
        return mark_before(self.text[: braces[-1]]) if braces else ""

    @property
    def since(self) -> str:
        """The text from the innermost open bracket to the place."""
        return self.before[self.brackets[-1] + 1 :] if self.brackets else self.before


def open_brackets(text: str) -> list[int]:
    """The places of the brackets that a text leaves open."""
    places: list[int] = []
    for match in _OPENING.finditer(text):
        if match["open"]:
            places.append(match.start())
        elif match["close"] and places:
            places.pop()
    return places


def mark_before(text: str) -> str:
    """The sign that a bracket after this text belongs to: of its braces, or of the stream in its parentheses."""
    if text.rstrip().endswith("}"):
        depth = 0
        for match in reversed(list(_OPENING.finditer(text))):
            depth += bool(match["close"]) - bool(match["open"])
            if match["open"] and depth == 0:
                text = text[: match.start()]
                break
    head = _HEAD.search(text)
    if head is None:
        return ""
    return SIGNS.get(head["mark"].casefold(), ";")
