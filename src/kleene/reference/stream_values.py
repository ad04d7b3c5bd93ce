"""Events of streams, and what the conditions of the stream algebra mean on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from kleene.algebra.nodes import AttributeName, StreamSchema
from kleene.pattern.expressions import Aggregate, Attribute, Clause, Elapsed, Value, Which
from kleene.reference.values import assigned, evaluate, holds

_GREATEST = 2**63 - 1
# A moment, and the tie-breaker where one is declared.
Point = tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class StreamEvent:
    """The values of an event by attribute, and its first and last points."""

    values: Mapping[AttributeName, Any]
    start: Point
    end: Point

    @cached_property
    def key(self) -> tuple[Any, ...]:
        """What tells events of one stream apart: values and interval. A NaN equals itself here, as in any set."""
        return self.end, self.start, tuple(repr(self.values[name]) for name in sorted(self.values))

    @property
    def order(self) -> tuple[Any, ...]:
        """Time first, then whatever makes the order the same in every run."""
        return self.key

    def with_values(self, values: Mapping[AttributeName, Any], schema: StreamSchema) -> StreamEvent:
        """The same interval with other values, in the order and of the types that a schema says."""
        typed = {name: assigned(values[name], kind) for name, kind in schema.attributes}
        return StreamEvent(typed, self.start, self.end)


@dataclass(frozen=True, slots=True)
class StreamBindings:
    """An event, and what its values were before the newest event overwrote them."""

    event: StreamEvent
    last: Mapping[AttributeName, Any] = field(default_factory=dict)

    def read(self, reference: Attribute | Aggregate | Elapsed) -> Any:
        match reference:
            case Elapsed(_, step, tick):
                return min((self.event.end[0] - self.event.start[0]) * step + tick, _GREATEST)
            case Attribute(variable, which, attribute, _):
                values = self.last if which is Which.OVERWRITTEN else self.event.values
                return values[variable, attribute]
        raise TypeError("a stream has no aggregates")

    def covered(self, variable: str, attribute: str) -> list[Any]:
        raise TypeError("a stream has no Kleene variables")


def holds_all(condition: Iterable[Clause], bindings: StreamBindings) -> bool:
    return all(holds(clause, bindings) for clause in condition)


def value_of(value: Value, bindings: StreamBindings) -> Any:
    """What α assigns."""
    return assigned(evaluate(value, bindings), value.type)
