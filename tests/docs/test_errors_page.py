"""docs/errors.md explains every code, and its examples give exactly the errors that it shows."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.docs.blocks import Section, printed_by, sections_of

from kleene.errors import CATALOGUE

PAGE = Path(__file__).parents[2] / "docs" / "errors.md"

SECTIONS = sections_of(PAGE.read_text(encoding="utf-8"))


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
    if "pyspark" in section.blocks[0][1]:
        pytest.importorskip("pyspark")
    printed = printed_by(section)
    assert f"[{section.code}]" in printed.partition(":")[0]
    assert printed == section.blocks[1][1]
