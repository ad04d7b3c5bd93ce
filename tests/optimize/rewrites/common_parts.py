"""Random disjunctions whose branches have components of the same classes, and conditions that often agree on them."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from tests.optimize.rewrites.matching import bound_case

from kleene.errors import UnknownAttribute
from kleene.testing.generators import GeneratedCase
from kleene.testing.generators.cases import COLUMN_TYPES

_TYPES = ("A", "B", "C")
_ATTRIBUTES = sorted(COLUMN_TYPES.keys() - {"type", "ts"})


def common_case(rng: Random) -> GeneratedCase:
    case = _Draft(rng).case()
    try:
        bound_case(case)
    except UnknownAttribute:
        return replace(case, types=None)
    return case


class _Draft:
    """A case while it is drawn; variables are kept with the branch that they stand in."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.names = iter("abcdefghijklmnopqrstuvwxyz")
        # The components at each shared place, one a branch; those that stand in one branch; those around all of them.
        self.shared: dict[str, list[str]] = {}
        self.alone: list[list[str]] = []
        self.around: list[str] = []
        self.negated: list[str] = []
        self.kleene: list[str] = []

    def luck(self, chance: float) -> bool:
        return self.rng.random() < chance

    def case(self) -> GeneratedCase:
        rng = self.rng
        sign = rng.choice((";", ";", "&"))
        places = rng.choice((("start",), ("end",), ("start", "end")))
        kinds = {place: rng.choice(("A", "A", "B", "ANY(A, B)")) for place in places}
        branches = [self.branch(sign, kinds) for _ in range(rng.choice((2, 2, 3)))]
        if self.luck(0.15):
            branches.append(self.single())
        pattern = self.outside(" | ".join(f"({branch})" for branch in branches))
        conditions = self.conditions()
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        types = None if self.luck(0.7) else {name: {*_ATTRIBUTES} - {rng.choice(("x", "s", "y"))} for name in "ABCD"}
        return GeneratedCase(f"PATTERN {pattern}{where} WITHIN {rng.randint(5, 14)}", self.events(), types)

    def branch(self, sign: str, kinds: dict[str, str]) -> str:
        self.alone.append([])
        texts = [self.inner(sign)]
        for place, kind in kinds.items():
            name = next(self.names)
            self.shared.setdefault(place, []).append(name)
            own = kind if self.luck(0.95) else "C"
            texts.insert(0 if place == "start" else len(texts), f"{own} {name}")
        if sign == ";" and self.luck(0.12):
            texts.insert(self.rng.randint(1, len(texts) - 1), self.negation())
        return f" {sign} ".join(texts)

    def inner(self, sign: str) -> str:
        """What a branch has for itself; sometimes a disjunction again."""
        one = self.single()
        if self.luck(0.15):
            return f"({one} | {self.single()})"
        if sign == ";" and self.luck(0.15):
            name = next(self.names)
            self.kleene.append(name)
            return f"{one} ; {self.rng.choice(_TYPES)}{{1,2}} {name}[]"
        return f"({one} ; {self.single()})" if self.luck(0.15) else one

    def single(self) -> str:
        name = next(self.names)
        (self.alone[-1] if self.alone else self.around).append(name)
        return f"{self.rng.choice(_TYPES)} {name}"

    def negation(self) -> str:
        name = next(self.names)
        self.negated.append(name)
        return f"!({self.rng.choice(_TYPES)} {name})"

    def outside(self, disjunction: str) -> str:
        if self.luck(0.6):
            return disjunction
        name = next(self.names)
        self.around.append(name)
        between = f"{self.negation()} ; " if self.luck(0.5) else ""
        return f"({disjunction}) ; {between}{self.rng.choice(_TYPES)} {name}"

    # Conditions

    def conditions(self) -> list[str]:
        found = ["[id]"] if self.luck(0.4) else []
        for _ in range(self.rng.choice((0, 1, 1, 2))):
            found += self.rng.choice((self.on_shared, self.on_shared, self.across, self.of_one, self.of_negated))()
        return found

    def on_shared(self) -> list[str]:
        """The same of all components of a shared place; sometimes one is left out."""
        names = self.rng.choice([*self.shared.values()])
        test = self.test("{0}", self.rng.choice(self.around) if self.around and self.luck(0.3) else None)
        return [test.format(name) for name in names if self.luck(0.93)]

    def across(self) -> list[str]:
        """A shared component with its own branch, mostly."""
        found = []
        for names in self.shared.values():
            for name, beside in zip(names, self.alone, strict=True):
                if beside and self.luck(0.5):
                    others = beside if self.luck(0.9) else self.rng.choice(self.alone)
                    found.append(self.test(name, self.rng.choice(others or beside)))
        return found

    def of_one(self) -> list[str]:
        names = [*self.around, *(name for group in (*self.alone, *self.shared.values()) for name in group)]
        one = self.test(self.rng.choice(names), None)
        return [one if self.luck(0.6) else f"({one} or {self.test(self.rng.choice(names), None)})"]

    def of_negated(self) -> list[str]:
        if not self.negated:
            return self.of_one()
        name = self.rng.choice(self.negated)
        others = self.rng.choice([*self.shared.values()])
        return [f"{name}.x <= {other}.x" for other in (others if self.luck(0.7) else others[:1])]

    def test(self, name: str, other: str | None) -> str:
        rng = self.rng
        sign = rng.choice(("<=", ">=", "!=", "=", ">"))
        if other is not None:
            left, right = rng.choice(((name, other), (other, name)))
            return f"{left}.x {sign} {right}.x"
        kinds = (f"{name}.x >= 1", f"{name}.x <= 2", f"{name}.s != 'u'", f"{name}.x IS NOT NULL", f"{name}.x IS NULL")
        counted = tuple(f"count({kleene}) {rng.choice(('= 0', '> 0', '= 1'))}" for kleene in self.kleene)
        return rng.choice((*kinds[:3], *kinds, *counted)) if "{" not in name else rng.choice((*kinds[:3], *kinds))

    # The stream

    def events(self) -> list[dict[str, Any]]:
        rng, now, rows = self.rng, 0, []
        for _ in range(rng.randint(5, 8)):
            now += rng.choice((0, 1, 1, 1, 2))
            row = {"type": rng.choice("AAABBCD"), "ts": now, "id": 1 if self.luck(0.85) else 2}
            rows.append({**row, "x": rng.choice((0, 1, 1, 2, 3, None)), "y": 0.5, "s": rng.choice("uv"), "f": True})
        return rows
