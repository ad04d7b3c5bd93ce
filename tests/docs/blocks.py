"""The blocks of a page that are run: sessions of Python, commands, and the examples of errors. Needs no pytest."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType

import kleene
from kleene.errors import CATALOGUE, KleeneError, Problem, QueryWarning

_FENCE = re.compile(r"^```(\w*)\s*$")
_CONSOLE = re.compile(r"^```console\n(.*?)\n```$", re.MULTILINE | re.DOTALL)
_SECONDS = re.compile(r" in \d+\.\d s$", re.MULTILINE)
_SECTION = re.compile(r"^## (KL\d{3}) ([^\n]+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"^```(\w+)\n(.*?)\n```$", re.MULTILINE | re.DOTALL)
# A query that is only checked may leave its parameters open, so this one is bound in earnest.
BOUND_IN_EARNEST = {"KL206"}


def session_of(text: str) -> str:
    """The pycon blocks of a page at their own lines; every other line is blank."""
    kept: list[str] = []
    fence: str | None = None
    for line in text.splitlines():
        found = _FENCE.match(line)
        if found is not None:
            fence = found[1] if fence is None else None
            kept.append("")
        else:
            kept.append(line if fence == "pycon" else "")
    return "\n".join(kept) + "\n"


# Commands ----------------------------------------------------------------------------------------------------------


def commands_of(text: str) -> Iterator[tuple[str, str]]:
    """Each command and what it prints."""
    for block in _CONSOLE.findall(text):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            first, *rest = part.splitlines()
            number = next((at for at, line in enumerate(rest) if not line.startswith("> ")), len(rest))
            command = "\n".join([first, *(line.removeprefix("> ") for line in rest[:number])])
            yield command, "\n".join(rest[number:]).strip("\n")


def comparable(printed: str) -> str:
    """What was printed, without the times that it took."""
    found = _SECONDS.sub(" in 0.0 s", printed.strip("\n"))
    return "\n".join(line.rstrip() for line in found.splitlines())


# Errors ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Section:
    """What the page of errors says of one code."""

    code: str
    title: str
    prose: str
    blocks: tuple[tuple[str, str], ...]


def sections_of(text: str) -> list[Section]:
    return [
        Section(code, title, _BLOCK.sub("", body).strip(), tuple(_BLOCK.findall(body)))
        for code, title, body in _SECTION.findall(text)
    ]


def printed_by(section: Section) -> str:
    """What the example of a section gives: a query's error or warning, or what a program raises or logs."""
    kind, example = section.blocks[0]
    if kind == "kleene":
        return str(_of_query(example, section.code))
    if issubclass(CATALOGUE[section.code], QueryWarning):
        return "\n".join(_logged_by_program(example))
    return str(_of_program(example))


def _of_query(text: str, code: str) -> Problem:
    try:
        bound = kleene.query(text).bind(checking=code not in BOUND_IN_EARNEST)
    except KleeneError as error:
        return error
    assert len(bound.warnings) == 1, f"expected one warning, got {[warning.code for warning in bound.warnings]}"
    return bound.warnings[0]


def _logged_by_program(source: str) -> list[str]:
    """The warnings that depend on data: they are logged when a query runs."""
    messages: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append(record.getMessage())

    listener = Listener()
    logging.getLogger("kleene").addHandler(listener)
    try:
        exec(compile(source, "docs/errors.md", "exec"), {"__name__": "example"})
    finally:
        logging.getLogger("kleene").removeHandler(listener)
    return messages


def _of_program(source: str) -> Problem:
    before = dict(sys.modules)
    try:
        exec(compile(source, "docs/errors.md", "exec"), {"__name__": "example"})
    except KleeneError as error:
        return error
    finally:
        _bring_back(before)
    raise AssertionError("the example raises nothing")


def _bring_back(before: dict[str, ModuleType]) -> None:
    """Undo what an example did to show a package that is not installed; what it imported stays imported."""
    for name in [name for name, module in sys.modules.items() if module is None]:
        del sys.modules[name]
        if before.get(name) is not None:
            sys.modules[name] = before[name]
