"""The syntax tree of the stream algebra (CESAR §2): what a spelling of streams is parsed into.

Conditions and values are those of `tree`; spans take no part in equality.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kleene.errors import NOWHERE, Span
from kleene.lang import tree
from kleene.lang.tree import Node

AttributeName = tree.Name | tree.Attribute


@dataclass(frozen=True, slots=True)
class StreamSource(Node):
    """`Stock S1`: the events of a type or class, whose attributes are called `S1.…`; without an id, `Stock.…`."""

    type: tree.TypeName
    id: str | None = None
    id_span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Select(Node):
    """`σ{condition}(operand)`."""

    operand: Stream
    condition: tree.Expression


@dataclass(frozen=True, slots=True)
class Project(Node):
    """`π{attributes}(operand)`."""

    operand: Stream
    attributes: tuple[AttributeName, ...]


@dataclass(frozen=True, slots=True)
class Renaming(Node):
    attribute: AttributeName
    name: str


@dataclass(frozen=True, slots=True)
class Rename(Node):
    """`ρ{price ↦ old}(operand)`."""

    operand: Stream
    renamings: tuple[Renaming, ...]


@dataclass(frozen=True, slots=True)
class Assignment(Node):
    attribute: AttributeName
    value: tree.Expression


@dataclass(frozen=True, slots=True)
class Compute(Node):
    """`α{total ↦ total + price}(operand)`: all values are computed before one is assigned."""

    operand: Stream
    assignments: tuple[Assignment, ...]


@dataclass(frozen=True, slots=True)
class StreamUnion(Node):
    """`E1 ∪ E2`."""

    parts: tuple[Stream, ...]


@dataclass(frozen=True, slots=True)
class Next(Node):
    """`E1 ;{condition} E2`: each event of E1 with the first of E2 after it that satisfies the condition."""

    left: Stream
    right: Stream
    condition: tree.Expression | None = None


@dataclass(frozen=True, slots=True)
class Carried(Node):
    """Stands for what a fold applies its step to: the operand of the innermost operation of the step."""


@dataclass(frozen=True, slots=True)
class Fold(Node):
    """`μ{step, condition, init x ↦ y}(E1, E2)`: next again and again, each time with the step applied."""

    left: Stream
    right: Stream
    # A chain of unary operations, whose innermost operand is `Carried`.
    step: Stream
    condition: tree.Expression | None = None
    init: tuple[Assignment, ...] = ()


Unary = Select | Project | Rename | Compute
Stream = StreamSource | Unary | StreamUnion | Next | Fold | Carried


@dataclass(frozen=True, slots=True)
class StreamQuery(Node):
    """A query of the stream algebra; `publish S` makes a stream of its results that others can read."""

    stream: Stream
    publish: str | None = None
    declarations: tuple[tree.Declaration, ...] = ()
    publish_span: Span = field(default=NOWHERE, compare=False, repr=False)

    @property
    def body(self) -> Stream:
        """What names the streams that the query reads."""
        return self.stream

    @property
    def makes(self) -> tuple[str, ...]:
        """The stream that the query makes of its results."""
        return () if self.publish is None else (self.publish,)

    @property
    def timeouts(self) -> None:
        """A stream has none: what nothing can serve any more is gone."""
        return None
