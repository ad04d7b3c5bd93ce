"""Each rule of the optimiser as text: a query, its plan with the rule, and its plan without it.

`tests/optimize/plans/<rule>.txt` holds them. `KLEENE_WRITE=1 pytest tests/optimize/test_plan_texts.py` writes the plans
of all files anew; what changed is then read in the diff. A new rule needs a file, one query at least.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kleene.explanation import explain_query
from kleene.optimize.rules import ALL_RULES
from kleene.pattern import Query
from kleene.plan.settings import Settings

FOLDER = Path(__file__).with_name("plans")
_RULE, _WITH, _WITHOUT = "=" * 72, "--- with it", "--- without it"


def plan_of(text: str, without: str | None = None) -> str:
    settings = Settings() if without is None else Settings(without=frozenset({without}))
    return explain_query(Query(text), settings=settings).text.partition("\nplan\n")[2].rstrip()


def section(text: str, rule: str) -> str:
    return f"{text}\n\n{_WITH}\n{plan_of(text)}\n\n{_WITHOUT}\n{plan_of(text, rule)}\n"


def queries(content: str) -> list[str]:
    return [part.partition(f"\n\n{_WITH}\n")[0].strip() for part in content.split(f"{_RULE}\n")]


@pytest.mark.parametrize("rule", ALL_RULES)
def test_plans_are_as_written(rule: str) -> None:
    file = FOLDER / f"{rule}.txt"
    content = file.read_text(encoding="utf-8")
    made = f"{_RULE}\n".join(section(text, rule) for text in queries(content))
    if os.environ.get("KLEENE_WRITE"):
        file.write_text(made, encoding="utf-8")
    else:
        assert content == made


@pytest.mark.parametrize("rule", ALL_RULES)
def test_the_rule_makes_a_difference(rule: str) -> None:
    for text in queries((FOLDER / f"{rule}.txt").read_text(encoding="utf-8")):
        with_it, without_it = (_steps(plan_of(text, without)) for without in (None, rule))
        assert with_it != without_it, text


def _steps(plan: str) -> list[str]:
    """A plan without the line that lists the rules."""
    return [line for line in plan.splitlines() if not line.strip().startswith("rules")]


def test_there_is_no_file_of_a_rule_that_is_gone() -> None:
    assert {file.stem for file in FOLDER.iterdir()} == set(ALL_RULES)
