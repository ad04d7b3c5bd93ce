"""The expression machine, compiled and not, against the reference evaluator on random conditions and events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
from tests.kernels.conftest import Kernels
from tests.kernels.running import Stream
from tests.soaking import least, rounds

from kleene.engine.intake.strings import StringPool
from kleene.pattern.expressions import (
    Aggregate,
    Agrees,
    Arithmetic,
    Attribute,
    Clause,
    Comparison,
    Constant,
    Contains,
    IsNull,
    Literal,
    Negative,
    Scope,
    Truth,
    Value,
    Which,
)
from kleene.pattern.schema import Schema
from kleene.pattern.types import ValueType
from kleene.reference.timeline import ReferenceEvent, ReferenceTimeline
from kleene.reference.values import Environment, Special, evaluate, literal_holds

TABLES, CLAUSES, ENVIRONMENTS = rounds(240), 60, 4

_EDGE = 2**63
_INTS = [0, 1, -1, 2, 3, 5, -7, 500, 2**31, 2**53, 2**53 + 1, -(2**53) - 1, 3_037_000_500, 2**62]
_INTS += [_EDGE - 1, -_EDGE, -_EDGE + 1, _EDGE - 2]
_REALS = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, 5.0, -7.0, 2.0**53, 2.0**63, -(2.0**63), 9.3e18, 1e308, 5e-324]
_REALS += [float("nan"), float("inf"), float("-inf")]
_STRINGS = [
    "",
    "a",
    "b",
    "ab",
    "abc",
    "Google",
    "google",
    "Ä",
    "é",
    "e\u0301",
    "z",
    "日本",
    "日本語",
    "😀",
    "\uffff",
    "a\0b",
]
_YEAR_9999 = 253_402_300_799 * 10**9
_TIMES = [0, 1, -1, 999, 1000, 86_400 * 10**9, 1_700_000_000 * 10**9, 1_700_000_000 * 10**9 + 1, _YEAR_9999]
_TIMES += [-62_135_596_800 * 10**9, _EDGE - 1, -_EDGE, _EDGE // 1000 * 1000 + 1000]
_DURATIONS = [
    0,
    1,
    999,
    1000,
    -1000,
    10**9,
    86_400 * 10**9,
    -86_400 * 10**9,
    _EDGE - 1,
    -_EDGE,
    400 * 365 * 86_400 * 10**9,
]

_STEP = {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}
# Columns by the type of their values.
_COLUMNS: dict[ValueType, dict[str, pa.DataType]] = {
    ValueType.INT: {
        "i": pa.int64(),
        "j": pa.int64(),
        "small": pa.int16(),
        "coded": pa.dictionary(pa.int8(), pa.int64()),
    },
    ValueType.FLOAT: {"f": pa.float64(), "g": pa.float64(), "single": pa.float32()},
    ValueType.BOOL: {"p": pa.bool_(), "q": pa.bool_()},
    ValueType.STRING: {"s": pa.string(), "u": pa.dictionary(pa.int32(), pa.string()), "w": pa.large_string()},
    ValueType.TIMESTAMP: {f"t_{unit}": pa.timestamp(unit) for unit in _STEP} | {"day": pa.date32()},
    ValueType.ZONED: {"z_us": pa.timestamp("us", "UTC"), "z_ns": pa.timestamp("ns", "UTC")},
    ValueType.DURATION: {f"d_{unit}": pa.duration(unit) for unit in _STEP},
    ValueType.DECIMAL: {"money": pa.decimal128(20, 2)},
    ValueType.NULL: {"nothing": pa.null()},
}
_ARROW = {name: kind for columns in _COLUMNS.values() for name, kind in columns.items()}
_COMPARED = [kind for kind in _COLUMNS if kind not in (ValueType.DECIMAL, ValueType.NULL)]
_ORDERED = [kind for kind in _COMPARED if kind is not ValueType.BOOL]


def _table(draw: Random) -> pa.Table:
    size = 24
    table = {
        "type": pa.array(draw.choices(["A", "B", "C", None], [6, 3, 1, 1], k=size), pa.string()),
        "ts": pa.array(range(size), pa.int64()),
    }
    for name, kind in _ARROW.items():
        nulls = draw.choice([0.0, 0.2])
        values = [None if draw.random() < nulls else _cell(draw, kind) for _ in range(size)]
        table[name] = pa.array(values, kind) if not pa.types.is_dictionary(kind) else _encoded(values, kind)
    made = pa.table(table)
    return pa.concat_tables([made.slice(0, 7), made.slice(7)])


def _encoded(values: list[Any], kind: pa.DataType) -> pa.Array:
    return pa.array(values, kind.value_type).dictionary_encode().cast(kind)


def _cell(draw: Random, kind: pa.DataType) -> Any:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_null(kind):
        return None
    if pa.types.is_boolean(kind):
        return draw.random() < 0.5
    if pa.types.is_floating(kind):
        return draw.choice(_REALS) if kind == pa.float64() else draw.choice([0.1, 1.0, -0.0, float("nan"), 2.0**53])
    if pa.types.is_decimal(kind):
        return Decimal(draw.choice(["1.50", "0.00", "-7.25"]))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return draw.choice(_STRINGS)
    if pa.types.is_date(kind):
        return draw.choice([0, 1, -1, 19_675, 2_932_896])
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        known = _TIMES if pa.types.is_timestamp(kind) else _DURATIONS
        whole = draw.choice(known) // _STEP[kind.unit]
        far = [_EDGE - 1, -_EDGE] if draw.random() < 0.1 else [whole]
        return draw.choice([value for value in far if -_EDGE <= value < _EDGE] or [0])
    return draw.choice(_INTS) if kind == pa.int64() else draw.choice([0, 1, -1, 5, 500])


# Conditions ----------------------------------------------------------------------------------------------------------


_IDENTIFIERS = (
    *(("a", which) for which in (Which.FIRST, Which.LAST, Which.PREVIOUS, Which.CURRENT)),
    *[("b", Which.SINGLE)] * 3,
    *(("c", Which.SINGLE), ("", Which.SINGLE), ("d", Which.MEMBER)),
)


@dataclass
class _Speaker:
    """Draws conditions on `a` (a Kleene variable), `b` and `c`."""

    draw: Random
    identifiers: tuple[tuple[str, Which], ...] = _IDENTIFIERS
    aggregates: bool = True

    def clause(self) -> Clause:
        return Clause(tuple(self.literal() for _ in range(self.draw.choice([1, 1, 1, 2, 3]))))

    def literal(self) -> Literal:
        draw = self.draw
        match draw.choices(["compare", "null", "contains", "agrees", "truth"], [14, 2, 2, float(self.aggregates), 0.3])[
            0
        ]:
            case "null":
                kind = draw.choice(list(_COLUMNS))
                operand = self.attribute(kind) if kind is ValueType.DECIMAL else self.value(kind)
                return IsNull(operand, draw.random() < 0.5)
            case "contains":
                sides = [
                    self.value(ValueType.STRING, depth=0),
                    Constant(draw.choice([*_STRINGS, None]), ValueType.STRING),
                ]
                if draw.random() < 0.3:
                    sides.reverse()
                if draw.random() < 0.1:
                    sides[1] = self.attribute(ValueType.NULL)
                return Contains(sides[0], sides[1], draw.random() < 0.5)
            case "agrees":
                kind = draw.choice(_COMPARED)
                left = self.attribute(kind)
                return Agrees(left, "a", draw.choice(list(Scope)), left.attribute)
            case "truth":
                return Truth(draw.random() < 0.3)
        operator = draw.choice(["=", "=", "!=", "<", "<=", ">", ">="])
        kind = draw.choice(_COMPARED if operator in ("=", "!=") else _ORDERED)
        other: ValueType = kind
        if kind in (ValueType.INT, ValueType.FLOAT):
            other = draw.choice([ValueType.INT, ValueType.FLOAT])
        if draw.random() < 0.05 and (kind is not ValueType.BOOL or operator in ("=", "!=")):
            other = ValueType.NULL
        return Comparison(operator, self.value(kind), self.value(other))

    def value(self, kind: ValueType, depth: int = 2) -> Value:
        ways: list[Callable[[], Value]] = [lambda: self.attribute(kind)] * 3
        ways += [lambda: self.constant(kind)] * 2
        ways += [lambda: self.aggregate(kind)] * self.aggregates
        if depth > 0 and kind not in (ValueType.BOOL, ValueType.STRING):
            ways += [lambda: self.arithmetic(kind, depth - 1)] * 3
        return self.draw.choice(ways)()

    def attribute(self, kind: ValueType) -> Attribute:
        name = self.draw.choice(list(_COLUMNS[kind]))
        variable, which = self.draw.choice(self.identifiers)
        return Attribute(variable, which, name, kind)

    def constant(self, kind: ValueType) -> Constant:
        known: dict[ValueType, Sequence[Any]] = {
            ValueType.INT: _INTS,
            ValueType.FLOAT: _REALS,
            ValueType.BOOL: [True, False],
            ValueType.STRING: _STRINGS,
            ValueType.TIMESTAMP: _TIMES,
            ValueType.ZONED: _TIMES,
            ValueType.DURATION: _DURATIONS,
        }
        return Constant(self.draw.choice(known.get(kind, [None])), kind)

    def aggregate(self, kind: ValueType) -> Aggregate:
        scope = self.draw.choice(list(Scope))
        name = self.draw.choice(list(_COLUMNS[kind]))
        if kind is ValueType.INT and self.draw.random() < 0.4:
            counted = self.draw.choice([None, *_ARROW])
            return Aggregate("count", "a", scope, counted, kind)
        if kind is ValueType.FLOAT and self.draw.random() < 0.4:
            averaged = self.draw.choice([*_COLUMNS[ValueType.INT], *_COLUMNS[ValueType.FLOAT]])
            return Aggregate("avg", "a", scope, averaged, kind)
        functions = ["first", "last"]
        if kind is not ValueType.BOOL:
            functions += ["min", "max"]
        if kind in (ValueType.INT, ValueType.FLOAT):
            functions += ["sum"] * 3
        return Aggregate(self.draw.choice(functions), "a", scope, name, kind)

    def arithmetic(self, kind: ValueType, depth: int) -> Value:
        draw = self.draw
        int_, real, moment, length = ValueType.INT, ValueType.FLOAT, ValueType.TIMESTAMP, ValueType.DURATION
        if draw.random() < 0.15 and kind not in (moment, ValueType.ZONED):
            return Negative(self.value(kind, depth), kind)
        if kind is length:
            at = draw.choice([moment, ValueType.ZONED])
            operator, left, right = draw.choice([("-", at, at), ("+", length, length), ("-", length, length)])
        elif kind in (moment, ValueType.ZONED):
            operator, left, right = draw.choice([("-", kind, length), ("+", kind, length), ("+", length, kind)])
        elif kind is int_:
            operator, left, right = draw.choice("+-*%"), int_, int_
        elif kind is real:
            left, right = draw.choice([(int_, int_), (int_, real), (real, int_), (real, real)])
            operator = "/" if left is right is int_ else draw.choice("+-*/%")
        else:
            other = draw.choice([int_, real])
            operator, (left, right) = draw.choice("+-*/%"), draw.choice([(kind, other), (other, kind)])
        return Arithmetic(operator, self.value(left, depth), self.value(right, depth), kind)


# Events --------------------------------------------------------------------------------------------------------------


def _schema(draw: Random) -> Schema:
    """Type A has everything, B lacks some columns, C is declared to have few."""
    names = list(_ARROW)
    if draw.random() < 0.4:
        return Schema()
    return Schema(types={"A": names, "B": draw.sample(names, len(names) * 3 // 4), "C": draw.sample(names, 5)})


def _environment(draw: Random, timeline: ReferenceTimeline) -> Environment:
    """Some events selected for each variable; some variables absent."""

    def some(*numbers: int) -> tuple[ReferenceEvent, ...]:
        return tuple(draw.choices(timeline.events, k=draw.choice(numbers)))

    selected = {"a": some(0, 1, 2, 3, 4, 5), "b": some(1), "c": some(0, 1, 1, 1), "": some(1)}
    return Environment(timeline, selected, draw.choice([None, *some(5)]))


def test_machine_agrees_with_the_reference(compiled: Kernels, plain: Kernels) -> None:
    draw = Random(20_241)
    strings = StringPool()
    seen: Counter[str] = Counter()
    for _ in range(TABLES):
        stream = Stream(_table(draw), _schema(draw), strings)
        speaker = _Speaker(draw)
        for _ in range(CLAUSES):
            clauses = [speaker.clause() for _ in range(draw.choice([1, 1, 1, 2]))]
            environments = [_environment(draw, stream.timeline) for _ in range(ENVIRONMENTS)]
            expected = stream.expected(clauses, environments)
            for kernels in (compiled, plain):
                found = stream.found(kernels, clauses, environments)
                wrong = [e for e, got, want in zip(environments, found, expected, strict=True) if got != want]
                assert not wrong, _shown(clauses, wrong[0])
            seen.update(str(truth).lower() for truth in expected)
            literals = [literal for clause in clauses for literal in clause.literals]
            seen.update(_outcome(literal, environment) for literal in literals for environment in environments)
    print("\n".join(f"{count:6} {outcome}" for outcome, count in sorted(seen.items())))
    assert min(seen["true"], seen["false"]) > least(5_000)


def test_masks_agree_with_the_reference(compiled: Kernels, plain: Kernels) -> None:
    draw = Random(20_242)
    strings = StringPool()
    seen: Counter[bool] = Counter()
    for _ in range(rounds(80)):
        stream = Stream(_table(draw), _schema(draw), strings)
        speaker = _Speaker(draw, (("a", Which.FIRST),), aggregates=False)
        environments = [stream.environment({"a": [row]}) for row in range(stream.table.num_rows)]
        for _ in range(CLAUSES):
            clauses = [speaker.clause() for _ in range(draw.choice([1, 2, 3]))]
            expected = stream.expected(clauses, environments)
            for kernels in (compiled, plain):
                assert stream.mask(kernels, clauses) == expected, "\n".join(map(str, clauses))
            seen.update(expected)
    print(dict(seen))
    assert min(seen[True], seen[False]) > least(5_000)


def _outcome(literal: Literal, environment: Environment) -> str:
    """What a literal was about, and what came of it."""
    truth = str(literal_holds(literal, environment)).lower()
    match literal:
        case Comparison(_, left, right):
            states = {_state(evaluate(side, environment)) for side in (left, right)}
            state = next(name for name in ("missing", "undefined", "NULL", "value") if name in states)
            sides = " and ".join(sorted((left.type.value, right.type.value)))
            return f"{sides}: {state}, {truth}"
        case IsNull(operand, negated):
            return f"IS {'NOT ' * negated}NULL: {_state(evaluate(operand, environment))}, {truth}"
    return f"{type(literal).__name__}: {truth}"


def _state(value: Any) -> str:
    return "NULL" if value is None else value.name.lower() if isinstance(value, Special) else "value"


def _shown(clauses: Sequence[Clause], environment: Environment) -> str:
    lines = [*map(str, clauses), f"current: {environment.current}"]
    for variable, events in environment.selected.items():
        lines += [f"{variable}: {event.type} {dict(event.values)}" for event in events]
    return "\n".join(lines)
