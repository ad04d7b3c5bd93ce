"""Which events a query can use, as a Spark condition, so that others are dropped by the JVM and never read from disk.

A condition goes to Spark only where its answer is proven to be ours or weaker; the engine tests again. The proofs:

    NULL         unknown is no match on either side: `where` drops what is NULL
    missing      a comparison that touches an attribute which the event's type lacks is true here, so it is left out
    integers     compared and computed as 64 bits; what overflows is NULL by Spark's `try_…`, and false to us
    reals        IEEE on both sides, but Spark takes NaN for the greatest number and equal to itself. To us every
                 comparison with NaN is false, so Spark's answer is the same or weaker
    mixed        Spark compares an integer with a real as reals, we exactly: only where the integer is exact as a real
    strings      ordered by code point on both sides (UTF-8 keeps that order); a collated column stays out
    booleans     `=` and `!=`
    timestamps   with a constant of whole microseconds, zoned with zoned and local with local
    the rest     decimals, dates, durations, aggregates: stay out
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from kleene.algebra.query import BoundStreamQuery
from kleene.pattern.expressions import (
    Among,
    Arithmetic,
    Attribute,
    Clause,
    Comparison,
    Constant,
    Contains,
    IsNull,
    Literal,
    Negative,
    Truth,
    Value,
    Which,
    references,
)
from kleene.pattern.nodes import Component, ComponentKind, EventClass
from kleene.pattern.query import BoundQuery
from kleene.pattern.schema import STREAM, Schema
from kleene.pattern.types import ValueType
from kleene.plan.streams import InputFormula
from kleene.queries.any_query import AnyBoundQuery
from kleene.spark.conditions import NEVER, Condition, all_of, any_of
from kleene.spark.numbered import Numbered
from kleene.spark.stream_queries import columns_needed_by, formulas_of

# Integers up to here are exact as reals.
_EXACT = 2**53
# A list of more values makes planning slower than reading less makes the run faster.
_PLANNED_VALUES = 500


def counts_every_event(query: AnyBoundQuery) -> bool:
    """Whether events matter that the query cannot take: they are counted, or break contiguity."""
    return isinstance(query, BoundQuery) and (query.counts_events or query.strategy.is_contiguous)


def columns_needed(queries: Sequence[AnyBoundQuery], columns: pa.Schema, *, whole: bool = False) -> tuple[str, ...]:
    """The columns that some query reads or returns, in the order of the input.

    whole   whether events keep columns that no query reads or returns
    """
    needed: set[str] = set()
    for query in queries:
        read = None if whole else _columns_read(query)
        own = columns.names if query.schema.columns is None else query.schema.columns
        needed.update(own if read is None else read)
    if len({query.schema.streams for query in queries}) > 1:
        # Each is given the events of its own streams.
        needed.add(STREAM)
    return tuple(name for name in columns.names if name in needed)


def _columns_read(query: AnyBoundQuery) -> tuple[str, ...] | None:
    return columns_needed_by(query) if isinstance(query, BoundStreamQuery) else query.columns_read


def useful(query: AnyBoundQuery, events: Numbered) -> Condition | None:
    """What an event must satisfy to be of use to a query; None when every event is."""
    if isinstance(query, BoundStreamQuery):
        return any_of([_taken(query, formula, name, events) for formula, name in _taken_types(query)])
    if counts_every_event(query):
        return None
    return any_of([_instance(query, component, events) for component in query.components])


def _taken_types(query: BoundStreamQuery) -> Iterator[tuple[InputFormula, str]]:
    """The formulas of a query of streams, each with the types of the events that it takes."""
    return ((formula, name) for formula in formulas_of(query) for name in formula.source.event_class.types)


def _taken(query: BoundStreamQuery, formula: InputFormula, name: str, events: Numbered) -> Condition | None:
    """What an event of a type must satisfy for a formula to take it."""
    translation = _Translation(query.schema, name, events)
    tested = translation.clauses((*formula.source.event_class.predicate, *formula.condition))
    return all_of((_type_is(query.schema, name, events), tested))


def _instance(query: BoundQuery, component: Component, events: Numbered) -> Condition | None:
    """What an event must satisfy to be an instance of a component, or None."""
    return any_of(
        [
            _of_type(query, component, event_class, name, events)
            for event_class in component.classes
            for name in event_class.types
        ]
    )


def _of_type(
    query: BoundQuery, component: Component, event_class: EventClass, name: str, events: Numbered
) -> Condition | None:
    translation = _Translation(query.schema, name, events)
    own = any_of([translation.clauses(clauses) for clauses in _own_clauses(query, component)])
    return all_of((_type_is(query.schema, name, events), translation.clauses(event_class.predicate), own))


def _type_is(schema: Schema, name: str, events: Numbered) -> Condition | None:
    if schema.constant_type is not None or not events.is_plain_string(schema.type):
        return None
    return ("compare", "=", ("column", schema.type, None), ("constant", name, ValueType.STRING.value))


def _own_clauses(query: BoundQuery, component: Component) -> list[list[Clause]]:
    """The conditions on one event of a component alone; several lists where it may be taken in several ways."""
    variable, conditions = component.variable, query.conditions
    if component.negated:
        clauses = [clause for listed in conditions.negative.values() for clause in listed]
        return [_only_on(clauses, variable, Which.SINGLE)]
    if component.kind is ComponentKind.CLOSURE:
        return [_only_on(conditions.members.get(variable, ()), variable, Which.MEMBER)]
    if component.kind is ComponentKind.SINGLE:
        return [_only_on(conditions.positive, variable, Which.SINGLE)]
    return [_only_on(conditions.positive, variable, which) for which in (Which.FIRST, Which.CURRENT)]


def _only_on(clauses: Iterable[Clause], variable: str, which: Which) -> list[Clause]:
    return [
        clause
        for clause in clauses
        if references(clause)
        and all(isinstance(r, Attribute) and r.variable == variable and r.which is which for r in references(clause))
    ]


# Expressions -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Translated:
    value: Condition
    type: ValueType
    # Of an integer: whether every value it can have is exact as a real.
    exact: bool = True


@dataclass(frozen=True)
class _Translation:
    """Conditions on an event of one type as `kleene.spark.conditions`; None stands for one that is always true."""

    schema: Schema
    type_name: str
    events: Numbered

    def clauses(self, tests: Iterable[Clause]) -> Condition | None:
        return all_of(self._clause(clause) for clause in tests)

    def _clause(self, clause: Clause) -> Condition | None:
        return any_of([self._literal(literal) for literal in clause.literals])

    def _literal(self, literal: Literal) -> Condition | None:
        if isinstance(literal, Truth):
            return None if literal.value else NEVER
        if isinstance(literal, IsNull):
            return self._is_null(literal)
        if any(self._lacks(reference) for reference in references(literal)):
            return None
        if isinstance(literal, Comparison):
            return self._comparison(literal)
        if isinstance(literal, Among):
            return self._among(literal)
        return self._contains(literal) if isinstance(literal, Contains) else None

    def _lacks(self, reference: object) -> bool:
        """Whether events of the type have no such attribute; that of a composite event is no column of the input."""
        if not isinstance(reference, Attribute):
            return False
        known = reference.attribute in self.events.columns.names
        return not known or not self.schema.has(self.type_name, reference.attribute)

    def _is_null(self, literal: IsNull) -> Condition | None:
        if not isinstance(literal.operand, Attribute):
            return None
        if self._lacks(literal.operand):
            return NEVER if literal.negated else None
        return ("is_null", ("column", literal.operand.attribute, None), literal.negated)

    def _contains(self, literal: Contains) -> Condition | None:
        left, right = self._value(literal.left), self._value(literal.right)
        if left is None or right is None or {left.type, right.type} != {ValueType.STRING}:
            return None
        return ("contains", left.value, right.value, literal.negated)

    def _among(self, literal: Among) -> Condition | None:
        """The list itself where it is short enough to be part of a plan, else its range."""
        value = self._value(literal.operand)
        if value is None or value.type is not literal.operand.type:
            return None
        if len(literal.values) <= _PLANNED_VALUES:
            return ("among", value.value, list(literal.values), value.type.value, literal.negated)
        if literal.negated:
            return None
        return ("between", value.value, min(literal.values), max(literal.values), value.type.value)

    def _comparison(self, literal: Comparison) -> Condition | None:
        left, right = self._value(literal.left), self._value(literal.right)
        if left is None or right is None:
            return None
        if left.type is not right.type:
            integer, real = (left, right) if left.type is ValueType.INT else (right, left)
            if (integer.type, real.type) != (ValueType.INT, ValueType.FLOAT) or not integer.exact:
                return None
        if left.type is ValueType.BOOL and literal.operator not in ("=", "!="):
            return None
        return ("compare", literal.operator, left.value, right.value)

    def _value(self, value: Value) -> _Translated | None:
        if isinstance(value, Constant):
            return _constant(value)
        if isinstance(value, Attribute):
            return self._attribute(value)
        if isinstance(value, Negative):
            return self._arithmetic("-", Constant(0, ValueType.INT), value.operand)
        if isinstance(value, Arithmetic):
            return self._arithmetic(value.operator, value.left, value.right)
        return None

    def _attribute(self, value: Attribute) -> _Translated | None:
        name, kind = value.attribute, self.events.type(value.attribute)
        plain = ("column", name, None)
        if pa.types.is_integer(kind):
            wide = plain if kind == pa.int64() else ("column", name, "bigint")
            return _Translated(wide, ValueType.INT, exact=kind.bit_width <= 32)
        if pa.types.is_floating(kind):
            return _Translated(plain if kind == pa.float64() else ("column", name, "double"), ValueType.FLOAT)
        if pa.types.is_boolean(kind):
            return _Translated(plain, ValueType.BOOL)
        if pa.types.is_timestamp(kind):
            return _Translated(plain, ValueType.TIMESTAMP if kind.tz is None else ValueType.ZONED)
        return _Translated(plain, ValueType.STRING) if self.events.is_plain_string(name) else None

    def _arithmetic(self, operator: str, first: Value, second: Value) -> _Translated | None:
        left, right = self._value(first), self._value(second)
        if left is None or right is None or operator not in ("+", "-", "*"):
            return None
        if {left.type, right.type} == {ValueType.INT}:
            return _Translated(("integers", operator, left.value, right.value), ValueType.INT, exact=False)
        if not {left.type, right.type} <= {ValueType.INT, ValueType.FLOAT} or not (left.exact and right.exact):
            return None
        return _Translated(("reals", operator, left.value, right.value), ValueType.FLOAT)


def _constant(constant: Constant) -> _Translated | None:
    value, kind = constant.value, constant.type
    if isinstance(value, bool):
        return _Translated(("constant", value, ValueType.BOOL.value), ValueType.BOOL)
    if isinstance(value, int) and kind is ValueType.INT and -(2**63) <= value < 2**63:
        return _Translated(("constant", value, kind.value), ValueType.INT, exact=abs(value) <= _EXACT)
    if isinstance(value, float):
        return _Translated(("constant", value, ValueType.FLOAT.value), ValueType.FLOAT)
    if isinstance(value, str):
        return _Translated(("constant", value, ValueType.STRING.value), ValueType.STRING)
    if kind in (ValueType.TIMESTAMP, ValueType.ZONED) and isinstance(value, int):
        return _moment(value, kind)
    return None


def _moment(nanoseconds: int, kind: ValueType) -> _Translated | None:
    """A timestamp that Spark can hold."""
    if nanoseconds % 1000:
        return None
    try:
        datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=nanoseconds // 1000)
    except OverflowError:
        return None
    return _Translated(("constant", nanoseconds // 1000, kind.value), kind)
