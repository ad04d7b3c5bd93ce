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

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import reduce
from operator import and_, eq, ge, gt, le, lt, ne, or_
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions

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
from kleene.spark.numbered import Numbered
from kleene.spark.stream_queries import columns_needed_by, formulas_of

if TYPE_CHECKING:
    from pyspark.sql import Column

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {"=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
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


def useful(query: AnyBoundQuery, events: Numbered) -> Column | None:
    """What an event must satisfy to be of use to a query; None when every event is."""
    if isinstance(query, BoundStreamQuery):
        return _any_of([_taken(query, formula, name, events) for formula, name in _taken_types(query)])
    if counts_every_event(query):
        return None
    return _any_of([_instance(query, component, events) for component in query.components])


def _taken_types(query: BoundStreamQuery) -> Iterator[tuple[InputFormula, str]]:
    """The formulas of a query of streams, each with the types of the events that it takes."""
    return ((formula, name) for formula in formulas_of(query) for name in formula.source.event_class.types)


def _taken(query: BoundStreamQuery, formula: InputFormula, name: str, events: Numbered) -> Column | None:
    """What an event of a type must satisfy for a formula to take it."""
    translation = _Translation(query.schema, name, events)
    tested = translation.clauses((*formula.source.event_class.predicate, *formula.condition))
    return _all(part for part in (_type_is(query.schema, name, events), tested) if part is not None)


def _instance(query: BoundQuery, component: Component, events: Numbered) -> Column | None:
    """What an event must satisfy to be an instance of a component, or None."""
    return _any_of(
        [
            _of_type(query, component, event_class, name, events)
            for event_class in component.classes
            for name in event_class.types
        ]
    )


def _of_type(
    query: BoundQuery, component: Component, event_class: EventClass, name: str, events: Numbered
) -> Column | None:
    translation = _Translation(query.schema, name, events)
    own = _any_of([translation.clauses(clauses) for clauses in _own_clauses(query, component)])
    parts = [_type_is(query.schema, name, events), translation.clauses(event_class.predicate), own]
    return _all(part for part in parts if part is not None)


def _type_is(schema: Schema, name: str, events: Numbered) -> Column | None:
    if schema.constant_type is not None or not events.is_plain_string(schema.type):
        return None
    return events.column(schema.type) == functions.lit(name)


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
    column: Column
    type: ValueType
    # Of an integer: whether every value it can have is exact as a real.
    exact: bool = True


@dataclass(frozen=True)
class _Translation:
    """Conditions on an event of one type as Spark conditions; None stands for one that is always true."""

    schema: Schema
    type_name: str
    events: Numbered

    def clauses(self, tests: Iterable[Clause]) -> Column | None:
        parts = [self._clause(clause) for clause in tests]
        return _all(part for part in parts if part is not None)

    def _clause(self, clause: Clause) -> Column | None:
        return _any_of([self._literal(literal) for literal in clause.literals])

    def _literal(self, literal: Literal) -> Column | None:
        if isinstance(literal, Truth):
            return None if literal.value else functions.lit(False)
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

    def _is_null(self, literal: IsNull) -> Column | None:
        if not isinstance(literal.operand, Attribute):
            return None
        if self._lacks(literal.operand):
            return functions.lit(False) if literal.negated else None
        column = self.events.column(literal.operand.attribute)
        return column.isNotNull() if literal.negated else column.isNull()

    def _contains(self, literal: Contains) -> Column | None:
        left, right = self._value(literal.left), self._value(literal.right)
        if left is None or right is None or {left.type, right.type} != {ValueType.STRING}:
            return None
        condition = left.column.contains(right.column)
        return ~condition if literal.negated else condition

    def _among(self, literal: Among) -> Column | None:
        """The list itself where it is short enough to be part of a plan, else its range."""
        value = self._value(literal.operand)
        if value is None or value.type is not literal.operand.type:
            return None
        if len(literal.values) <= _PLANNED_VALUES:
            condition = value.column.isin(*literal.values)
            return ~condition if literal.negated else condition
        if literal.negated:
            return None
        return value.column.between(functions.lit(min(literal.values)), functions.lit(max(literal.values)))

    def _comparison(self, literal: Comparison) -> Column | None:
        left, right = self._value(literal.left), self._value(literal.right)
        if left is None or right is None:
            return None
        if left.type is not right.type:
            integer, real = (left, right) if left.type is ValueType.INT else (right, left)
            if (integer.type, real.type) != (ValueType.INT, ValueType.FLOAT) or not integer.exact:
                return None
        if left.type is ValueType.BOOL and literal.operator not in ("=", "!="):
            return None
        return _COMPARE[literal.operator](left.column, right.column)  # type: ignore[no-any-return]

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
        kind, column = self.events.type(value.attribute), self.events.column(value.attribute)
        if pa.types.is_integer(kind):
            wide = column if kind == pa.int64() else column.cast("bigint")
            return _Translated(wide, ValueType.INT, exact=kind.bit_width <= 32)
        if pa.types.is_floating(kind):
            return _Translated(column if kind == pa.float64() else column.cast("double"), ValueType.FLOAT)
        if pa.types.is_boolean(kind):
            return _Translated(column, ValueType.BOOL)
        if pa.types.is_timestamp(kind):
            return _Translated(column, ValueType.TIMESTAMP if kind.tz is None else ValueType.ZONED)
        return _Translated(column, ValueType.STRING) if self.events.is_plain_string(value.attribute) else None

    def _arithmetic(self, operator: str, first: Value, second: Value) -> _Translated | None:
        left, right = self._value(first), self._value(second)
        if left is None or right is None:
            return None
        if {left.type, right.type} == {ValueType.INT}:
            whole = {"+": functions.try_add, "-": functions.try_subtract, "*": functions.try_multiply}.get(operator)
            return whole and _Translated(whole(left.column, right.column), ValueType.INT, exact=False)
        if not {left.type, right.type} <= {ValueType.INT, ValueType.FLOAT} or not (left.exact and right.exact):
            return None
        reals = left.column.cast("double"), right.column.cast("double")
        if operator == "-":
            return _Translated(reals[0] - reals[1], ValueType.FLOAT)
        column = {"+": reals[0] + reals[1], "*": reals[0] * reals[1]}.get(operator)
        return None if column is None else _Translated(column, ValueType.FLOAT)


def _constant(value: Constant) -> _Translated | None:
    constant = value.value
    if isinstance(constant, bool):
        return _Translated(functions.lit(constant), ValueType.BOOL)
    if isinstance(constant, int) and value.type is ValueType.INT and -(2**63) <= constant < 2**63:
        return _Translated(functions.lit(constant).cast("bigint"), ValueType.INT, exact=abs(constant) <= _EXACT)
    if isinstance(constant, float):
        return _Translated(functions.lit(constant).cast("double"), ValueType.FLOAT)
    if isinstance(constant, str):
        return _Translated(functions.lit(constant), ValueType.STRING)
    if value.type in (ValueType.TIMESTAMP, ValueType.ZONED) and isinstance(constant, int):
        return _moment(constant, value.type)
    return None


def _moment(nanoseconds: int, kind: ValueType) -> _Translated | None:
    """A timestamp that Spark can hold, written with its zone so that the session's does not matter."""
    if nanoseconds % 1000:
        return None
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=nanoseconds // 1000)
    except OverflowError:
        return None
    if kind is ValueType.ZONED:
        return _Translated(functions.lit(moment.isoformat()).cast("timestamp"), kind)
    return _Translated(functions.lit(moment.replace(tzinfo=None).isoformat()).cast("timestamp_ntz"), kind)


def _any_of(parts: Sequence[Column | None]) -> Column | None:
    """One of them holds; None, which always holds, makes it always so."""
    known = [part for part in parts if part is not None]
    return reduce(or_, known) if known and len(known) == len(parts) else None


def _all(parts: Iterable[Column]) -> Column | None:
    listed = list(parts)
    return reduce(and_, listed) if listed else None
