"""The normal form of unary operations (CESAR §3.4, Theorem 3): each rule by texts, all of them on random streams."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.soaking import rounds
from tests.streams.agreement import pairs_of

from kleene.algebra.nodes import Compute, Filter, Fold, Project, Rename, chain, walk
from kleene.algebra.printing import print_stream
from kleene.algebra.query import StreamQuery
from kleene.optimize.streams.normal_form import RULES, normal_form
from kleene.pattern.schema import Schema
from kleene.reference.streams import StreamEvaluator

SCHEMA = Schema(columns={"type": "string", "ts": "int", "k": "int", "x": "int", "y": "float", "s": "string"})
TEXTS = [block.strip().splitlines() for block in Path(__file__).with_name("rules.txt").read_text().split("\n\n")]
STREAMS = rounds(6_000, share=50)
_PLACES = (Project, Compute, Rename, Filter)


@pytest.mark.parametrize(("name", "before", "after"), TEXTS, ids=[lines[0][3:] for lines in TEXTS])
def test_a_rule(name: str, before: str, after: str) -> None:
    assert print_stream(normal_form(StreamQuery(before).bind(SCHEMA).root)) == after


def test_every_rule_has_a_text() -> None:
    assert {rule.__name__ for rule in RULES} == {lines[0][3:].split()[0].rstrip(":") for lines in TEXTS[:-1]}


@pytest.mark.slow
def test_the_normal_form_is_the_same_stream(record_property: Any) -> None:
    changed = results = 0
    for seed in range(STREAMS):
        pair = next(pairs_of("nested", 20_000 + seed))
        root = pair.bound.root
        normal = normal_form(root)
        assert normal.schema is root.schema
        expected = sorted(event.key for event in pair.result.events)
        assert [event.key for event in StreamEvaluator(pair.timeline).evaluate(normal)] == expected, print_stream(root)
        for node in walk(normal):
            for top in (node, node.step) if isinstance(node, Fold) else (node,):
                places = [_PLACES.index(type(operation)) for operation in chain(top)[0]]
                assert places == sorted(set(places)), print_stream(top)
        changed += normal is not root
        results += bool(expected)
    record_property("counted", f"normal form = stream: {STREAMS} streams, {changed} changed, {results} with results")
    assert changed > STREAMS / 5


@pytest.mark.slow
def test_a_printed_stream_is_the_same_stream() -> None:
    for seed in range(rounds(2_000, share=50)):
        query = next(pairs_of("nested", 30_000 + seed)).bound
        assert StreamQuery(print_stream(query.root)).bind(query.schema).root is query.root
