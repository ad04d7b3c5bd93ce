"""Broken queries of EQL: each is parsed and survives printing, or a Kleene error says what to do."""

from __future__ import annotations

from random import Random

import pytest
from tests.lang.test_eql_advice import MISTAKES
from tests.lang.test_eql_spelling import NEW_CURRENCY, SMALL_SMALL_LARGE, THREE_LARGE
from tests.lang.test_fuzz import INSERTS, TOKEN
from tests.soaking import rounds

from kleene.errors import KleeneError
from kleene.lang import eql_tree, parse
from kleene.lang.format_eql import WIDTH, format_eql_query

SEEDS = [
    *(text for text, *_ in MISTAKES),
    *[SMALL_SMALL_LARGE, THREE_LARGE, NEW_CURRENCY] * 20,
    *[r"SELECT S1.x AS y, 5% FROM (t A | t B+) \ (t C ; t D) WHERE (A, B) OCCURS WITHIN 5 INTO S"] * 20,
]
WORDS = [*INSERTS, " SELECT ", " FROM ", " INTO ", " AS ", " OCCURS ", " FILTER(", " PREV(", "(A, B)", "∖", "→", "@ 5"]


def _mutated(random: Random) -> str:
    tokens = TOKEN.findall(random.choice(SEEDS))
    for _ in range(random.randint(1, 4)):
        place = random.randint(0, len(tokens))
        match random.choice(["drop", "insert", "insert", "repeat", "cut"]):
            case "drop":
                del tokens[place : place + random.randint(1, 3)]
            case "insert":
                tokens.insert(place, random.choice(WORDS))
            case "repeat":
                other = random.randint(0, len(tokens))
                tokens[place:place] = tokens[other : other + 5]
            case "cut":
                del tokens[place:]
    return "".join(tokens)


def _outcome(text: str) -> object:
    try:
        return parse(text, "next")
    except KleeneError as error:
        return error


@pytest.mark.slow
def test_only_kleene_errors() -> None:
    random = Random(9)
    accepted = 0
    for _ in range(rounds(40_000)):
        text = _mutated(random)
        query = _outcome(text)
        if isinstance(query, KleeneError):
            assert query.hint or query.code != "KL101", query.render()
            assert query.render().startswith("error[KL")
            continue
        assert isinstance(query, eql_tree.EqlQuery)
        accepted += 1
        for width in (None, WIDTH, 30):
            printed = format_eql_query(query, width)
            assert parse(printed, "next") == query
            assert format_eql_query(query, width) == printed
    assert accepted > rounds(400)
