"""Clauses to programs: what is written, and what has no program."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from kleene.codegen.aggregates import compile_aggregates
from kleene.codegen.expression import compile_clauses
from kleene.pattern.expressions import Aggregate, Clause, Comparison, Constant, IsNull, Negative, OpenParameter, Scope
from kleene.pattern.query import Query
from kleene.pattern.schema import Schema
from kleene.pattern.types import ValueType
from kleene.plan.layout import Accumulator, Column, Layout
from kleene.plan.program import NotCompilable, Program

COLUMNS = {
    "i": Column(0, 0, ValueType.INT),
    "f": Column(1, 0, ValueType.FLOAT),
    "s": Column(2, 1, ValueType.STRING),
    "u": Column(3, 2, ValueType.STRING),
    "t": Column(4, 3, ValueType.TIMESTAMP, 1_000),
    "money": Column(5, -1, ValueType.DECIMAL),
    "nested": Column(6, -1, ValueType.OTHER),
}


def _clauses(where: str, **params: Any) -> tuple[Clause, ...]:
    schema = Schema(columns={**{name: column.type for name, column in COLUMNS.items()}, "type": "string", "ts": "int"})
    query = Query(f"PATTERN SEQ(A+ a[], B b) WHERE {where} WITHIN 10", params=params)
    return query.bind(schema).conditions.positive


def _program(where: str, **params: Any) -> Program:
    clauses = _clauses(where, **params)
    return compile_clauses(clauses, Layout.of(clauses, COLUMNS))


def test_a_program_for_people() -> None:
    program = _program("(b.i > 5 or b.s = 'x') and b.f * 2 < 1.5")
    assert program.listing().splitlines() == [
        "0 LOAD_INT 0 0 0",
        "4 PUSH_INT 0 0 0",
        "8 COMPARE_INT 28 4 0",
        "12 LOAD_INT 0 1 2",
        "16 PUSH_INT 1 0 0",
        "20 COMPARE_INT 28 2 0",
        "24 FAIL 0 0 0",
        "28 LOAD_REAL 0 0 1",
        "32 PUSH_REAL 0 0 0",
        "36 MULTIPLY_REAL 0 0 0",
        "40 PUSH_REAL 1 0 0",
        "44 COMPARE_REAL 52 1 0",
        "48 FAIL 0 0 0",
    ]
    assert (program.ints.tolist(), program.reals.tolist()) == ([5, 0], [2.0, 1.5])
    assert (program.strings, program.depth, program.columns) == (((1, "x"),), 2, ("f", "i", "s"))


def _operations(where: str, **params: Any) -> list[str]:
    return [line.split()[1] for line in _program(where, **params).listing().splitlines()]


@pytest.mark.parametrize(
    ("where", "operation"),
    [
        ("b.t = TIMESTAMP '2024-01-31T12:00:00'", "COMPARE_INT"),
        ("b.t < b.t + 1 second", "COMPARE_TIME"),
        ("b.i = 5.0", "COMPARE_INT"),
        ("b.i < 5.5", "COMPARE_INT_REAL"),
        ("b.f > b.i", "COMPARE_INT_REAL"),
        ("b.f = 5", "COMPARE_REAL"),
        ("b.f = 9007199254740993", "COMPARE_INT_REAL"),
    ],
)
def test_a_constant_takes_the_kind_of_the_other_side_where_that_loses_nothing(where: str, operation: str) -> None:
    assert operation in _operations(where)


def test_only_the_order_of_strings_asks_for_ranks() -> None:
    assert not _program("b.s = b.u and b.s != 'x'").ordered
    assert _program("b.s < b.u").ordered
    assert not compile_aggregates(Layout.of(_clauses("first(a.s) = 'x'"), COLUMNS)).ordered
    assert compile_aggregates(Layout.of(_clauses("max(a.s) = 'x'"), COLUMNS)).ordered


def test_an_average_is_a_sum_and_a_count() -> None:
    layout = Layout.of(_clauses("avg(a[..].i) > 1 and sum(a[..].i) > 1 and a[i].i > avg(a[..i-1].i)"), COLUMNS)
    assert layout.accumulators == {Accumulator("sum", "a", "i"): 0, Accumulator("count", "a", "i"): 1}


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ("b.money > 5", "decimal"),
        ("b.money + 1 IS NULL", "arithmetic on decimal"),
        ("sum(a.money) > 5", "sum of decimal"),
        ("first(a.money) IS NULL", "first of decimal"),
        ("b.s CONTAINS b.u", "CONTAINS between two attributes"),
        ("b.i = - -9223372036854775808", "beyond 64 bits"),
    ],
)
def test_what_has_no_program_says_why(where: str, reason: str) -> None:
    with pytest.raises(NotCompilable, match=reason):
        _program(where)


def test_an_open_parameter_has_no_program() -> None:
    clause = Clause((Comparison("=", Constant(1, ValueType.INT), OpenParameter("x")),))
    with pytest.raises(NotCompilable, match=":x"):
        compile_clauses([clause], Layout())


def test_what_is_not_in_the_layout_has_no_program() -> None:
    clauses = _clauses("b.i = 1 and count(a) > 1")
    for layout, reason in (
        (Layout(columns=COLUMNS), r"`b` \(x\)"),
        (Layout({("b", clause_which(clauses)): 0}, {}), "column `i`"),
        (Layout({("b", clause_which(clauses)): 0}, COLUMNS), "count of `a`"),
    ):
        with pytest.raises(NotCompilable, match=reason):
            compile_clauses(clauses, layout)


def clause_which(clauses: tuple[Clause, ...]) -> Any:
    return next(iter(Layout.of(clauses[:1], COLUMNS).identifiers))[1]


def test_a_decimal_may_be_null_or_counted() -> None:
    assert _operations("b.money IS NULL and b.nested IS NOT NULL and count(a.money) > 1")[0] == "LOAD_STATE"


def test_a_negated_null_is_null() -> None:
    clause = Clause((IsNull(Negative(Constant(None, ValueType.NULL), ValueType.NULL), False),))
    assert compile_clauses([clause], Layout()).depth == 2


def test_a_program_travels() -> None:
    program = _program("b.s CONTAINS 'x' and b.s < 'y' and sum(a.i) > 1")
    copy: Program = pickle.loads(pickle.dumps(program))
    assert copy.listing() == program.listing()
    assert (copy.strings, copy.tests, copy.groups) == (program.strings, program.tests, program.groups)


def test_slots_by_variable() -> None:
    accumulators: Mapping[Accumulator, int] = {
        Accumulator("count", "a", None): 2,
        Accumulator("max", "c", "f"): 0,
        Accumulator("sum", "a", "i"): 1,
    }
    plan = compile_aggregates(Layout({}, COLUMNS, accumulators))
    assert {name: slots.tolist() for name, slots in plan.slots.items()} == {"a": [1, 2], "c": [0]}
    clause = Clause((IsNull(Aggregate("max", "c", Scope.ALL, "f", ValueType.FLOAT), True),))
    assert compile_clauses([clause], Layout({}, COLUMNS, accumulators)).groups == (0,)


def test_planning_needs_no_compiler() -> None:
    code = (
        "import sys, kleene, kleene.codegen.expression, kleene.plan.program;"
        "sys.exit(bool({'numba', 'pyarrow'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
