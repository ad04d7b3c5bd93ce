"""The places of a pattern and its alternatives: the semantics page §3 Patterns and Not lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from kleene.lang import tree


@dataclass(frozen=True, slots=True)
class BruteClass:
    """A type test with an optional predicate (§1); a type is the class of its own events."""

    types: tuple[str, ...]
    predicate: tree.Expression | None = None


@dataclass(frozen=True, slots=True, eq=False)
class BrutePlace:
    """One component: what may stand there, and how often. A closure is ZStream's, a list is SASE+'s."""

    name: str
    classes: tuple[BruteClass, ...]
    low: int = 1
    high: int | None = 1
    is_list: bool = False
    is_closure: bool = False
    # ZStream's `B^n`: n successive members instead of all.
    slides: bool = False

    @property
    def optional(self) -> bool:
        """`A?` and `A*` mean the union with and without; an empty closure group is not a union but one result."""
        return self.low == 0 and not self.is_closure

    @property
    def types(self) -> frozenset[str]:
        return frozenset(name for item in self.classes for name in item.types)


@dataclass(frozen=True, slots=True, eq=False)
class Never:
    """What must not occur at one point, each of these: one event, or events in order (`!(B ; C)`).

    `!(B | C)` and `!B & !C` forbid several.
    """

    options: tuple[tuple[BrutePlace, ...], ...]


@dataclass(frozen=True, slots=True, eq=False)
class InOrder:
    parts: tuple[Shape, ...]


@dataclass(frozen=True, slots=True, eq=False)
class BruteConjunction:
    parts: tuple[Shape, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Either:
    parts: tuple[Shape, ...]


Shape = BrutePlace | Never | InOrder | BruteConjunction | Either


def read_pattern(query: tree.Query) -> Shape:
    """The syntax tree with every component named; a second bare component of one type is `A_2`."""
    declared = {
        item.name: BruteClass(tuple(kind.name for kind in item.types), item.predicate)
        for item in query.declarations
        if isinstance(item, tree.ClassDeclaration)
    }
    return _Reader(declared, {}).shape(query.pattern)


@dataclass(frozen=True, slots=True)
class _Reader:
    declared: Mapping[str, BruteClass]
    # How many bare components of each type there have been.
    bare: dict[str, int]

    def shape(self, pattern: tree.Pattern) -> Shape:
        match pattern:
            case tree.Component():
                return self._place(pattern)
            case tree.Negation(tree.Disjunction(parts)):
                return Never(tuple(tuple(places(self.shape(part))) for part in parts))
            case tree.Negation(operand):
                return Never((tuple(places(self.shape(operand))),))
            case tree.Sequence(parts):
                return InOrder(tuple(self.shape(part) for part in parts))
            case tree.Disjunction(parts):
                return Either(tuple(self.shape(part) for part in parts))
            case tree.Conjunction(parts):
                shapes = tuple(self.shape(part) for part in parts)
                return BruteConjunction(shapes)
        raise NotImplementedError(f"no meaning for {pattern!r}")

    def _place(self, component: tree.Component) -> BrutePlace:
        classes = tuple(self.declared.get(item.name, BruteClass((item.name,))) for item in component.types)
        name = component.variable or self._own_name(component.types[0].name)
        repetition = component.repetition
        if repetition is None:
            return BrutePlace(name, classes)
        low, high = repetition.minimum, repetition.maximum
        if repetition.mark is tree.Mark.OPTIONAL:
            return BrutePlace(name, classes, low, high)
        if component.brackets:
            return BrutePlace(name, classes, low, high, is_list=True)
        return BrutePlace(name, classes, low, high, is_closure=True, slides=repetition.mark is tree.Mark.POWER)

    def _own_name(self, kind: str) -> str:
        self.bare[kind] = self.bare.get(kind, 0) + 1
        return kind if self.bare[kind] == 1 else f"{kind}_{self.bare[kind]}"


def places(shape: Shape | None, *, negated: bool = True) -> Iterator[BrutePlace]:
    """Every place below a shape in the order of the text."""
    match shape:
        case BrutePlace():
            yield shape
        case Never(options):
            if negated:
                yield from (place for option in options for place in option)
        case InOrder(parts) | BruteConjunction(parts) | Either(parts):
            for part in parts:
                yield from places(part, negated=negated)


def alternatives(shape: Shape) -> Iterator[Shape | None]:
    """The shapes without `|` and `?` whose results are united; None is the shape that holds no event (§3 Not lines)."""
    match shape:
        case BrutePlace():
            if shape.optional:
                yield None
            yield shape
        case Never():
            yield shape
        case Either(parts):
            for part in parts:
                yield from alternatives(part)
        case InOrder(parts) | BruteConjunction(parts):
            for choice in product(*(tuple(alternatives(part)) for part in parts)):
                yield _joined(type(shape), choice)


def _joined(kind: type[InOrder] | type[BruteConjunction], parts: tuple[Shape | None, ...]) -> Shape | None:
    """A sequence inside a sequence is one sequence; so is a conjunction inside a conjunction."""
    flat: list[Shape] = []
    for part in parts:
        if part is not None:
            flat.extend(part.parts if isinstance(part, kind) else (part,))
    if len(flat) < 2 and not any(isinstance(part, Never) for part in flat):
        return flat[0] if flat else None
    return kind(tuple(flat))
