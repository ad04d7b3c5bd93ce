"""The page of the papers' figures is written by a run: between its marks, and nowhere else."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("bench.papers.page")

from bench.papers.page import BEGIN, END, Circumstances, NoPage, written
from bench.papers.report import Finding

FINDINGS = [
    Finding("SASE Fig. 8", "faster", "2 x", True),
    Finding("SASE+ Fig. 8(a)", "ten times", "2.8 x | 3", False, "the look at an event"),
    Finding("ZStream Fig. 14", "nearly as good", "7 % behind", True),
]
RUN = Circumstances("18 November 2026", 2, 330.0, 300.0, (0.5, 1.25))


def test_tables_stand_between_the_marks() -> None:
    page = written(f"before\n{BEGIN}\nold tables\n{END}\nafter\n", FINDINGS, RUN)
    assert page.startswith(f"before\n{BEGIN}\n")
    assert page.endswith(f"{END}\nafter\n")
    assert "old tables" not in page
    assert "2 of 3 claims are seen in the paper's direction; not SASE+ Fig. 8(a)." in page
    assert "in 5.5 minutes with 5.0 minutes of the processor" in page
    sections = [line for line in page.splitlines() if line.startswith("## ")]
    assert sections == ["## SASE", "## SASE+", "## ZStream"]
    assert "| SASE+ Fig. 8(a) | ten times | 2.8 x \\| 3 | **no** | the look at an event |" in page


def test_a_run_writes_over_what_another_wrote() -> None:
    page = f"{BEGIN}\n{END}\n"
    once = written(page, FINDINGS, RUN)
    assert written(once, FINDINGS, RUN) == once


def test_a_page_without_marks_is_left_alone() -> None:
    with pytest.raises(NoPage, match="no place for tables"):
        written("a page", FINDINGS, RUN)


def test_findings_come_back_from_a_process() -> None:
    sent = json.dumps([finding.as_json() for finding in FINDINGS])
    assert [Finding(**each) for each in json.loads(sent)] == FINDINGS
