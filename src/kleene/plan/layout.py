"""Where a program finds what it reads: the slot of each identifier and aggregate, the place of each column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kleene.pattern.expressions import Aggregate, Agrees, Attribute, Clause, Nth, Which, references
from kleene.pattern.types import TIMES, ValueType
from kleene.plan.program import NotCompilable

# An identifier is a variable and which of its events.
Identifier = tuple[str, Which]

# Types whose values are integers in arrays. Of other types than these and FLOAT, arrays hold no values.
AS_INTEGERS = frozenset({ValueType.INT, ValueType.BOOL, ValueType.STRING, ValueType.DURATION}) | TIMES


@dataclass(frozen=True, slots=True)
class Column:
    """A column as arrays: its number, its place among the integers or among the reals, and what it holds.

    Where arrays hold no values of a type, only NULL and missing are known, and the place is −1.
    """

    index: int
    place: int
    type: ValueType
    # Of times and durations: how many nanoseconds one step is.
    step: int = 1


@dataclass(frozen=True, slots=True)
class Accumulator:
    """What is kept of a variable's events for an aggregate; `avg` is a sum and a count.

    `agreed` is the value that all events which have the attribute agree on.
    """

    function: str
    variable: str
    attribute: str | None
    # Of `nth`: the number of the event whose value is kept.
    position: int = 0


@dataclass(frozen=True, slots=True)
class Layout:
    identifiers: Mapping[Identifier, int] = field(default_factory=dict)
    columns: Mapping[str, Column] = field(default_factory=dict)
    accumulators: Mapping[Accumulator, int] = field(default_factory=dict)

    def column_of(self, attribute: Attribute) -> Column:
        """The column behind a reference; `NotCompilable` where there is none."""
        if attribute.attribute not in self.columns:
            raise NotCompilable(f"column `{attribute.attribute}` is not in the layout")
        return self.columns[attribute.attribute]

    @staticmethod
    def of(clauses: Iterable[Clause], columns: Mapping[str, Column]) -> Layout:
        """Slots for everything that the clauses name, in the order in which they name it."""
        identifiers: dict[Identifier, int] = {}
        accumulators: dict[Accumulator, int] = {}
        for clause in clauses:
            for reference in references(clause):
                if isinstance(reference, Attribute):
                    identifiers.setdefault((reference.variable, reference.which), len(identifiers))
                elif isinstance(reference, Aggregate | Agrees):
                    for accumulator in accumulators_of(reference):
                        accumulators.setdefault(accumulator, len(accumulators))
        return Layout(identifiers, columns, accumulators)


def accumulators_of(reference: Aggregate | Agrees) -> tuple[Accumulator, ...]:
    """What must be kept for an aggregate. Both scopes cover the events that are selected so far."""
    variable, attribute = reference.variable, reference.attribute
    if isinstance(reference, Agrees):
        return (Accumulator("agreed", variable, attribute),)
    if reference.function == "avg":
        return Accumulator("sum", variable, attribute), Accumulator("count", variable, attribute)
    if isinstance(reference, Nth):
        return (Accumulator("nth", variable, attribute, reference.position),)
    return (Accumulator(reference.function, variable, attribute),)
