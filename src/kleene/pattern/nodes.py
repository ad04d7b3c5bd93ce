"""The pattern algebra: components, and how they are put together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from kleene.pattern.expressions import Clause
from kleene.pattern.interning import Interned


class ComponentKind(Enum):
    """How many events a component takes, and who decides."""

    SINGLE = "one event"
    KLEENE = "a Kleene closure under the strategy (SASE+)"
    CLOSURE = "the group between its neighbours (ZStream)"


@dataclass(frozen=True, slots=True, eq=False)
class EventClass(Interned):
    """A type test and an optional predicate on the event, whose attributes have the empty variable."""

    name: str
    types: tuple[str, ...]
    predicate: tuple[Clause, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Component(Interned):
    variable: str
    classes: tuple[EventClass, ...]
    kind: ComponentKind = ComponentKind.SINGLE
    minimum: int = 1
    maximum: int | None = 1
    # Matches are the union of those with it and those without it.
    optional: bool = False
    negated: bool = False
    # Of a negated pair `!(B b ; C c)`, on c: the component b. An event of it is forbidden only after one of b.
    preceded_by: Component | None = None
    # Its place in the text of the pattern: names are instantiated in this order.
    position: int = 0

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for event_class in self.classes for name in event_class.types))

    @property
    def forbidden(self) -> tuple[Component, ...]:
        """Of a negated component: what must not occur, one after the other."""
        return (self,) if self.preceded_by is None else (self.preceded_by, self)

    @property
    def forbidden_text(self) -> str:
        """The names of what must not occur: `b`, or `(b ; c)`."""
        names = [component.variable for component in self.forbidden]
        return names[0] if len(names) == 1 else f"({' ; '.join(names)})"


@dataclass(frozen=True, slots=True, eq=False)
class Leaf(Interned):
    """A component that takes events, or, negated, forbids them."""

    component: Component


@dataclass(frozen=True, slots=True, eq=False)
class Sequence(Interned):
    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Conjunction(Interned):
    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Disjunction(Interned):
    parts: tuple[Pattern, ...]


Pattern = Leaf | Sequence | Conjunction | Disjunction


def components(pattern: Pattern) -> Iterator[Component]:
    """The components from left to right."""
    if isinstance(pattern, Leaf):
        yield from pattern.component.forbidden
    else:
        for part in pattern.parts:
            yield from components(part)


def is_linear(pattern: Pattern) -> bool:
    """A sequence of single and Kleene components, negated ones between them: what NFA^b runs (SASE+ §3.1)."""
    parts = pattern.parts if isinstance(pattern, Sequence) else (pattern,)
    return all(isinstance(part, Leaf) and part.component.kind is not ComponentKind.CLOSURE for part in parts)
