"""Random nested disjunctions with common parts, and conditions within a branch, across branches, and on all of them.

The branches of a disjunction begin, end, or are conjoined with components of the same class under names of their own:
what the rewrites make one of. Conditions name components wherever they stand, so that many are true by absence (the
semantics page §2, Missing) of the matches that take another branch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count
from random import Random
from typing import Any

from kleene.testing.generators import GeneratedCase

_TYPES = "ABCD"
_ATTRIBUTES = frozenset({"id", "x", "s"})
# More components make streams of a few events match too rarely.
_MOST_COMPONENTS = 10


@dataclass(frozen=True)
class _Name:
    """A variable, and the branches that it stands in: numbers of a disjunction and of a branch of it."""

    text: str
    branches: tuple[tuple[int, int], ...]

    def meets(self, other: _Name) -> bool:
        """Whether some match has both."""
        own = dict(self.branches)
        return all(own.get(disjunction, branch) == branch for disjunction, branch in other.branches)


def nested_disjunction_case(rng: Random) -> GeneratedCase:
    return _Draft(rng).case()


class _Draft:
    """A case while it is drawn."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.names = (f"v{number}" for number in count())
        self.disjunctions = count()
        self.left = _MOST_COMPONENTS
        self.singles: list[_Name] = []
        self.lists: list[_Name] = []
        self.closures: list[_Name] = []
        self.negated: list[_Name] = []
        # The components at a place that branches have in common, of the same class.
        self.shared: list[list[_Name]] = []

    def luck(self, chance: float) -> bool:
        return self.rng.random() < chance

    def case(self) -> GeneratedCase:
        rng = self.rng
        pattern, kinds = self.disjunction((), 2)
        pattern, kinds = self.surrounded(pattern, kinds)
        clauses = self.conditions()
        where = f" WHERE {' AND '.join(clauses)}" if clauses else ""
        window = f"{rng.randint(6, 14)}{' EVENTS' if self.luck(0.08) else ''}{rng.choice(('', ' INCLUSIVE'))}"
        output = " OUTPUT NON_OVERLAP" if self.luck(0.06) else ""
        if self.luck(0.7):
            # Which match it is its id says; columns of every variable take time.
            shown = rng.sample(self.singles, 2)
            output += " RETURN " + ", ".join(f"{name.text}.{rng.choice(('ts', 'x'))} AS {name.text}" for name in shown)
        types = None
        if self.luck(0.2):
            types = {name: set(_ATTRIBUTES - {rng.choice(("x", "s", "id"))}) for name in _TYPES}
            types[rng.choice(_TYPES)] = set(_ATTRIBUTES)
        return GeneratedCase(f"PATTERN {pattern}{where} WITHIN {window}{output}", self.events(kinds), types)

    # Patterns: their text, and types of events that they match

    def disjunction(self, within: tuple[tuple[int, int], ...], depth: int) -> tuple[str, list[str]]:
        """Branches that have a start, an end, or a conjunct in common, sometimes two of these."""
        rng, own = self.rng, next(self.disjunctions)
        sign = rng.choice((";", ";", "&"))
        places = [rng.choice((0, -1))] if sign == ";" else [rng.choice((0, 1))]
        if self.luck(0.25):
            places = [0, -1]
        common = {place: rng.choice(("A", "A", "B", "C", "ANY(A, B)")) for place in places}
        groups: dict[int, list[_Name]] = {place: [] for place in common}
        branches = []
        for number in range(rng.choice((2, 2, 2, 3))):
            here = (*within, (own, number))
            branches.append(self.branch(sign, common, groups, here, depth))
        self.shared += groups.values()
        texts = [f"({text})" for text, _ in branches]
        if self.luck(0.12):
            texts.append(self.single((*within, (own, len(texts))))[0])
        return " | ".join(texts), rng.choice(branches)[1]

    def branch(
        self,
        sign: str,
        common: dict[int, str],
        groups: dict[int, list[_Name]],
        here: tuple[tuple[int, int], ...],
        depth: int,
    ) -> tuple[str, list[str]]:
        rng = self.rng
        parts = [self.inner(sign, here, depth)]
        for place, kind in common.items():
            own = kind if self.luck(0.93) else rng.choice(_TYPES)
            name = self.named(self.singles, here)
            groups[place].append(name)
            part = f"{own} {name.text}", [rng.choice(own[4:-1].split(", ") if own.startswith("ANY") else [own])]
            parts.insert(0 if place == 0 else len(parts), part)
        if sign == ";" and self.luck(0.1):
            parts.insert(rng.randint(1, len(parts) - 1), (self.negation(here), []))
        elif sign == ";" and self.luck(0.07):
            parts.insert(rng.randint(1, len(parts) - 1), self.closure(here))
        planted = [kinds for _, kinds in parts]
        if sign == "&":
            rng.shuffle(planted)
        return f" {sign} ".join(text for text, _ in parts), [kind for kinds in planted for kind in kinds]

    def inner(self, sign: str, here: tuple[tuple[int, int], ...], depth: int) -> tuple[str, list[str]]:
        """What a branch has for itself."""
        if depth > 1 and self.left > 4 and self.luck(0.3):
            text, kinds = self.disjunction(here, depth - 1)
            return f"({text})", kinds
        one, first = self.single(here)
        chance = self.rng.random() if self.left > 3 else 1.0
        if chance < 0.1:
            number = next(self.disjunctions)
            text, kinds = self.single((*here, (number, 1)))
            # The first one was drawn for the whole branch.
            self.singles[-2] = replace(self.singles[-2], branches=(*here, (number, 0)))
            return f"({one} | {text})", self.rng.choice((first, kinds))
        if chance < 0.2:
            other, second = self.single(here)
            inside = self.rng.choice((";", "&"))
            return f"({one} {inside} {other})", [*first, *second]
        if chance < 0.27 and sign == ";":
            kind, name = self.rng.choice(_TYPES), self.named(self.lists, here)
            return f"({one} ; {kind}{{1,2}} {name.text}[])", [*first, kind]
        return one, first

    def surrounded(self, disjunction: str, kinds: list[str]) -> tuple[str, list[str]]:
        """Something before it, after it, or beside it."""
        if self.luck(0.35):
            return disjunction, kinds
        one, own = self.single(())
        if self.luck(0.2):
            return f"({disjunction}) & {one}", [*kinds, *own]
        between = f" ; {self.negation(())}" if self.luck(0.15) else ""
        if not between and self.luck(0.1):
            one = one.replace(" ", "? ")
        if self.luck(0.7):
            return f"({disjunction}){between} ; {one}", [*kinds, *own]
        return f"{one}{between} ; ({disjunction})", [*own, *kinds]

    def single(self, here: tuple[tuple[int, int], ...]) -> tuple[str, list[str]]:
        kind = self.rng.choice(_TYPES)
        return f"{kind} {self.named(self.singles, here).text}", [kind]

    def negation(self, here: tuple[tuple[int, int], ...]) -> str:
        return f"!({self.rng.choice(_TYPES)} {self.named(self.negated, here).text})"

    def closure(self, here: tuple[tuple[int, int], ...]) -> tuple[str, list[str]]:
        kind = self.rng.choice(_TYPES)
        return f"{kind}{self.rng.choice(('+', '*', '^2'))} {self.named(self.closures, here).text}", [kind, kind]

    def named(self, group: list[_Name], here: tuple[tuple[int, int], ...]) -> _Name:
        self.left -= 1
        group.append(_Name(next(self.names), here))
        return group[-1]

    # Conditions

    def conditions(self) -> list[str]:
        rng = self.rng
        found = []
        if self.luck(0.35):
            found.append(rng.choice(("[id]", "[id]", "[id]", "[s]", "[id, s]")))
        kinds = [self.across, self.across, self.within, self.on_shared, self.either, self.of_one]
        kinds += [self.of_negated] * 2 * bool(self.negated) + [self.of_closure] * 2 * bool(self.closures)
        for _ in range(rng.choice((0, 1, 1, 2, 2, 3))):
            found += rng.choice(kinds)()
        return found

    def pairs(self, *, meeting: bool) -> list[tuple[_Name, _Name]]:
        names = self.singles
        return [(a, b) for n, a in enumerate(names) for b in names[:n] if a.meets(b) is meeting]

    def across(self) -> list[str]:
        """Compares components that no match has together."""
        pairs = self.pairs(meeting=False)
        return [self.compared(*self.rng.choice(pairs))] if pairs else []

    def within(self) -> list[str]:
        pairs = self.pairs(meeting=True)
        return [self.compared(*self.rng.choice(pairs))] if pairs else []

    def on_shared(self) -> list[str]:
        """The same of all components of a place, of each with its own branch, or of each with something around."""
        names = self.rng.choice(self.shared)
        around = [name for name in self.singles if not name.branches]
        if around and self.luck(0.4):
            other, sign = self.rng.choice(around), self.sign()
            return [f"{name.text}.x {sign} {other.text}.x" for name in names if self.luck(0.95)]
        if self.luck(0.4):
            beside = [[b for b in self.singles if b.meets(a) and b is not a] for a in names]
            return [
                self.compared(a, self.rng.choice(others)) for a, others in zip(names, beside, strict=True) if others
            ]
        test = self.alone("{0}")
        return [test.format(name.text) for name in names if self.luck(0.93)]

    def either(self) -> list[str]:
        """An OR of what is said of one branch and of another, or of one and the same."""
        rng = self.rng
        pairs = self.pairs(meeting=self.luck(0.4))
        if not pairs:
            return []
        one, other = rng.choice(pairs)
        if self.luck(0.15):
            return [f"not ({self.alone(one.text)} and {self.alone(other.text)})"]
        if self.luck(0.3):
            return [f"({self.compared(one, other)} or {self.alone(rng.choice(self.singles).text)})"]
        return [f"({self.alone(one.text)} or {self.alone(other.text)})"]

    def of_one(self) -> list[str]:
        return [self.alone(self.rng.choice(self.singles).text)]

    def of_negated(self) -> list[str]:
        """Of a negated component with something of its own branch, of another, or by itself."""
        name, other = self.rng.choice(self.negated), self.rng.choice(self.singles)
        if self.luck(0.25):
            return [f"{name.text}.x >= 1"]
        clause = f"{name.text}.x {self.sign()} {other.text}.x"
        return [f"({clause} or {name.text}.x = 1)" if self.luck(0.15) else clause]

    def of_closure(self) -> list[str]:
        """Of a closure's members, which choose them, or of the group."""
        name, other = self.rng.choice(self.closures), self.rng.choice(self.singles)
        if self.luck(0.4):
            return [f"{self.rng.choice(('sum', 'max', 'count'))}({name.text}.x) {self.sign()} {other.text}.x"]
        return [f"{name.text}.x {self.sign()} {other.text}.x"]

    def compared(self, one: _Name, other: _Name) -> str:
        if self.luck(0.1):
            third = self.rng.choice(self.singles)
            return f"{one.text}.x + {third.text}.x {self.sign()} {other.text}.x"
        if self.luck(0.15):
            return f"{one.text}.s {self.rng.choice(('=', '!='))} {other.text}.s"
        return f"{one.text}.x {self.sign()} {other.text}.x"

    def sign(self) -> str:
        return self.rng.choice(("<=", "<=", ">=", "!=", "=", "<"))

    def alone(self, name: str) -> str:
        tests = [f"{name}.x >= 1", f"{name}.x <= 2", f"{name}.s != 'w'", f"{name}.x IS NOT NULL", f"{name}.x IS NULL"]
        if self.lists and "{" not in name and self.luck(0.3):
            listed = self.rng.choice(self.lists).text
            tests = [f"count({listed}) {self.rng.choice(('= 0', '> 0', '= 1'))}", f"max({listed}.x) >= {name}.x"]
        return self.rng.choice(tests[:3] if self.luck(0.6) else tests)

    # The stream

    def events(self, kinds: list[str]) -> list[dict[str, Any]]:
        """Events that could fill one choice of branches, others among them."""
        rng, now, rows = self.rng, 0, []
        every = list(kinds)
        for _ in range(rng.randint(2, 4)):
            every.insert(rng.randint(0, len(every)), rng.choice(_TYPES))
        for kind in every:
            now += rng.choice((0, 1, 1, 1, 1))
            row = {"type": kind, "ts": now, "id": 1 if self.luck(0.9) else 2, "x": rng.choice((0, 1, 1, 1, 2, 2, None))}
            rows.append({**row, "s": rng.choice("uuuuv")})
        return rows
