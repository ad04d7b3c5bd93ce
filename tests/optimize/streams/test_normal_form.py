"""The normal form of unary operations (CESAR §3.4, Theorem 3): each rule by texts, all of them on random streams."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.algebra.test_agreement import drawn
from tests.soaking import rounds

from kleene.algebra.nodes import Compute, Filter, Fold, Project, Rename, chain, walk
from kleene.algebra.printing import print_stream
from kleene.algebra.query import StreamQuery
from kleene.optimize.streams.normal_form import RULES, normal_form
from kleene.pattern.expressions import IsNull
from kleene.pattern.schema import Schema
from kleene.reference.streams import StreamEvaluator
from kleene.testing.generators.streams import random_stream_case

SCHEMA = Schema(columns={"type": "string", "ts": "int", "k": "int", "x": "int", "y": "float", "s": "string"})
TEXTS = [block.strip().splitlines() for block in Path(__file__).with_name("rules.txt").read_text().split("\n\n")]
_PLACES = (Project, Compute, Rename, Filter)


@pytest.mark.parametrize(("name", "before", "after"), TEXTS, ids=[lines[0][3:] for lines in TEXTS])
def test_a_rule(name: str, before: str, after: str) -> None:
    assert print_stream(normal_form(StreamQuery(before).bind(SCHEMA).root)) == after


def test_every_rule_has_a_text() -> None:
    assert {rule.__name__ for rule in RULES} == {lines[0][3:].split()[0].rstrip(":") for lines in TEXTS[:-1]}


@pytest.mark.slow
def test_the_normal_form_is_the_same_stream(record_property: Any) -> None:
    changed = results = 0
    for seed in range(rounds(6_000)):
        query, timeline = drawn(random_stream_case(Random(f"normal form {seed}")))
        normal = normal_form(query.root)
        assert normal.schema is query.root.schema
        expected = [event.key for event in StreamEvaluator(timeline).evaluate(query.root)]
        assert [event.key for event in StreamEvaluator(timeline).evaluate(normal)] == expected, print_stream(query.root)
        for node in walk(normal):
            for top in (node, node.step) if isinstance(node, Fold) else (node,):
                operations, _ = chain(top)
                # A test for NULL may have to stay where it is.
                if not any(isinstance(each, IsNull) for each in _literals(operations)):
                    places = [_PLACES.index(type(operation)) for operation in operations]
                    assert places == sorted(set(places)), print_stream(top)
        changed += normal is not query.root
        results += bool(expected)
    record_property(
        "counted", f"normal form = stream: {rounds(6_000)} streams, {changed} changed, {results} with results"
    )
    assert changed > rounds(6_000) / 5


def _literals(operations: list[Any]) -> list[Any]:
    filters = [operation for operation in operations if isinstance(operation, Filter)]
    return [literal for each in filters for clause in each.condition for literal in clause.literals]


@pytest.mark.slow
def test_a_printed_stream_is_the_same_stream() -> None:
    for seed in range(rounds(2_000)):
        query, _ = drawn(random_stream_case(Random(f"printed {seed}")))
        assert StreamQuery(print_stream(query.root)).bind(query.schema).root is query.root
