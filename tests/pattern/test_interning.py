"""Nodes exist once, keep what Python would blur apart, and hash the same in every process."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from threading import Thread

import pytest

from kleene.pattern import Query, Schema
from kleene.pattern.expressions import Attribute, Comparison, Constant, Which
from kleene.pattern.types import ValueType

TEXT = "PATTERN SEQ(A a, B+ b[]) WHERE a.x > 5 AND b[i].x > b[i-1].x WITHIN 10"


def test_equal_nodes_are_the_same_object() -> None:
    left = Comparison("=", Attribute("a", Which.SINGLE, "x", ValueType.INT), Constant(5, ValueType.INT))
    right = Comparison("=", Attribute("a", Which.SINGLE, "x", ValueType.INT), Constant(5, ValueType.INT))
    assert left is right


def test_python_takes_these_for_equal_and_a_query_does_not() -> None:
    constants = [Constant(1, ValueType.INT), Constant(1.0, ValueType.FLOAT), Constant(True, ValueType.BOOL)]
    assert len({id(constant) for constant in constants}) == 3
    assert Constant(0.0, ValueType.FLOAT) is not Constant(-0.0, ValueType.FLOAT)


def test_two_bindings_share_their_parts() -> None:
    first, second = Query(TEXT).bind(), Query(TEXT.replace("WITHIN 10", "WITHIN 99")).bind()
    assert first.pattern is second.pattern
    assert first.conditions.positive[0] is second.conditions.positive[0]


def test_unpickled_nodes_are_the_same_object() -> None:
    clause = Query(TEXT).bind().conditions.positive[0]
    assert pickle.loads(pickle.dumps(clause)) is clause


def test_threads_agree_on_one_node() -> None:
    made: list[Constant] = []
    threads = [Thread(target=lambda: made.append(Constant(12345, ValueType.INT))) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(constant) for constant in made}) == 1


def test_digests_are_the_same_in_another_process() -> None:
    code = f"from kleene import Query; b = Query({TEXT!r}).bind(); print(b.pattern.digest.hex(), b.digest.hex())"
    here = Query(TEXT).bind(Schema())
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert there == [here.pattern.digest.hex(), here.digest.hex()]


@pytest.mark.parametrize("many", [3, 40])
def test_a_set_has_the_same_digest_in_every_process(many: int) -> None:
    """Python draws the order of strings in a set anew for each process, unless it is told a seed."""
    code = (
        f"from kleene import Query; names = {{f'v{{n}}' for n in range({many})}}\n"
        "b = Query('PATTERN A a WHERE a.s IN :names', params={'names': names}).bind()\n"
        "print(list(names), b.digest.hex(), b.conditions.positive[0].digest.hex(), sep='|')"
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.partition("|")
        for seed in ("1", "2")
    ]
    assert said[0][0] != said[1][0], "the sets differ in their order"
    assert said[0][2] == said[1][2]


def test_spelling_does_not_change_the_digest() -> None:
    other = "event seq(A a, B+ b[]) where a.x>5 ∧ b[i].x > b[i-1].x /* the same */ within 10 units"
    assert Query(other).bind().digest == Query(TEXT).bind().digest


def test_parameters_and_classes_change_the_digest() -> None:
    text = "PATTERN A a WHERE a.x > :x"
    assert Query(text, params={"x": 1}).bind().digest != Query(text, params={"x": 2}).bind().digest
    one, two = Schema(classes={"A": "S WHERE y = 1"}), Schema(classes={"A": "S WHERE y = 2"})
    plain = Query("PATTERN A a")
    assert plain.bind(one).digest != plain.bind(two).digest
