"""Random conditions that only say what their parts may say.

Every formula is made of comparisons of one kind — on positive variables, on one negated variable, on a closure's
members, on a Kleene variable's take edge — because the semantics page §3 allows no mixture within a conjunct.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from kleene.testing.generators.patterns import FLAG, INTEGERS, REAL, TEXT, DrawnPart, Role

# Conditions on x tell events apart best; the last is every type's.
_SPOKEN_OF = ("x", "x", "x", "id", REAL, "ts")
_FUNCTIONS = ("sum", "avg", "min", "max", "first", "last", "count", "count")

Has = Callable[[DrawnPart, str], bool]
_SIGNS = ("=", "==", "!=", "<>", "≠", "<", "<=", "≤", ">", ">=", "≥", "<=", ">=", "!=")


@dataclass(frozen=True, slots=True)
class Speaker:
    """Draws comparisons about some parts; `about` must be mentioned in every one when it is given."""

    rng: Random
    has: Has
    parts: tuple[DrawnPart, ...]
    about: DrawnPart | None = None
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

    def _plain(self, part: DrawnPart) -> bool:
        return part.role is not Role.CLOSURE or self.about is part

    def _unary(self, value: str) -> str:
        rng, number = self.rng, self._constant()
        low, high = sorted((rng.randint(0, 3), rng.randint(0, 3)))
        no = "" if self.taking else rng.choice(("", "", "NOT "))
        tests = [f"{value} {rng.choice(_SIGNS)} {number}"] * 3
        second = rng.randint(0, 3)
        many = ", ".join(map(str, range(9, 25))) if number in ("1", "2") else ""
        tests += [f"{value} {no}IN ({number}, {second}{many and f', {many}'})", f"{value} {no}BETWEEN {low} AND {high}"]
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

    def _text_comparison(self, about: DrawnPart) -> str:
        rng = self.rng
        left = f"{about.variable}[i].{TEXT}" if self.taking else self._attribute(about, TEXT)
        others = [part for part in self.parts if self.has(part, TEXT) and self._plain(part) and part is not about]
        right = (
            self._attribute(rng.choice(others), TEXT) if others and rng.random() < 0.5 else rng.choice(("'u'", "'v'"))
        )
        return f"{left} {rng.choice(('CONTAINS', '=', '!=', '<', '>='))} {right}"

    def _subject(self, about: DrawnPart) -> str | None:
        """The left side: what the comparison is about, so `a[i]` itself on a take edge."""
        names = [name for name in _SPOKEN_OF[:-1] if self.has(about, name)]
        if not self.taking or not names:
            return self._number(about)
        text = f"{about.variable}[i].{self.rng.choice(names)}"
        return self._calculated(text) if self.rng.random() < self.arithmetic else text

    def _number(self, part: DrawnPart) -> str | None:
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

    def _value(self, part: DrawnPart, name: str) -> str:
        """A single value of a part: an attribute, or an aggregate where the part is a list."""
        if part.role is Role.KLEENE and not (self.taking and part is self.about):
            return self.rng.choice((self._attribute(part, name), self._aggregate(part, name)))
        if part.role is Role.CLOSURE and part is not self.about:
            return self._aggregate(part, name)
        if self.taking and part is self.about and self.rng.random() < 0.4:
            return self._so_far(part, name)
        return self._attribute(part, name)

    def _attribute(self, part: DrawnPart, name: str) -> str:
        v = part.variable
        if self.taking and part is self.about:
            return self.rng.choice((f"{v}[i].{name}", f"{v}[i-1].{name}", f"{v}[i-1].{name}", f"{v}[1].{name}"))
        if part.role is Role.KLEENE:
            which = self.rng.choice(("1", f"{v}.LEN", "1", f"{v}.LEN", "2", "3"))
            return f"{v}[{which}].{name}"
        return f"{v}.{name}"

    def _aggregate(self, part: DrawnPart, name: str) -> str:
        v = part.variable
        over = self.rng.choice((v, f"{v}[..]")) if part.role is Role.KLEENE else v
        function = self.rng.choice(_FUNCTIONS)
        return self.rng.choice((f"{function}({over}.{name})",) * 3 + (f"count({over})", f"{v}.LEN"))

    def _so_far(self, part: DrawnPart, name: str) -> str:
        v = part.variable
        function = self.rng.choice(_FUNCTIONS)
        return self.rng.choice((f"{function}({v}[..i-1].{name})", f"count({v}[..i-1])", f"{v}[i].{name}"))
