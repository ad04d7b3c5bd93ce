"""Every `semantics §n`, and every section of a paper, that code, cases and pages cite is a heading that exists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SEMANTICS, REFERENCES = ROOT / "docs/semantics.md", ROOT / "docs/references.md"
PAPERS = ("SASE+", "SASE", "ZStream", "CESAR", "NEXT")
# Cayuga is the system of CESAR's paper.
OTHER_NAMES = {"Cayuga": "CESAR"}
_NAME = r"(?<![\w])(?P<name>semantics|SASE\+|SASE|ZStream|CESAR|Cayuga|NEXT)(?!\w)"
_TOKEN = re.compile(rf"{_NAME}|§(?P<first>\d+(?:\.\d+)*)(?:[–-](?P<last>\d+(?:\.\d+)*))?(?P<rule>[^§\n]{{0,80}})")
# A section belongs to the name before it, unless that is this many characters away.
_NEAR = 120
_PLACES = ("src", "tests", "bench", "docs", "examples", "README.md", "CONTRIBUTING.md")
_KINDS = {".py", ".md", ".case", ".kleene", ".toml", ".lark"}
# Snapshots that tests keep end in `.kleene`, too.
_NOT_TEXT = {"__pycache__", "data"}


@dataclass(frozen=True)
class Citation:
    """A section of a page or paper, and what the text behind it calls the rule."""

    source: str
    section: str
    rule: str


def citations(text: str) -> Iterator[Citation]:
    """Those of a text; a section without a name shares the one before: `semantics §2 NULL; §3 Window`."""
    source, near = None, 0
    position = 0
    while found := _TOKEN.search(text, position):
        position = found.end("name") if found["name"] else found.start("rule")
        if found["name"]:
            source, near = OTHER_NAMES.get(found["name"], found["name"]), position
        elif source is not None and found.start() - near <= _NEAR:
            for section in filter(None, (found["first"], found["last"])):
                yield Citation(source, section, re.split(r"[;,(.:)\"]", found["rule"])[0].strip())
            near = position


@cache
def rules_of_semantics() -> dict[str, tuple[str, str]]:
    """By number of the section: the names of its rules, one a line, and its text without marks."""
    sections = re.split(r"^## (\d+)\. ", SEMANTICS.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    named = {}
    for number, text in zip(sections[::2], sections[1::2], strict=True):
        headings = re.findall(r"^### (.+)$", text, flags=re.MULTILINE)
        bold = re.findall(r"\*\*([^*]+?)\.?\*\*", text)
        plain = " ".join(re.sub(r"[*`]", "", text).split()).lower()
        named[number] = "\n".join(re.sub("`", "", name).lower() for name in (*headings, *bold)), plain
    return named


@cache
def sections_of_papers() -> dict[str, set[str]]:
    parts = re.split(r"^## (.+)$", REFERENCES.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return {
        name: set(re.findall(r"^\| (\d+(?:\.\d+)*) \|", text, flags=re.MULTILINE))
        for name, text in zip(parts[::2], parts[1::2], strict=True)
    }


def why_wrong(citation: Citation) -> str | None:
    if citation.source != "semantics":
        exists = citation.section in sections_of_papers()[citation.source]
        return None if exists else f"{citation.source} has no §{citation.section}"
    if citation.section not in rules_of_semantics():
        return f"docs/semantics.md has no §{citation.section}"
    names, text = rules_of_semantics()[citation.section]
    rule = citation.rule.lower()
    # Only what begins like the name of a rule is taken for one.
    if not citation.rule[:1].isupper() or any(rule.startswith(name) for name in names.splitlines()) or rule in text:
        return None
    return f"docs/semantics.md §{citation.section} has no rule `{citation.rule}`"


def files() -> Iterator[Path]:
    for place in _PLACES:
        path = ROOT / place
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            if file.suffix in _KINDS and file != Path(__file__) and _NOT_TEXT.isdisjoint(file.parts):
                yield file


def test_every_citation_is_a_heading() -> None:
    wrong, counted = [], dict.fromkeys(("semantics", *PAPERS), 0)
    for file in files():
        for citation in citations(file.read_text(encoding="utf-8")):
            counted[citation.source] += 1
            reason = why_wrong(citation)
            if reason is not None:
                wrong.append(f"{file.relative_to(ROOT)}: {reason}")
    assert wrong == []
    assert counted["semantics"] > 400
    assert all(counted.values()), counted


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("semantics §3 Negation (middle); SASE §2.2.2", None),
        ("(the semantics page §2, Missing)", None),
        ("semantics §9", "docs/semantics.md has no §9"),
        ("semantics §2 Negation", "docs/semantics.md §2 has no rule `Negation`"),
        ("SASE §9.1", "SASE has no §9.1"),
        ("SASE+ §3–5", None),
        ("Cayuga §4.3 and §8", "CESAR has no §8"),
    ],
)
def test_a_wrong_citation_is_found(text: str, reason: str | None) -> None:
    found = [why_wrong(citation) for citation in citations(text)]
    assert found
    assert [one for one in found if one is not None] == ([] if reason is None else [reason])


def test_papers_are_those_of_the_page() -> None:
    assert set(sections_of_papers()) == set(PAPERS)


def test_links_between_pages_lead_somewhere() -> None:
    """Pages that rule are linked to by section, so a heading that changes its name is found here."""
    wrong = []
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
            path, _, anchor = target.partition("#")
            if "://" in target or (not path and not anchor):
                continue
            file = page if not path else (page.parent / path).resolve()
            if not file.exists() or (anchor and anchor not in anchors(file)):
                wrong.append(f"{page.relative_to(ROOT)}: {target}")
    assert wrong == []


@cache
def anchors(page: Path) -> set[str]:
    """As the usual forges make them of headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
