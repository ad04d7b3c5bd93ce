"""The syntax tree that every spelling of the language is parsed into.

Plain frozen data. Spans say where a node stands in the text and take no part in equality, so that two spellings of
the same query are equal trees. Nothing here knows columns or data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from enum import Enum
from fractions import Fraction
from typing import Any

from kleene.errors import NOWHERE, Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    # How deep the tree below is; the parser bounds it, so that later passes may recurse.
    depth: int = field(default=1, compare=False, repr=False)


# Patterns ----------------------------------------------------------------------------------------------------------


class Mark(Enum):
    """How a repetition was written; `A^2 a[]` and `A{2} a[]` mean the same, `A^2` and `A{2}` do not."""

    PLUS = "+"
    STAR = "*"
    OPTIONAL = "?"
    POWER = "^"
    BRACES = "{}"


@dataclass(frozen=True, slots=True)
class Repetition(Node):
    mark: Mark
    minimum: int
    maximum: int | None


@dataclass(frozen=True, slots=True)
class TypeName(Node):
    name: str


@dataclass(frozen=True, slots=True)
class Component(Node):
    """`A a`, `ANY(A, B) v`, `A+ a[]`, `B^5`: one place of a pattern."""

    types: tuple[TypeName, ...]
    any: bool = False
    repetition: Repetition | None = None
    variable: str | None = None
    brackets: bool = False
    variable_span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Negation(Node):
    operand: Pattern


@dataclass(frozen=True, slots=True)
class Sequence(Node):
    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Conjunction(Node):
    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Disjunction(Node):
    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Group(Node):
    """A repetition or a variable on parentheses: parsed so that binding can say why it is refused.

    `(C c)?` and `(C+ c[])?` are no groups: they are read as `C? c` and `C* c[]`.
    """

    inner: Pattern
    repetition: Repetition | None
    variable: str | None = None
    brackets: bool = False


Pattern = Component | Negation | Sequence | Conjunction | Disjunction | Group


# Expressions -------------------------------------------------------------------------------------------------------


class Index(Enum):
    """Which events of a Kleene variable a reference speaks of."""

    FIRST = "1"
    CURRENT = "i"
    PREVIOUS = "i-1"
    LAST = "LEN"
    SO_FAR = "..i-1"
    ALL = ".."


@dataclass(frozen=True, slots=True)
class Nth:
    """`a[6]`: one event of a Kleene variable by its number; `a[1]` is `Index.FIRST`."""

    position: int

    @property
    def value(self) -> str:
        return str(self.position)


@dataclass(frozen=True, slots=True)
class Literal(Node):
    value: int | float | str | bool | None

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Literal)
            and type(self.value) is type(other.value)
            and repr(self.value) == repr(other.value)
        )

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


@dataclass(frozen=True, slots=True)
class Quantity(Node):
    """`5 minutes`: an amount and a unit; without a unit it is ticks."""

    amount: Fraction | Parameter
    unit: str


@dataclass(frozen=True, slots=True)
class Duration(Node):
    """`1 hour 30 minutes`."""

    terms: tuple[Quantity, ...]


@dataclass(frozen=True, slots=True)
class Timestamp(Node):
    """`TIMESTAMP '2024-01-31T12:00:00'`."""

    text: str


@dataclass(frozen=True, slots=True)
class Parameter(Node):
    name: str


@dataclass(frozen=True, slots=True)
class Percent(Node):
    """`20%`."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A name on its own: a variable or an unqualified attribute."""

    name: str


@dataclass(frozen=True, slots=True)
class Attribute(Node):
    """`a.x`, `a[1].x`, `a[..i-1].x`."""

    variable: str
    index: Index | Nth | None
    attribute: str
    # The places of its two names, for carets under one alone.
    variable_span: Span = field(default=NOWHERE, compare=False, repr=False)
    attribute_span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class LastValue(Node):
    """`S2.price.last` of the stream algebra: an attribute before the newest event overwrote it.

    `price.last` is read as an `Attribute` that is called `last`: only binding knows the ids of streams.
    """

    attribute: Attribute


@dataclass(frozen=True, slots=True)
class Events(Node):
    """`a[..]`, `a[..i-1]`, `a[]`, `a[i]`: events of a Kleene variable, without an attribute."""

    variable: str
    index: Index | Nth | None


@dataclass(frozen=True, slots=True)
class Call(Node):
    """`sum(a[..i-1].price)`; also a strategy with its variables, until the WHERE clause is complete."""

    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Negative(Node):
    operand: Expression


