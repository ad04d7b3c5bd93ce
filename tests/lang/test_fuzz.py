"""Ten thousand broken queries: each is a query or a Kleene error, never anything else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.case_files import CASES
from tests.soaking import least, rounds

from kleene.errors import KleeneError
from kleene.queries.any_query import read_query

ROOT = Path(__file__).parents[2]
SEEDS = sorted(
    {path.read_text(encoding="utf-8") for path in (ROOT / "examples" / "papers").glob("*.kleene")}
    | {text for case in CASES for text in case.queries}
)
TOKEN = re.compile(r"\s+|\w+|.", re.DOTALL)
INSERTS = [
    *"()[]{};,|&!~?*+^%<>=.:'\"`-/\\#@$∧∨¬≠≤≥‘’\0\n",
    " AND ", " OR ", " NOT ", " SEQ(", " ANY(", " WHERE ", " WITHIN ", " RETURN ", " IN ", " BETWEEN ", " IS NULL",
    " a[i] ", " a[i-1].x ", "[..i-1]", "a.LEN", " 5 ", " 9999999999999999999 ", " 1e999 ", " :p ", " 5 hours ", "{2,3}",
    " DECLARE TYPE A (x int) ", " avg(a.x) ", " count(", " skip_till_next_match {", " '", "/*", "--",
    "σ{", "π{", " ∘ ", " ∪ ", "μ{", " ↦ ", ".last", " DUR ", " init ", " publish ", " next{", " union ", " fold(",
    "SELECT ", " FROM ", " FILTER(", " PREV(", " ALL(", " (a, b) OCCURS WITHIN 5", " INTO S",
]  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn) -> str:
    tokens = TOKEN.findall(draw(st.sampled_from(SEEDS)))
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, max(0, len(tokens) - 1)))
        other = draw(st.integers(0, max(0, len(tokens) - 1)))
        match draw(st.sampled_from(["drop", "insert", "repeat", "swap", "cut", "random"])):
            case "drop":
                del tokens[place : place + draw(st.integers(1, 3))]
            case "insert":
                tokens.insert(place, draw(st.sampled_from(INSERTS)))
            case "repeat":
                tokens[place:place] = tokens[min(place, other) : max(place, other)][:20]
            case "swap" if tokens:
                tokens[place], tokens[other] = tokens[other], tokens[place]
            case "cut":
                del tokens[place:]
            case "random":
                tokens.insert(place, draw(st.text(max_size=4)))
    return "".join(tokens)


outcomes = {"accepted": 0, "refused": 0}


@pytest.mark.slow
@settings(
    max_examples=rounds(30_000), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(mutated())
def test_only_kleene_errors(text: str) -> None:
    refusal = _refusal(text)
    outcomes["accepted" if refusal is None else "refused"] += 1
    assert refusal is None or refusal.startswith("error[KL")


def _refusal(text: str) -> str | None:
    try:
        read_query(text).bind(checking=True)
    except KleeneError as error:
        return error.render()
    return None


@pytest.mark.slow
def test_the_fuzz_reached_both_ends() -> None:
    """The mutations are neither all harmless nor all fatal."""
    print(f"fuzz: {outcomes}")
    assert outcomes["accepted"] > least(4_000)
    assert outcomes["refused"] > least(5_000)
