"""Random patterns: trees of parts that are valid by the semantics page §3 Patterns, Negation and ZStream's closure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from random import Random

TYPES = ("A", "B", "C", "D")
INTEGERS, REAL, TEXT, FLAG = ("id", "x"), "y", "s", "f"
ATTRIBUTES = (*INTEGERS, REAL, TEXT, FLAG)
# Event classes that a query may declare and use: the types, and the declaration's right side.
CLASSES = {
    "Large": (("A",), "A WHERE x > 0"),
    "Mixed": (("B", "C"), "ANY(B, C)"),
    "Other": (("A", "D"), "ANY(A, D) WHERE s != 'u' or not f"),
}


class Role(Enum):
    SINGLE = "A a"
    OPTIONAL = "A? a"
    KLEENE = "A+ a[]"
    CLOSURE = "A+"
    NEGATED = "!(A a)"


@dataclass(frozen=True, slots=True)
class DrawnPart:
    """One component. A part without a variable that conditions can name has `variable` None."""

    role: Role
    types: tuple[str, ...]
    variable: str | None
    text: str
    # How many events a matching stream may give it.
    low: int = 1
    high: int = 1


@dataclass(frozen=True, slots=True)
class DrawnTree:
    """`;`, `&`, `|` over parts and trees."""

    sign: str
    below: tuple[DrawnTree | DrawnPart, ...]


@dataclass(slots=True)
class VariableNames:
    """Variables handed out so far, so that none is used twice."""

    variables: Iterator[str] = field(default_factory=lambda: iter("abcdefghjklmnopqrtuvwz"))
    bare: set[str] = field(default_factory=set)
    # Whether the pattern has its closure: one beside another has no meaning.
    closed: bool = False


@dataclass(frozen=True, slots=True)
class Wishes:
    """How likely a feature is to be drawn where it may stand."""

    kleene: float = 0.0
    optional: float = 0.0
    closure: float = 0.0
    negation: float = 0.0
    any_of: float = 0.1
    bare: float = 0.1
    classes: float = 0.04
    # How many types components are drawn from; fewer make more events able to stand at a place.
    kinds: int = 4
    # A negation behind the line, and behind it a part that may be absent, so that the negation may be the end.
    tail: float = 0.0
    # A negation of two components one after the other.
    pairs: float = 0.0


def parts_of(node: DrawnTree | DrawnPart) -> Iterator[DrawnPart]:
    if isinstance(node, DrawnPart):
        yield node
        return
    for child in node.below:
        yield from parts_of(child)


def pairs_of(node: DrawnTree | DrawnPart) -> Iterator[tuple[DrawnPart, ...]]:
    """The components of each negated pair."""
    if isinstance(node, DrawnTree):
        if node.sign == "!;":
            yield tuple(parts_of(node))
        for child in node.below:
            yield from pairs_of(child)


def draw_line(rng: Random, names: VariableNames, wishes: Wishes, lengths: Sequence[int] = (2, 2, 3, 3, 4)) -> DrawnTree:
    """A sequence of components, at least one of which must be there."""
    drawn = [draw_part(rng, names, _role(rng, wishes), wishes) for _ in range(rng.choice(lengths))]
    if all(part.low == 0 for part in drawn):
        drawn[rng.randrange(len(drawn))] = draw_part(rng, names, Role.SINGLE, wishes)
    if rng.random() < wishes.closure:
        drawn.insert(rng.randint(0, len(drawn)), draw_part(rng, names, Role.CLOSURE, wishes))
    below: list[DrawnTree | DrawnPart] = [*drawn]
    if rng.random() < wishes.negation:
        for _ in range(rng.choice((1, 1, 2))):
            below.insert(rng.randint(0, len(below)), draw_negation(rng, names, wishes))
    if wishes.tail and rng.random() < wishes.tail:
        role = rng.choice((Role.OPTIONAL, Role.KLEENE))
        below += [draw_negation(rng, names, wishes), draw_part(rng, names, role, wishes, _MAYBE_NONE)]
    return DrawnTree(";", tuple(below))


def _role(rng: Random, wishes: Wishes) -> Role:
    luck = rng.random()
    if luck < wishes.kleene:
        return Role.KLEENE
    return Role.OPTIONAL if luck < wishes.kleene + wishes.optional else Role.SINGLE


_KLEENE = (("+", 1, 3), ("+", 1, 3), ("*", 0, 2), ("^2", 2, 2), ("{1,2}", 1, 2), ("{2,3}", 2, 3), ("{0,2}", 0, 2))
_MAYBE_NONE = (("*", 0, 2), ("{0,2}", 0, 2))
_CLOSURE = (("+", 1, 3), ("*", 0, 3), ("^1", 1, 3), ("^2", 2, 4))


def draw_part(
    rng: Random, names: VariableNames, role: Role, wishes: Wishes, marks: Sequence[tuple[str, int, int]] = _KLEENE
) -> DrawnPart:
    """A component; `marks` are those that a Kleene one may have."""
    types, spelled, is_any = _types(rng, wishes)
    bare = not is_any and rng.random() < wishes.bare and types[0] not in names.bare
    if role is Role.CLOSURE and not is_any and types[0] not in names.bare:
        bare = bare or rng.random() < 0.5
    if bare and role is not Role.KLEENE:
        names.bare.add(types[0])
        name, suffix = types[0], ""
    else:
        name = next(names.variables)
        suffix = f" {name}"
    if role is Role.KLEENE:
        mark, low, high = rng.choice(marks)
        return DrawnPart(role, types, name, f"{spelled}{mark} {name}[]", low, high)
    if role is Role.CLOSURE:
        mark, low, high = rng.choice(_CLOSURE)
        return DrawnPart(role, types, name, f"{spelled}{mark}{suffix}", low, high)
    if role is Role.OPTIONAL:
        return DrawnPart(role, types, name, f"{spelled}?{suffix}", 0, 1)
    return DrawnPart(role, types, name, f"{spelled}{suffix}")


def _types(rng: Random, wishes: Wishes) -> tuple[tuple[str, ...], str, bool]:
    if rng.random() < wishes.classes:
        name = rng.choice(tuple(CLASSES))
        return CLASSES[name][0], name, True
    if rng.random() < wishes.any_of:
        types = tuple(rng.sample(TYPES[: wishes.kinds], 2))
        return types, f"ANY({', '.join(types)})", True
    name = rng.choice(TYPES[: wishes.kinds])
    return (name,), name, False


def draw_bare_line(rng: Random) -> DrawnTree:
    """`A ; B ; A`: nothing has a name of its own, so that no condition can speak of it."""
    kinds = [rng.choice(TYPES[:2]) for _ in range(rng.randint(2, 3))]
    return DrawnTree(";", tuple(DrawnPart(Role.SINGLE, (kind,), None, kind) for kind in kinds))


def draw_negation(rng: Random, names: VariableNames, wishes: Wishes) -> DrawnTree | DrawnPart:
    """`!(B b)`, `~(B b)`, `!(B b | C c)`, `!(B b) & !(C c)`, `!(B b ; C c)`: one point of a sequence."""
    shape = rng.choice(("one", "one", "one", "either", "both"))
    if wishes.pairs and rng.random() < wishes.pairs:
        shape = "pair"
    parts = [draw_part(rng, names, Role.SINGLE, wishes) for _ in range(1 if shape == "one" else 2)]
    negated = [DrawnPart(Role.NEGATED, p.types, p.variable, p.text) for p in parts]
    if shape == "one":
        mark = rng.choice(("!", "~", "¬"))
        return DrawnPart(Role.NEGATED, parts[0].types, parts[0].variable, f"{mark}({parts[0].text})")
    return DrawnTree({"either": "!|", "both": "!&", "pair": "!;"}[shape], tuple(negated))


def draw_tree(rng: Random, names: VariableNames, wishes: Wishes, signs: str, depth: int) -> DrawnTree:
    """A pattern that is no line: its top operator is drawn from `signs`, its operands are parts and trees."""
    return _tree(rng, names, wishes, rng.choice(signs), depth, under_and=False)


def _tree(rng: Random, names: VariableNames, wishes: Wishes, sign: str, depth: int, under_and: bool) -> DrawnTree:
    """Under `&` a negation may stand at no end, so its neighbours are always present; a closure may not stand there."""
    under_and = under_and or sign == "&"
    count = rng.choice((2, 2, 3)) if depth < 2 else 2
    below = [_operand(rng, names, wishes, sign, depth, under_and) for _ in range(count)]
    if sign == ";" and rng.random() < wishes.negation:
        below.insert(rng.randint(1, len(below) - 1), draw_negation(rng, names, wishes))
    elif sign == ";" and not under_and and not names.closed and rng.random() < wishes.closure:
        names.closed = True
        below.insert(rng.randint(1, len(below) - 1), draw_part(rng, names, Role.CLOSURE, wishes))
    elif sign != "|" and isinstance(below[0], DrawnPart) and rng.random() < wishes.optional:
        below[0] = draw_part(rng, names, Role.OPTIONAL, wishes)
        rng.shuffle(below)
    return DrawnTree(sign, tuple(below))


def _operand(
    rng: Random, names: VariableNames, wishes: Wishes, sign: str, depth: int, under_and: bool
) -> DrawnTree | DrawnPart:
    if depth > 1 and rng.random() < 0.6:
        other = rng.choice([s for s in ";&|" if s != sign])
        return _tree(rng, names, wishes, other, depth - 1, under_and)
    if rng.random() >= wishes.kleene:
        return draw_part(rng, names, Role.SINGLE, wishes)
    part = draw_part(rng, names, Role.KLEENE, wishes)
    return part if part.low > 0 else draw_part(rng, names, Role.SINGLE, wishes)


def render(node: DrawnTree | DrawnPart, rng: Random, *, top: bool = True) -> str:
    if isinstance(node, DrawnPart):
        return node.text
    if node.sign in ("!|", "!;"):
        return "!(" + f" {node.sign[1]} ".join(part.text for part in parts_of(node)) + ")"
    if node.sign == "!&":
        return "(" + " & ".join(f"!({part.text})" for part in parts_of(node)) + ")"
    texts = [render(child, rng, top=False) for child in node.below]
    if node.sign == ";" and (len(texts) == 1 or rng.random() < 0.5):
        return f"SEQ({', '.join(texts)})"
    text = f" {node.sign} ".join(texts)
    return text if top else f"({text})"
