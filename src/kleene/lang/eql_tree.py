"""The syntax tree of EQL (NEXT §3.5): what `SELECT … FROM … WHERE …` is parsed into.

Conditions and values are those of `tree`; spans take no part in equality.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kleene.errors import NOWHERE, Span
from kleene.lang import tree
from kleene.lang.tree import Node


@dataclass(frozen=True, slots=True)
class EventSource(Node):
    """`t S1`: the events of a type or class, called `S1`; without an alias they are called by their type."""

    type: tree.TypeName
    alias: str | None = None
    alias_span: Span = field(default=NOWHERE, compare=False, repr=False)

    @property
    def name(self) -> str:
        return self.type.name if self.alias is None else self.alias


@dataclass(frozen=True, slots=True)
class NextChain(Node):
    """`E1 ; E2 ; … ; En`: flat, since brackets between `;` alone mean nothing."""

    parts: tuple[EventPattern, ...]


@dataclass(frozen=True, slots=True)
class EitherPattern(Node):
    """`E1 | E2`: flat, too."""

    parts: tuple[EventPattern, ...]


@dataclass(frozen=True, slots=True)
class Iterated(Node):
    """`E+`."""

    operand: EventPattern


@dataclass(frozen=True, slots=True)
class Excepted(Node):
    r"""`E1 \ E2`: E1, unless E2 occurs meanwhile."""

    operand: EventPattern
    exception: EventPattern


@dataclass(frozen=True, slots=True)
class Delayed(Node):
    """`E @ 5 min`: E, reported so much later. Only the builder in Python writes it: EQL has no sign for it."""

    operand: EventPattern
    delay: tree.Duration


EventPattern = EventSource | NextChain | EitherPattern | Iterated | Excepted | Delayed


@dataclass(frozen=True, slots=True)
class Qualification(Node):
    """One item of the WHERE clause between commas: `FILTER(condition)`, or a condition."""

    condition: tree.Expression
    filters: bool = False


@dataclass(frozen=True, slots=True)
class EqlQuery(Node):
    """A query in EQL; `returns` is None for `SELECT *`."""

    pattern: EventPattern
    qualifications: tuple[Qualification, ...] = ()
    returns: tree.Return | None = None
    declarations: tuple[tree.Declaration, ...] = ()

    @property
    def body(self) -> EventPattern:
        """What names the streams that the query reads."""
        return self.pattern

    @property
    def makes(self) -> tuple[str, ...]:
        """The stream that the query makes of its results (`INTO`)."""
        into = None if self.returns is None else self.returns.into
        return () if into is None else (into,)

    @property
    def timeouts(self) -> None:
        """There are none: what waits longer than it may is gone."""
        return None
