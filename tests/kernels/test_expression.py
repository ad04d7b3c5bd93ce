"""One test a rule of the semantics page §2: values, NULL, undefined, missing. Each runs on three evaluators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.kernels.conftest import Kernels
from tests.kernels.running import Stream

from kleene.engine.intake.strings import StringPool
from kleene.kernels import opcodes as op
from kleene.pattern.query import Query
from kleene.pattern.schema import Schema

TYPES = {
    "i": pa.int64(),
    "j": pa.int64(),
    "f": pa.float64(),
    "g": pa.float64(),
    "p": pa.bool_(),
    "s": pa.string(),
    "u": pa.string(),
    "t": pa.timestamp("us"),
    "seconds": pa.timestamp("s"),
    "day": pa.date32(),
    "d": pa.duration("ms"),
    "money": pa.decimal128(10, 2),
}
MOST, LEAST = 2**63 - 1, -(2**63)
NAN, INF = float("nan"), float("inf")
Row = Mapping[str, Any]
Holds = Callable[..., bool]


@pytest.fixture
def holds(compiled: Kernels, plain: Kernels) -> Holds:
    """Whether a condition holds of the events `a` (several) and `b`; all three evaluators must say the same.

    An event is of type A, which has all attributes, unless it says otherwise; type B has only `i` and `s`.
    """

    def evaluate(where: str, *, a: list[Row] | None = None, b: Row | None = None, **params: Any) -> bool:
        rows = [*(a or []), *([] if b is None else [b])]
        columns = {name: pa.array([row.get(name) for row in rows], kind) for name, kind in TYPES.items()}
        columns["type"] = pa.array([row.get("type", "A") for row in rows], pa.string())
        columns["ts"] = pa.array(range(len(rows)), pa.int64())
        stream = Stream(pa.table(columns), Schema(types={"A": list(TYPES), "B": ["i", "s"]}))
        query = Query(f"PATTERN SEQ(ANY(A, B)+ a[], ANY(A, B)? b) WHERE {where} WITHIN 100", params=params)
        clauses = query.bind(stream.schema).conditions.positive
        count = len(a or [])
        environment = stream.environment(
            {"a": range(count), "b": [] if b is None else [count]}, count - 1 if a else None
        )
        answers = {
            "reference": stream.expected(clauses, [environment]),
            "compiled": stream.found(compiled, clauses, [environment]),
            "plain": stream.found(plain, clauses, [environment]),
        }
        assert answers["compiled"] == answers["plain"] == answers["reference"], (where, answers)
        return answers["compiled"][0]

    return evaluate


# Comparisons


def test_integers_are_exact_to_64_bits(holds: Holds) -> None:
    assert holds("b.i > b.j", b={"i": 2**53 + 1, "j": 2**53})
    assert holds("b.i < b.j", b={"i": MOST - 1, "j": MOST})
    assert not holds("b.i = b.j", b={"i": LEAST, "j": LEAST + 1})


def test_an_integer_is_not_rounded_beside_a_real(holds: Holds) -> None:
    assert not holds("b.i = b.f", b={"i": 2**53 + 1, "f": 2.0**53})
    assert holds("b.i > b.f", b={"i": 2**53 + 1, "f": 2.0**53})
    assert holds("b.f < b.i", b={"i": 2**53 + 1, "f": 2.0**53})
    assert holds("b.i < b.f", b={"i": MOST, "f": 2.0**63})
    assert holds("b.i = b.f", b={"i": LEAST, "f": -(2.0**63)})
    assert holds("b.i > b.f", b={"i": -1, "f": -1.5})
    assert holds("b.i != 2.5 and b.i > 2.5 and b.i < 3.5", b={"i": 3})


def test_a_constant_beside_another_kind_of_number(holds: Holds) -> None:
    assert holds("b.f = 5 and b.i = 5.0", b={"f": 5.0, "i": 5})
    assert not holds("b.f = :whole", b={"f": 2.0**53}, whole=2**53 + 1)
    assert not holds("b.i >= :real", b={"i": MOST}, real=2.0**63)
    assert holds("b.i < :real", b={"i": MOST}, real=INF)
    assert not holds("b.i != :real", b={"i": 1}, real=NAN)


def test_nan_compares_false(holds: Holds) -> None:
    for operator in ("=", "!=", "<", "<=", ">", ">="):
        assert not holds(f"b.f {operator} b.g", b={"f": NAN, "g": NAN})
        assert not holds(f"b.f {operator} 1.5", b={"f": NAN})
        assert not holds(f"b.i {operator} b.f", b={"i": 1, "f": NAN})


def test_infinity_and_zeros(holds: Holds) -> None:
    assert holds("b.f > b.i and b.f > b.g", b={"f": INF, "i": MOST, "g": 1e308})
    assert holds("b.f = b.g", b={"f": 0.0, "g": -0.0})


def test_booleans_and_strings(holds: Holds) -> None:
    assert holds("b.p and b.s = 'x'", b={"p": True, "s": "x"})
    assert holds("not b.p and b.s != 'x'", b={"p": False, "s": "X"})
    assert holds("b.s = a[1].u", a=[{"u": "gleich"}], b={"s": "gleich"})


def test_strings_are_ordered_by_code_point(holds: Holds) -> None:
    assert holds("b.s < b.u", b={"s": "Z", "u": "a"})
    assert holds("b.s < b.u", b={"s": "\uffff", "u": "😀"})  # the other way round in UTF-16
    assert holds("b.s < 'é' and b.s >= 'e'", b={"s": "e\u0301"})
    assert holds("b.s < b.u", b={"s": "", "u": "\0"})


def test_contains(holds: Holds) -> None:
    assert holds("b.s CONTAINS 'oog'", b={"s": "Google"})
    assert holds("not b.s CONTAINS 'OOG'", b={"s": "Google"})
    assert holds("b.s CONTAINS ''", b={"s": ""})
    assert holds("'Google' CONTAINS b.s", b={"s": "le"})
    assert not holds("'Google' CONTAINS b.s", b={"s": "el"})
    assert holds("b.s CONTAINS '語'", b={"s": "日本語"})


def test_contains_and_null_or_missing(holds: Holds) -> None:
    assert not holds("b.s CONTAINS 'x'", b={"s": None})
    assert not holds("not b.s CONTAINS 'x'", b={"s": None})
    assert holds("b.u CONTAINS 'x'", b={"type": "B"})
    assert holds("not b.u CONTAINS 'x'", b={"type": "B"})
    assert not holds("b.s CONTAINS :nothing", b={"s": "x"}, nothing=None)


# Times


def test_times_of_different_units_compare_exactly(holds: Holds) -> None:
    noon = datetime(2024, 1, 31, 12)
    assert holds("b.t = b.seconds", b={"t": noon, "seconds": noon})
    assert holds("b.t > b.seconds", b={"t": noon + timedelta(microseconds=1), "seconds": noon})
    assert holds("b.day < b.t and b.day + 1 day > b.t", b={"day": noon.date(), "t": noon})
    assert holds("b.t = TIMESTAMP '2024-01-31T12:00:00'", b={"t": noon})


def test_times_beyond_nanoseconds(holds: Holds) -> None:
    far = datetime(9999, 12, 31, 23, 59, 59)
    assert holds("b.t = TIMESTAMP '9999-12-31T23:59:59'", b={"t": far})
    assert holds("b.t > b.seconds", b={"t": far, "seconds": datetime(1, 1, 1)})
    assert holds("b.t - b.seconds = 1 second", b={"t": far, "seconds": far - timedelta(seconds=1)})
    # The moment itself is no 64-bit number of nanoseconds, so computing one is undefined.
    assert not holds("b.t + 1 second > b.seconds", b={"t": far, "seconds": far})


def test_durations(holds: Holds) -> None:
    noon = datetime(2024, 1, 31, 12)
    assert holds("b.t - b.seconds < 10 minutes", b={"t": noon + timedelta(minutes=9), "seconds": noon})
    assert holds("b.d = 1500 msec and -b.d < b.d and b.d + b.d = 3 seconds", b={"d": timedelta(seconds=1.5)})
    assert holds("b.t + b.d > b.t", b={"t": noon, "d": timedelta(milliseconds=1)})


# Arithmetic


def test_overflow_is_undefined(holds: Holds) -> None:
    assert not holds("b.i + 1 > 0 or b.i + 1 <= 0", b={"i": MOST})
    assert not holds("b.i - 1 > 0 or b.i - 1 <= 0", b={"i": LEAST})
    assert not holds("b.i * b.j > 0 or b.i * b.j <= 0", b={"i": -1, "j": LEAST})
    assert not holds("-b.i > 0 or -b.i <= 0", b={"i": LEAST})
    assert holds("b.i * b.j = b.i - 1 + 1", b={"i": LEAST + 1, "j": 1})


def test_division_is_real(holds: Holds) -> None:
    assert holds("b.i / b.j = 3.5", b={"i": 7, "j": 2})
    assert holds("b.i / 2 > 3.4", b={"i": 7})


def test_modulo_takes_the_sign_of_the_dividend(holds: Holds) -> None:
    assert holds("b.i % b.j = -1", b={"i": -7, "j": 3})
    assert holds("b.i % b.j = 1", b={"i": 7, "j": -3})
    assert holds("b.i % b.j = 0", b={"i": LEAST, "j": -1})
    assert holds("b.f % b.g = -1.5", b={"f": -7.5, "g": 2.0})
    assert holds("b.f % b.g = 5", b={"f": 5.0, "g": INF})


def test_by_zero_is_undefined(holds: Holds) -> None:
    for sign in ("/", "%"):
        assert not holds(f"b.i {sign} b.j = 0 or b.i {sign} b.j != 0", b={"i": 1, "j": 0})
        assert not holds(f"b.f {sign} b.g = 0 or b.f {sign} b.g != 0", b={"f": 1.0, "g": 0.0})


def test_what_is_not_finite_is_undefined(holds: Holds) -> None:
    assert not holds("b.f * 10 > 0", b={"f": 1e308})
    assert not holds("b.f + 1 > 0", b={"f": INF})
    assert not holds("b.f % 2 >= 0 or b.f % 2 < 0", b={"f": INF})
    assert holds("1 / b.f = 0", b={"f": INF})


# NULL, undefined, missing


def test_null_makes_a_comparison_unknown(holds: Holds) -> None:
    for operator in ("=", "!=", "<", ">="):
        assert not holds(f"b.i {operator} 1", b={"i": None})
        assert not holds(f"b.f {operator} b.g", b={"f": 1.0})
        assert not holds(f"b.i {operator} NULL", b={"i": 1})
    assert not holds("b.s < 'x' or b.s >= 'x' or b.p or not b.p", b={})


def test_null_spreads_through_arithmetic_and_undefined_goes_first(holds: Holds) -> None:
    assert holds("b.i + b.j IS NULL", b={"i": 1})
    assert not holds("b.i / b.j IS NULL or b.i / b.j IS NOT NULL", b={"i": 1, "j": 0})
    assert not holds("a[1].i + b.i / b.j IS NULL", a=[{"i": None}], b={"i": 1, "j": 0})
    assert not holds("b.i / b.j + a[1].i IS NULL", a=[{"i": None}], b={"i": 1, "j": 0})


def test_missing_makes_a_comparison_true_before_all_else(holds: Holds) -> None:
    assert holds("b.j = 1 and b.j != 1", b={"type": "B"})
    assert holds("b.j = NULL", b={"type": "B"})
    assert holds("b.j > b.i / 0", b={"type": "B", "i": 1})
    assert holds("b.j + b.i / 0 = 1", b={"type": "B", "i": 1})
    assert holds("b.j + b.i = 1", b={"type": "B", "i": None})
    assert holds("b.j = b.f", b={"type": "B", "f": NAN})


def test_an_absent_variable_is_missing(holds: Holds) -> None:
    assert holds("b.i = 1 and b.i != 1", a=[{}])
    assert holds("b.s < a[1].s", a=[{"s": None}])


def test_is_null_sees_missing_as_null(holds: Holds) -> None:
    assert holds("b.j IS NULL", b={"type": "B", "j": 5})
    assert not holds("b.j IS NOT NULL", b={"type": "B", "j": 5})
    assert holds("b.i IS NOT NULL", b={"i": 5})
    assert holds("b.i IS NULL", a=[{}])


def test_what_no_array_holds_can_still_be_null(holds: Holds) -> None:
    assert holds("b.money IS NULL and count(a.money) = 1", a=[{"money": 1}, {}], b={"money": None})
    assert holds("b.money IS NOT NULL", b={"money": 1})


# Clauses


def test_clauses_and_literals(holds: Holds) -> None:
    row = {"i": 5, "f": 0.5}
    assert holds("(b.i = 1 or b.i = 5) and (b.f > 1 or b.f < 1)", b=row)
    assert not holds("(b.i = 1 or b.i = 2) and b.f < 1", b=row)
    assert not holds("b.f < 1 and (b.i = 1 or b.i = 2)", b=row)
    assert holds("b.i IN (1, 2, 5) and b.f BETWEEN 0 and 1", b=row)
    assert holds("b.i = 1 or TRUE", b=row)
    assert not holds("(b.i = 1 or FALSE) and TRUE", b=row)
    assert not holds("FALSE", b=row)


def test_deep_expressions(holds: Holds) -> None:
    """As many values on the stack as there are parentheses."""
    assert holds(f"{'1 + (' * 40}b.i{')' * 40} = 42", b={"i": 2})


# Aggregates


def test_aggregates(holds: Holds) -> None:
    a = [{"i": 3, "s": "b", "f": 0.5}, {"i": None, "s": "ä"}, {"i": 10, "s": "a", "f": 2.0}]
    assert holds("count(a) = 3 and count(a.i) = 2 and a.LEN = 3", a=a)
    assert holds("sum(a.i) = 13 and avg(a.i) = 6.5 and min(a.i) = 3 and max(a.i) = 10", a=a)
    assert holds("first(a.i) = 3 and last(a.i) = 10 and sum(a.f) = 2.5 and avg(a.f) = 1.25", a=a)
    assert holds("min(a.s) = 'a' and max(a.s) = 'ä' and first(a.s) = 'b' and last(a.s) = 'a'", a=a)
    assert holds("max(a.s) CONTAINS 'ä' and min(a.s) < last(a.u)", a=[*a, {"u": "b"}])


def test_aggregates_of_nothing(holds: Holds) -> None:
    assert holds("count(a) = 0 and count(a.i) = 0", b={})
    assert holds("sum(a.i) = 1 and sum(a.i) != 1 and avg(a.f) = 1 and first(a.s) = 'x'", b={})
    assert holds("sum(a.i) IS NULL and avg(a.i) IS NULL and max(a.s) IS NULL", a=[{}, {}])
    assert not holds("sum(a.i) = 0 or avg(a.i) = 0", a=[{}, {}])


def test_a_sum_that_overflowed_stays_undefined(holds: Holds) -> None:
    a = [{"i": MOST}, {"i": 1}, {"i": -1}]
    assert not holds("sum(a.i) = 0 or sum(a.i) != 0 or sum(a.i) IS NULL or avg(a.i) > 0", a=a)
    assert holds("sum(a.i) = :most", a=[a[0], a[2], a[1]], most=MOST)


def test_reals_are_added_in_order(holds: Holds) -> None:
    assert holds("sum(a.f) = 1", a=[{"f": 1e16}, {"f": -1e16}, {"f": 1.0}])
    assert holds("sum(a.f) = 0", a=[{"f": 1e16}, {"f": 1.0}, {"f": -1e16}])
    assert not holds("sum(a.f) >= 0 or sum(a.f) < 0", a=[{"f": INF}, {"f": 1.0}])


def test_nan_has_no_place_in_an_order(holds: Holds) -> None:
    assert not holds("min(a.f) <= 1 or max(a.f) >= 1", a=[{"f": 1.0}, {"f": NAN}, {"f": 1.0}])
    assert holds("first(a.f) = 1 and count(a.f) = 2", a=[{"f": 1.0}, {"f": NAN}])


def test_times_and_booleans_in_aggregates(holds: Holds) -> None:
    moments = [{"t": datetime(2024, 1, day), "p": day == 1} for day in (2, 1, 3)]
    assert holds("max(a.t) - min(a.t) = 2 days and first(a.p) = FALSE and last(a.p) = FALSE", a=moments)
    assert holds("min(a.t) = TIMESTAMP '2024-01-01T00:00:00'", a=moments)


def test_all_that_have_an_attribute_agree(holds: Holds) -> None:
    """`[j]` where type B has no `j`: each event agrees with all before it that have it."""
    assert holds("[j]", a=[{"j": 5}, {"type": "B"}, {"j": 5}], b={"j": 5})
    assert not holds("[j]", a=[{"type": "B"}, {"j": 5}], b={"j": 6})
    assert holds("[j]", a=[{"type": "B"}, {"type": "B"}], b={"j": 6})
    assert not holds("[j]", a=[{"j": None}, {"type": "B"}], b={"j": 6})
    assert not holds("[u]", a=[{"u": "x"}, {"type": "B"}, {"u": "y"}], b={"u": "x"})
    assert not holds("[f]", a=[{"f": NAN}, {"type": "B"}], b={"f": NAN})


# Arrays


def test_states_are_ordered_as_they_spread() -> None:
    assert op.VALUE < op.NULL < op.UNDEFINED < op.MISSING


def test_a_mask_is_the_same_over_blocks_of_any_length(compiled: Kernels) -> None:
    for rows in (0, 1, 511, 512, 513, 1500):
        values = np.arange(rows) % 7
        table = pa.table({"type": ["A"] * rows, "ts": range(rows), "x": pa.array(values, pa.int64())})
        table = table.cast(pa.schema([("type", pa.string()), ("ts", pa.int64()), ("x", pa.int64())]))
        stream = Stream(table, strings=StringPool())
        clauses = Query("PATTERN A a WHERE a.x > 2 and (a.x < 5 or a.x = 6)").bind(stream.schema).conditions.positive
        assert stream.mask(compiled, clauses) == [value in (3, 4, 6) for value in values.tolist()]


def test_zoned_times(compiled: Kernels, plain: Kernels) -> None:
    moments = [datetime(2024, 1, 31, 12, tzinfo=UTC), datetime(2024, 1, 31, 13, tzinfo=UTC)]
    table = pa.table({"type": ["A", "A"], "ts": [1, 2], "z": pa.array(moments, pa.timestamp("ms", "Europe/Paris"))})
    stream = Stream(table)
    query = Query("PATTERN A a WHERE a.z > TIMESTAMP '2024-01-31T13:30:00+01:00'")
    clauses = query.bind(stream.schema).conditions.positive
    assert stream.mask(compiled, clauses) == stream.mask(plain, clauses) == [False, True]
