"""Tables of results against the reference's: the same rows in the same order, ids and computed columns included."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from tests.engine.retained import compare, evaluated
from tests.soaking import least, rounds

from kleene.errors import KleeneError
from kleene.lang.tree import OutputMode
from kleene.pattern import Query, Schema
from kleene.pattern.nodes import ComponentKind
from kleene.testing.generators import STRATA, random_case, schema_of

A_STRATUM = rounds(200)
compared: Counter[str] = Counter()


@pytest.mark.slow
@pytest.mark.parametrize("stratum", [name for name, plan in STRATA.items() if plan.output != "COMPRESSED"])
def test_tables_agree_with_the_reference(stratum: str) -> None:
    for seed in range(A_STRATUM):
        rng = random.Random(f"{stratum} {seed}")
        case = random_case(rng, stratum)
        schema, params = Schema(**schema_of(case)), dict(case.params or {})
        try:
            evaluated(case.events, Query(case.query_text, params=params), schema)
            query = Query(_with_outputs(case.query_text, params, schema, rng), params=params)
            retained, whole = evaluated(case.events, query, schema)
        except KleeneError:
            continue
        compare(retained, whole, rng)
        compared[stratum] += bool(retained.result.matches)
        compared["timeouts"] += bool(retained.result.timeouts)
        compared["returned"] += bool(retained.result.returned)
    print(compared)


def test_enough_was_compared() -> None:
    """Runs after the strata; alone it has nothing to count."""
    assert not compared or (
        min(compared.values()) >= least(30)
        and compared["timeouts"] >= least(300)
        and compared["returned"] >= least(600)
    )


def _with_outputs(text: str, params: dict[str, Any], schema: Schema, rng: random.Random) -> str:
    """The query with RETURN or TIMEOUTS added, where it can have them."""
    bound = Query(text, params=params).bind(schema)
    plain = [c.variable for c in bound.positives if c.kind is ComponentKind.SINGLE]
    many = [c.variable for c in bound.positives if c.kind is not ComponentKind.SINGLE]
    assert bound.output is not OutputMode.COMPRESSED
    made = text
    if "WITHIN" in text and _binds(f"{text} TIMEOUTS INTO late", params, schema):
        made = f"{text} TIMEOUTS INTO late"
    if rng.random() < 0.6:
        drawn = [_item(plain, many, rng) for _ in range(rng.randint(1, 6))]
        items = [f"{item} AS r{place}" for place, item in enumerate(drawn)]
        items = [item for item in items if _binds(f"{text} RETURN {item}", params, schema)]
        made += " RETURN " + ", ".join(items) if items else ""
    return made


def _binds(text: str, params: dict[str, Any], schema: Schema) -> bool:
    try:
        Query(text, params=params).bind(schema)
    except KleeneError:
        return False
    return True


def _item(plain: list[str], many: list[str], rng: random.Random) -> str:
    if rng.random() < 0.15:
        return rng.choice([*plain, *many])
    number = _number(plain, many, rng)
    if rng.random() < 0.5:
        return rng.choice([f"{number} + {_number(plain, many, rng)}", f"-{number}", f"{number} / 2", f"{number} % 2"])
    return number


def _number(plain: list[str], many: list[str], rng: random.Random) -> str:
    name = rng.choice([*plain, *many])
    attribute = rng.choice(("x", "x", "y", "id", "ts", "s", "f"))
    if name in plain:
        return rng.choice((f"{name}.{attribute}", f"{name}.{attribute}", "3", "2.5"))
    function = rng.choice(("count", "sum", "avg", "min", "max", "first", "last"))
    return rng.choice(
        (
            f"{name}[1].{attribute}",
            f"{name}[{name}.LEN].{attribute}",
            f"{name}.LEN",
            f"{function}({name}[..].{attribute})",
        )
    )
