"""docs/errors.md explains every code, and its examples give exactly the errors that it shows."""

from __future__ import annotations

import logging
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

import kleene
from kleene.errors import CATALOGUE, KleeneError, Problem, QueryWarning

PAGE = Path(__file__).parents[2] / "docs" / "errors.md"
# A query that is only checked may leave its parameters open, so this one is bound in earnest.
BOUND_IN_EARNEST = {"KL206"}

_SECTION = re.compile(r"^## (KL\d{3}) ([^\n]+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"^```(\w+)\n(.*?)\n```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Section:
    """What the page says of one code."""

    code: str
    title: str
    prose: str
    blocks: tuple[tuple[str, str], ...]


def _sections() -> list[Section]:
    text = PAGE.read_text(encoding="utf-8")
    return [
        Section(code, title, _BLOCK.sub("", body).strip(), tuple(_BLOCK.findall(body)))
        for code, title, body in _SECTION.findall(text)
    ]


SECTIONS = _sections()


def test_every_code_is_explained_once_and_in_order() -> None:
    assert [section.code for section in SECTIONS] == sorted(CATALOGUE)


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.code)
def test_section_is_complete(section: Section) -> None:
    assert section.title == CATALOGUE[section.code].title
    assert section.prose, "a section says what the error means and what to do"
    kinds = [kind for kind, _ in section.blocks]
    assert kinds in (["kleene", "text"], ["python", "text"]), "a section has one example and its output"


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.code)
def test_example_gives_what_the_page_shows(section: Section, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (kind, example), (_, shown) = section.blocks
    if kind == "python" and issubclass(CATALOGUE[section.code], QueryWarning):
        assert shown.startswith(f"warning[{section.code}]")
        assert _logged_by_program(example) == [shown]
        return
    found = _problem_of_query(example, section.code) if kind == "kleene" else _error_of_program(example)
    assert found.code == section.code
    assert str(found) == shown


def _problem_of_query(text: str, code: str) -> Problem:
    try:
        bound = kleene.Query(text).bind(checking=code not in BOUND_IN_EARNEST)
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
        exec(compile(source, str(PAGE), "exec"), {"__name__": "example"})
    finally:
        logging.getLogger("kleene").removeHandler(listener)
    return messages


def _error_of_program(source: str) -> Problem:
    if "pyspark" in source:
        pytest.importorskip("pyspark")
    before = dict(sys.modules)
    try:
        with pytest.raises(KleeneError) as caught:
            exec(compile(source, str(PAGE), "exec"), {"__name__": "example"})
    finally:
        _bring_back(before)
    return caught.value


def _bring_back(before: dict[str, ModuleType]) -> None:
    """Undo what an example did to show a package that is not installed; what it imported stays imported."""
    for name in [name for name, module in sys.modules.items() if module is None]:
        del sys.modules[name]
        if before.get(name) is not None:
            sys.modules[name] = before[name]
