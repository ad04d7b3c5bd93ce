"""Every `pycon` block of the documentation is run: what a page shows is what Kleene gives.

The blocks of a page are one session, from its top to its end, in an empty folder.
"""

from __future__ import annotations

import doctest
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.docs.blocks import session_of

ROOT = Path(__file__).parents[2]
LANGUAGE = ROOT / "docs" / "language.md"


def _pages() -> Iterator[Any]:
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        if not path.exists():
            continue
        session = session_of(path.read_text(encoding="utf-8"))
        if session.strip():
            marks = [pytest.mark.spark] if "pyspark" in session else []
            yield pytest.param(path, id=str(path.relative_to(ROOT)), marks=marks)


@pytest.mark.parametrize("page", list(_pages()))
def test_examples_of_a_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    session = session_of(page.read_text(encoding="utf-8"))
    examples = doctest.DocTestParser().get_doctest(session, {"__name__": "example"}, page.name, str(page), 0)
    report: list[str] = []
    result = doctest.DocTestRunner(verbose=False).run(examples, out=report.append)
    assert result.failed == 0, "".join(report)


def test_every_section_of_the_language_has_an_example() -> None:
    text = LANGUAGE.read_text(encoding="utf-8")
    _, *sections = re.split(r"^## ", text, flags=re.MULTILINE)
    assert [section.splitlines()[0] for section in sections if "```pycon" not in section] == []


def test_the_manual_stays_short() -> None:
    assert len(LANGUAGE.read_text(encoding="utf-8").splitlines()) <= 580
