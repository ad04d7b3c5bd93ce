"""Every case file, on the reference evaluator."""

from __future__ import annotations

from pathlib import Path

import pytest

from kleene.testing.case_check import check_case
from kleene.testing.case_reference import run_on_reference
from kleene.testing.cases import Case, read_cases

CASES = read_cases(Path(__file__).parents[1] / "cases")


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.place} {case.name}")
def test_case(case: Case) -> None:
    check_case(case, run_on_reference)


def test_there_are_enough_cases() -> None:
    print(f"{len(CASES)} cases on the reference evaluator")
    assert len(CASES) >= 120
    assert all(case.why or case.error for case in CASES), "every case says why"