@dataclass(frozen=True, slots=True)
class Arithmetic(Node):
    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Comparison(Node):
    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class EqualityChain(Node):
    """`a.x = b.x = c.x`: all pairs are equal."""

    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Contains(Node):
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class In(Node):
    operand: Expression
    items: tuple[Expression, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Between(Node):
    operand: Expression
    low: Expression
    high: Expression
    negated: bool = False


@dataclass(frozen=True, slots=True)
class IsNull(Node):
    operand: Expression
    negated: bool = False


@dataclass(frozen=True, slots=True)
class EquivalenceItem(Node):
    attribute: str
    value: Expression | None = None


@dataclass(frozen=True, slots=True)
class Equivalence(Node):
    """`[id]`, `[a, b]`, `[id = '1']`: an equivalence test over every component (SASE §2.2.1)."""

    items: tuple[EquivalenceItem, ...]


@dataclass(frozen=True, slots=True)
class OccursWithin(Node):
    """`(S1, L) OCCURS WITHIN 12 hours`: a condition of EQL (NEXT §3.5)."""

    names: tuple[Name, ...]
    duration: Duration


@dataclass(frozen=True, slots=True)
class Not(Node):
    operand: Expression


@dataclass(frozen=True, slots=True)
class And(Node):
    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Or(Node):
    operands: tuple[Expression, ...]


Expression = (
    Literal
    | Duration
    | Timestamp
    | Parameter
    | Percent
    | Name
    | Attribute
    | LastValue
    | Events
    | Call
    | Negative
    | Arithmetic
    | Comparison
    | EqualityChain
    | Contains
    | In
    | Between
    | IsNull
    | Equivalence
    | OccursWithin
    | Not
    | And
    | Or
)


# Clauses -----------------------------------------------------------------------------------------------------------


class SelectionStrategy(Enum):
    STRICT_CONTIGUITY = "strict_contiguity"
    PARTITION_CONTIGUITY = "partition_contiguity"
    SKIP_TILL_NEXT_MATCH = "skip_till_next_match"
    SKIP_TILL_ANY_MATCH = "skip_till_any_match"

    @property
    def is_contiguous(self) -> bool:
        """Whether an event that a run does not take ends it."""
        return self in (SelectionStrategy.STRICT_CONTIGUITY, SelectionStrategy.PARTITION_CONTIGUITY)


@dataclass(frozen=True, slots=True)
class StrategyVariable(Node):
    name: str
    brackets: bool


@dataclass(frozen=True, slots=True)
class Strategy(Node):
    """`skip_till_next_match(a, b[])`; the list may be left out."""

    kind: SelectionStrategy
    variables: tuple[StrategyVariable, ...] | None = None


@dataclass(frozen=True, slots=True)
class Within(Node):
    """`12 hours`, `200 units`, `500 EVENTS`, a parameter that holds one of them."""

    duration: Duration
    inclusive: bool = False


class OutputMode(Enum):
    ALL = "ALL"
    NON_OVERLAP = "NON_OVERLAP"
    COMPRESSED = "COMPRESSED"


@dataclass(frozen=True, slots=True)
class Output(Node):
    mode: OutputMode


@dataclass(frozen=True, slots=True)
class ReturnItem(Node):
    value: Expression
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class Return(Node):
    items: tuple[ReturnItem, ...]
    into: str | None = None


# Declarations ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StreamDeclaration(Node):
    """`DECLARE STREAM (type kind, time ts timestamp, start began, tie seq, tick 1 second)`."""

    type_column: str | None = None
    constant_type: str | None = None
    time: str | None = None
    time_type: str | None = None
    start: str | None = None
    tie_breaker: str | None = None
    tick: Duration | None = None


@dataclass(frozen=True, slots=True)
class TypeDeclaration(Node):
    """`DECLARE TYPE Stock (name string, price float)`."""

    name: str
    attributes: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class SourceDeclaration(Node):
    """`DECLARE SOURCE t (acc int, amount float)`: where events come from, and their attributes (NEXT §3.5)."""

    name: str
    attributes: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class SinkDeclaration(Node):
    """`DECLARE SINK alerts (acc int)`: where results go, and the columns that they have there (NEXT §3.5)."""

    name: str
    attributes: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class ClassDeclaration(Node):
    """`DECLARE CLASS Google IS Stock WHERE name = 'Google'`."""

    name: str
    types: tuple[TypeName, ...]
    predicate: Expression | None = None
    # The text that the spans point into, when it is not the query's own.
    source: str | None = field(default=None, compare=False, repr=False)


Declaration = StreamDeclaration | TypeDeclaration | SourceDeclaration | SinkDeclaration | ClassDeclaration


@dataclass(frozen=True, slots=True)
class Query(Node):
    pattern: Pattern
    strategy: Strategy | None = None
    where: Expression | None = None
    within: Within | None = None
    output: Output | None = None
    timeouts: str | None = None
    returns: Return | None = None
    declarations: tuple[Declaration, ...] = ()
    timeouts_span: Span = field(default=NOWHERE, compare=False, repr=False)

    @property
    def body(self) -> Pattern:
        """What names the streams that the query reads."""
        return self.pattern

    @property
    def makes(self) -> tuple[str, ...]:
        """The streams that the query makes: of its matches (RETURN … INTO) and of its timeouts (TIMEOUTS INTO)."""
        into = None if self.returns is None else self.returns.into
        return tuple(name for name in (into, self.timeouts) if name is not None)


def walk(node: Any) -> Iterator[Node]:
    """A node of the syntax tree and all below it."""
    if isinstance(node, Literal):
        yield node  # nothing is below it, and a list may hold very many
    elif isinstance(node, Node):
        yield node
        for entry in fields(node):
            yield from walk(getattr(node, entry.name))
    elif isinstance(node, tuple):
        for item in node:
            yield from walk(item)
