"""Random valid queries: patterns as trees of parts, and conditions that only say what their parts may say.

Every formula is made of comparisons of one kind — on positive variables, on one negated variable, on a closure's
members, on a Kleene variable's take edge — because the semantics page §3 allows no mixture within a conjunct.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from random import Random
from typing import Any

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
class Part:
    """One component. A part without a variable that conditions can name has `variable` None."""

    role: Role
    types: tuple[str, ...]
    variable: str | None
    text: str
    # How many events a matching stream may give it.
    low: int = 1
    high: int = 1


@dataclass(frozen=True, slots=True)
class Tree:
    """`;`, `&`, `|` over parts and trees."""

    sign: str
    below: tuple[Tree | Part, ...]


@dataclass(slots=True)
class Names:
    """Variables handed out so far, so that none is used twice."""

    variables: Iterator[str] = field(default_factory=lambda: iter("abcdefghjklmnopq"))
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


def parts_of(node: Tree | Part) -> Iterator[Part]:
    if isinstance(node, Part):
        yield node
        return
    for child in node.below:
        yield from parts_of(child)


# Patterns ----------------------------------------------------------------------------------------------------------


def draw_line(rng: Random, names: Names, wishes: Wishes, lengths: Sequence[int] = (2, 2, 3, 3, 4)) -> Tree:
    """A sequence of components, at least one of which must be there."""
    drawn = [draw_part(rng, names, _role(rng, wishes), wishes) for _ in range(rng.choice(lengths))]
    if all(part.low == 0 for part in drawn):
        drawn[rng.randrange(len(drawn))] = draw_part(rng, names, Role.SINGLE, wishes)
    if rng.random() < wishes.closure:
        drawn.insert(rng.randint(0, len(drawn)), draw_part(rng, names, Role.CLOSURE, wishes))
    below: list[Tree | Part] = [*drawn]
    if rng.random() < wishes.negation:
        for _ in range(rng.choice((1, 1, 2))):
            below.insert(rng.randint(0, len(below)), draw_negation(rng, names, wishes))
    return Tree(";", tuple(below))


def _role(rng: Random, wishes: Wishes) -> Role:
    luck = rng.random()
    if luck < wishes.kleene:
        return Role.KLEENE
    return Role.OPTIONAL if luck < wishes.kleene + wishes.optional else Role.SINGLE


def draw_part(rng: Random, names: Names, role: Role, wishes: Wishes) -> Part:
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
        mark, low, high = rng.choice(_KLEENE)
        return Part(role, types, name, f"{spelled}{mark} {name}[]", low, high)
    if role is Role.CLOSURE:
        mark, low, high = rng.choice(_CLOSURE)
        return Part(role, types, name, f"{spelled}{mark}{suffix}", low, high)
    if role is Role.OPTIONAL:
        return Part(role, types, name, f"{spelled}?{suffix}", 0, 1)
    return Part(role, types, name, f"{spelled}{suffix}")


_KLEENE = (("+", 1, 3), ("+", 1, 3), ("*", 0, 2), ("^2", 2, 2), ("{1,2}", 1, 2), ("{2,3}", 2, 3), ("{0,2}", 0, 2))
_CLOSURE = (("+", 1, 3), ("*", 0, 3), ("^1", 1, 3), ("^2", 2, 4))


def _types(rng: Random, wishes: Wishes) -> tuple[tuple[str, ...], str, bool]:
    if rng.random() < wishes.classes:
        name = rng.choice(tuple(CLASSES))
        return CLASSES[name][0], name, True
    if rng.random() < wishes.any_of:
        types = tuple(rng.sample(TYPES[: wishes.kinds], 2))
        return types, f"ANY({', '.join(types)})", True
    name = rng.choice(TYPES[: wishes.kinds])
    return (name,), name, False


def draw_bare_line(rng: Random) -> Tree:
    """`A ; B ; A`: nothing has a name of its own, so that no condition can speak of it."""
    kinds = [rng.choice(TYPES[:2]) for _ in range(rng.randint(2, 3))]
    return Tree(";", tuple(Part(Role.SINGLE, (kind,), None, kind) for kind in kinds))


def draw_negation(rng: Random, names: Names, wishes: Wishes) -> Tree | Part:
    """`!(B b)`, `~(B b)`, `!(B b | C c)`, `!(B b) & !(C c)`: one point of a sequence."""
    shape = rng.choice(("one", "one", "one", "either", "both"))
    parts = [draw_part(rng, names, Role.SINGLE, wishes) for _ in range(1 if shape == "one" else 2)]
    negated = [Part(Role.NEGATED, p.types, p.variable, p.text) for p in parts]
    if shape == "one":
        mark = rng.choice(("!", "~", "¬"))
        return Part(Role.NEGATED, parts[0].types, parts[0].variable, f"{mark}({parts[0].text})")
    return Tree("!|" if shape == "either" else "!&", tuple(negated))


def draw_tree(rng: Random, names: Names, wishes: Wishes, signs: str, depth: int) -> Tree:
    """A pattern that is no line: its top operator is drawn from `signs`, its operands are parts and trees."""
    return _tree(rng, names, wishes, rng.choice(signs), depth, under_and=False)


def _tree(rng: Random, names: Names, wishes: Wishes, sign: str, depth: int, under_and: bool) -> Tree:
    """Under `&` a negation may stand at no end, so its neighbours are always present; a closure may not stand there."""
    under_and = under_and or sign == "&"
    count = rng.choice((2, 2, 3)) if depth < 2 else 2
    below = [_operand(rng, names, wishes, sign, depth, under_and) for _ in range(count)]
    if sign == ";" and rng.random() < wishes.negation:
        below.insert(rng.randint(1, len(below) - 1), draw_negation(rng, names, wishes))
    elif sign == ";" and not under_and and not names.closed and rng.random() < wishes.closure:
        names.closed = True
        below.insert(rng.randint(1, len(below) - 1), draw_part(rng, names, Role.CLOSURE, wishes))
    elif sign != "|" and isinstance(below[0], Part) and rng.random() < wishes.optional:
        below[0] = draw_part(rng, names, Role.OPTIONAL, wishes)
        rng.shuffle(below)
    return Tree(sign, tuple(below))


def _operand(rng: Random, names: Names, wishes: Wishes, sign: str, depth: int, under_and: bool) -> Tree | Part:
    if depth > 1 and rng.random() < 0.6:
        other = rng.choice([s for s in ";&|" if s != sign])
        return _tree(rng, names, wishes, other, depth - 1, under_and)
    if rng.random() >= wishes.kleene:
        return draw_part(rng, names, Role.SINGLE, wishes)
    part = draw_part(rng, names, Role.KLEENE, wishes)
    return part if part.low > 0 else draw_part(rng, names, Role.SINGLE, wishes)


def render(node: Tree | Part, rng: Random, *, top: bool = True) -> str:
    if isinstance(node, Part):
        return node.text
    if node.sign == "!|":
        return "!(" + " | ".join(part.text for part in parts_of(node)) + ")"
    if node.sign == "!&":
        return "(" + " & ".join(f"!({part.text})" for part in parts_of(node)) + ")"
    texts = [render(child, rng, top=False) for child in node.below]
    if node.sign == ";" and (len(texts) == 1 or rng.random() < 0.5):
        return f"SEQ({', '.join(texts)})"
    text = f" {node.sign} ".join(texts)
    return text if top else f"({text})"


# Conditions --------------------------------------------------------------------------------------------------------

# Conditions on x tell events apart best; the last is every type's.
_SPOKEN_OF = ("x", "x", "x", "id", REAL, "ts")
_FUNCTIONS = ("sum", "avg", "min", "max", "first", "last", "count", "count")

Has = Callable[[Part, str], bool]
_SIGNS = ("=", "==", "!=", "<>", "≠", "<", "<=", "≤", ">", ">=", "≥", "<=", ">=", "!=")


@dataclass(frozen=True, slots=True)
class Speaker:
    """Draws comparisons about some parts; `about` must be mentioned in every one when it is given."""

    rng: Random
    has: Has
    parts: tuple[Part, ...]
    about: Part | None = None
    taking: bool = False
    arithmetic: float = 0.15
    # Values of parameters that the query uses; drawing adds to it.
    params: dict[str, Any] = field(default_factory=dict)

    def can_speak(self) -> bool:
        parts = self.parts if self.about is None else (self.about,)
        return any(self.has(part, name) for part in parts for name in INTEGERS)

    def formula(self, depth: int) -> str:
        """Comparisons under AND, OR and NOT; a condition on `a[i]` may not be negated."""
        shape = self.rng.choice(("or", "and", "not", "or")) if depth else "one"
        if self.taking and shape == "not":
            shape = "or"
        if shape == "one":
            return self.comparison()
        if shape == "not":
            return f"{self.rng.choice(('not ', 'NOT ', '¬'))}({self.formula(depth - 1)})"
        word = f" {self.rng.choice((shape, shape.upper(), '∨' if shape == 'or' else '∧'))} "
        return f"({self.formula(depth - 1)}{word}{self.formula(self.rng.randrange(depth))})"

    def comparison(self) -> str:
        rng = self.rng
        about = self.about or rng.choice(self.parts)
        kind = rng.random()
        if kind < 0.12 and self.has(about, TEXT) and self._plain(about):
            return self._text_comparison(about)
        if kind < 0.2 and self.has(about, FLAG) and self._plain(about) and not self.taking:
            flag = self._attribute(about, FLAG)
            return rng.choice((flag, f"not {flag}", f"{flag} = TRUE", f"{flag} != false"))
        left = self._subject(about)
        if left is None:
            return f"{self._attribute(about, 'ts')} > 0"
        if kind < 0.5:
            return self._unary(left)
        other = about if self.taking and rng.random() < 0.6 else rng.choice(self.parts)
        right = self._number(other) or self._constant()
        if rng.random() < 0.1 and self.about is None and left[0].isalpha() and right[0].isalpha():
            return f"{left} = {right} = {rng.randint(0, 3)}"
        return f"{left} {rng.choice(_SIGNS)} {right}"

    def _plain(self, part: Part) -> bool:
        return part.role is not Role.CLOSURE or self.about is part

    def _unary(self, value: str) -> str:
        rng, number = self.rng, self._constant()
        low, high = sorted((rng.randint(0, 3), rng.randint(0, 3)))
        no = "" if self.taking else rng.choice(("", "", "NOT "))
        tests = [f"{value} {rng.choice(_SIGNS)} {number}"] * 3
        tests += [f"{value} {no}IN ({number}, {rng.randint(0, 3)})", f"{value} {no}BETWEEN {low} AND {high}"]
        if not self.taking and "count" not in value and "LEN" not in value:
            tests.append(f"{value} IS {no}NULL")
        return rng.choice(tests)

    def _constant(self) -> str:
        value = self.rng.choice((0, 1, 1, 2, 2, 3, 0.5, 1.5))
        if self.rng.random() < 0.9:
            return str(value)
        name = f"p{len(self.params)}"
        self.params[name] = value
        return f":{name}"

    def _text_comparison(self, about: Part) -> str:
        rng = self.rng
        left = f"{about.variable}[i].{TEXT}" if self.taking else self._attribute(about, TEXT)
        others = [part for part in self.parts if self.has(part, TEXT) and self._plain(part) and part is not about]
        right = (
            self._attribute(rng.choice(others), TEXT) if others and rng.random() < 0.5 else rng.choice(("'u'", "'v'"))
        )
        return f"{left} {rng.choice(('CONTAINS', '=', '!=', '<', '>='))} {right}"

    def _subject(self, about: Part) -> str | None:
        """The left side: what the comparison is about, so `a[i]` itself on a take edge."""
        names = [name for name in _SPOKEN_OF[:-1] if self.has(about, name)]
        if not self.taking or not names:
            return self._number(about)
        text = f"{about.variable}[i].{self.rng.choice(names)}"
        return self._calculated(text) if self.rng.random() < self.arithmetic else text

    def _number(self, part: Part) -> str | None:
        """A numeric expression about a part, perhaps with arithmetic around it."""
        names = [name for name in _SPOKEN_OF if self.has(part, name)]
        if not names:
            return None
        text = self._value(part, self.rng.choice(names))
        return self._calculated(text) if self.rng.random() < self.arithmetic else text

    def _calculated(self, text: str) -> str:
        rng, number = self.rng, self.rng.randint(0, 3)
        other = self._value(part, "x") if self.has(part := rng.choice(self.parts), "x") else str(number)
        return rng.choice(
            (
                f"{text} + {number}",
                f"{text} - {other}",
                f"{text} * {number}",
                f"{number} / {text}",
                f"{text} / 2",
                f"({text} - 3) % 2",
                f"{text} % {other}",
                f"-{text}",
                f"50% * {text}",
                f"(1 + 20%) * {text}",
                f"{text} + 9223372036854775806",
                f"2.5 * ({text} + {other})",
            )
        )

    def _value(self, part: Part, name: str) -> str:
        """A single value of a part: an attribute, or an aggregate where the part is a list."""
        if part.role is Role.KLEENE and not (self.taking and part is self.about):
            return self.rng.choice((self._attribute(part, name), self._aggregate(part, name)))
        if part.role is Role.CLOSURE and part is not self.about:
            return self._aggregate(part, name)
        if self.taking and part is self.about and self.rng.random() < 0.4:
            return self._so_far(part, name)
        return self._attribute(part, name)

    def _attribute(self, part: Part, name: str) -> str:
        v = part.variable
        if self.taking and part is self.about:
            return self.rng.choice((f"{v}[i].{name}", f"{v}[i-1].{name}", f"{v}[i-1].{name}", f"{v}[1].{name}"))
        if part.role is Role.KLEENE:
            return self.rng.choice((f"{v}[1].{name}", f"{v}[{v}.LEN].{name}"))
        return f"{v}.{name}"

    def _aggregate(self, part: Part, name: str) -> str:
        v = part.variable
        over = self.rng.choice((v, f"{v}[..]")) if part.role is Role.KLEENE else v
        function = self.rng.choice(_FUNCTIONS)
        return self.rng.choice((f"{function}({over}.{name})",) * 3 + (f"count({over})", f"{v}.LEN"))

    def _so_far(self, part: Part, name: str) -> str:
        v = part.variable
        function = self.rng.choice(_FUNCTIONS)
        return self.rng.choice((f"{function}({v}[..i-1].{name})", f"count({v}[..i-1])", f"{v}[i].{name}"))
