"""Bound expressions: every name resolved, every type known, NOT pushed down to the comparisons.

A condition is a conjunction of clauses, a clause a disjunction of literals (CNF, SASE+ §3.2 step 2); a literal is a
comparison, a CONTAINS, an IS NULL, a long IN, or an agreement test that an equivalence test expands to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, cast

from kleene.pattern.interning import Interned, field_names
from kleene.pattern.types import ValueType


class Which(Enum):
    """Which event of a variable a reference reads."""

    SINGLE = "x"
    FIRST = "a[1]"
    CURRENT = "a[i]"
    PREVIOUS = "a[i-1]"
    LAST = "a[a.LEN]"
    MEMBER = "member"
    # Of a stream: what it was before the newest event overwrote it.
    OVERWRITTEN = "x.last"


class Scope(Enum):
    """Which events of a variable an aggregate covers."""

    SO_FAR = "a[..i-1]"
    ALL = "a[..]"


@dataclass(frozen=True, slots=True, eq=False)
class Constant(Interned):
    """A value: int, float, str, bool, None; timestamps and durations in nanoseconds."""

    value: Any
    type: ValueType


@dataclass(frozen=True, slots=True, eq=False)
class Secret(Constant):
    """The value of a parameter whose name says that it is not to be shown: it is printed as the parameter."""

    parameter: str


@dataclass(frozen=True, slots=True, eq=False)
class OpenParameter(Interned):
    """A parameter that has no value yet: of a query that is checked, not run, or of a template, where it has a type."""

    name: str
    type: ValueType = ValueType.UNKNOWN


@dataclass(frozen=True, slots=True, eq=False)
class Attribute(Interned):
    variable: str
    which: Which
    attribute: str
    type: ValueType


@dataclass(frozen=True, slots=True, eq=False)
class Aggregate(Interned):
    """An aggregate; without an attribute, the number of events."""

    function: str
    variable: str
    scope: Scope
    attribute: str | None
    type: ValueType


@dataclass(frozen=True, slots=True, eq=False)
class Nth(Aggregate):
    """`a[6].x`: what one event of a Kleene variable has, by its number from 2 on; NULL where there are fewer.

    An aggregate, since it is known for certain only when the variable's events are: the function is `nth`.
    """

    position: int


@dataclass(frozen=True, slots=True, eq=False)
class Negative(Interned):
    operand: Value
    type: ValueType


@dataclass(frozen=True, slots=True, eq=False)
class Arithmetic(Interned):
    operator: str
    left: Value
    right: Value
    type: ValueType


@dataclass(frozen=True, slots=True, eq=False)
class Elapsed(Interned):
    """DUR of the stream algebra: `(end − start) · step + tick`, in ticks, or in nanoseconds on timestamps.

    What is beyond 64 bits counts as the greatest number of these. `of_event`: of the newest event alone, not of the
    composite event that it completes.
    """

    type: ValueType
    step: int
    tick: int
    of_event: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Assigned(Interned):
    """A value as an attribute of a stream has it: arithmetic without a result is NULL, an integer may be a real."""

    operand: Value
    type: ValueType


@dataclass(frozen=True, slots=True, eq=False)
class Whole(Interned):
    """All of a variable's event, or all events of a Kleene variable: only in RETURN."""

    variable: str
    type: ValueType = ValueType.OTHER


Value = Constant | OpenParameter | Attribute | Aggregate | Negative | Arithmetic | Elapsed | Assigned | Whole


@dataclass(frozen=True, slots=True, eq=False)
class Comparison(Interned):
    operator: str
    left: Value
    right: Value


@dataclass(frozen=True, slots=True, eq=False)
class Contains(Interned):
    left: Value
    right: Value
    negated: bool


@dataclass(frozen=True, slots=True, eq=False)
class IsNull(Interned):
    operand: Value
    negated: bool


@dataclass(frozen=True, slots=True, eq=False)
class Among(Interned):
    """A long IN: an integer or a string against a set of constants of its own type, each of them once."""

    operand: Value
    values: tuple[Any, ...]
    negated: bool


@dataclass(frozen=True, slots=True, eq=False)
class Agrees(Interned):
    """The left attribute equals that of every event of a Kleene variable that has it.

    An equivalence test needs this where some types of the variable lack the attribute: equality with the first event
    alone would then not be equality of all pairs.
    """

    left: Attribute
    variable: str
    scope: Scope
    attribute: str


@dataclass(frozen=True, slots=True, eq=False)
class Truth(Interned):
    value: bool


Literal = Comparison | Contains | IsNull | Among | Agrees | Truth

INVERSE = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


@dataclass(frozen=True, slots=True, eq=False)
class Clause(Interned):
    """A disjunction of literals."""

    literals: tuple[Literal, ...]


Node = Value | Literal | Clause


Reference = Attribute | Aggregate | Agrees | Whole


def references(node: Node) -> tuple[Reference, ...]:
    """Every place in an expression that names a variable; found once, then kept with the node."""
    try:
        return node._references
    except AttributeError:
        all_references = tuple(_references(node))
        object.__setattr__(node, "_references", all_references)
        return all_references


def _references(node: Node) -> Iterator[Reference]:
    if isinstance(node, Attribute | Aggregate | Agrees | Whole):
        yield node
    for name in field_names(type(node)):
        value = getattr(node, name)
        for child in value if isinstance(value, tuple) else (value,):
            if isinstance(child, Interned) and not isinstance(child, Constant):
                yield from references(cast(Node, child))


def variables(node: Node) -> set[str]:
    return {reference.variable for reference in references(node)}


def equated(clause: Clause) -> tuple[Value, Value] | None:
    """The two values that a clause says are equal; None for any other clause."""
    match clause.literals:
        case (Comparison("=", left, right),):
            return left, right
        case _:
            return None
