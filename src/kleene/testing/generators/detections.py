"""Random queries in EQL, timers included, with events that they may well detect something in."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

from kleene.algebra.eql_query import EqlQuery
from kleene.errors import ExceptionCondition
from kleene.testing.generators.streams import COLUMNS, TYPES, GeneratedStreamCase

# What a query of each stratum has at least one of.
STRATA = ("chain", "union", "iteration", "exception", "timer")
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")


def random_detection_case(rng: Random, stratum: str) -> GeneratedStreamCase:
    """One query of a stratum, in the spelling with `@`, and its rows."""
    start = "began" if rng.random() < 0.4 else None
    tie_breaker = "seq" if rng.random() < 0.25 else None
    while True:
        # An exception is sometimes compared with what is not bound where it occurs.
        with suppress(ExceptionCondition):
            text = _QueryDraft(rng, stratum).query()
            case = GeneratedStreamCase(text, random_detection_rows(rng, start, tie_breaker), start, tie_breaker)
            EqlQuery(text, spelling="next").bind(case.schema)
            return case


def random_detection_rows(rng: Random, start: str | None, tie_breaker: str | None) -> list[dict[str, Any]]:
    """Few values, so that conditions hold; most steps are shared by several events.

    One input in thirty is long. Few of its steps are shared: each doubles the runs of an iteration.
    """
    is_long = rng.random() < 1 / 30
    size = rng.randint(30, 60) if is_long else rng.randint(6, 13)
    rows: list[dict[str, Any]] = []
    now = 0
    while len(rows) < size:
        now += rng.choice((1, 1, 2, 3))
        shared = rng.random() < 0.1 if is_long else rng.random() < 0.6
        for _ in range(rng.choice((2, 2, 3)) if shared else 1):
            row: dict[str, Any] = {"type": rng.choice(TYPES), "ts": now, "k": rng.randint(0, 1)}
            row["x"] = None if rng.random() < 0.08 else rng.randint(0, 5)
            row["y"] = None if rng.random() < 0.08 else rng.randint(0, 8) / 2
            row["s"] = None if rng.random() < 0.08 else rng.choice("ppq")
            if start is not None:
                row[start] = now - rng.choice((0, 0, 0, 1, 2, 4))
            if tie_breaker is not None:
                row[tie_breaker] = rng.randint(0, 1)
            rows.append(row)
    rng.shuffle(rows)
    return rows


@dataclass
class _Alias:
    name: str
    iterated: bool = False
    excepted: bool = False


@dataclass
class _QueryDraft:
    rng: Random
    stratum: str
    aliases: list[_Alias] = field(default_factory=list)

    def luck(self, chance: float) -> bool:
        return self.rng.random() < chance

    def query(self) -> str:
        pattern = self.pattern()
        conditions = self.links() if self.luck(0.3) else []
        conditions += [self.qualification() for _ in range(self.rng.choice((0, 0, 1, 1, 1, 2)))]
        where = f" WHERE {', '.join(conditions)}" if conditions else ""
        return f"SELECT * FROM {pattern}{where}"

    # Patterns

    def pattern(self) -> str:
        match self.stratum:
            case "chain":
                return self.chain(0)
            case "union" if self.luck(0.15):
                return self.competing_histories()
            case "exception" if self.luck(0.25):
                return self.distant_exception()
        first = f"{self.source()} ; " if self.luck(0.4) else ""
        match self.stratum:
            case "union":
                pattern = self.union(1)
            case "iteration":
                pattern = self.iteration(1)
            case "exception":
                pattern = self.exception(1)
            case _:
                pattern = self.timed_exception() if self.luck(0.5) else f"({self.operand(1)} @ {self.steps()})"
        after = f" ; {self.source()}" if self.luck(0.35) else ""
        return f"{first}{pattern}{after}"

    def competing_histories(self) -> str:
        """What comes next ends with one event in both branches, and has other lengths."""
        first = self.source()
        earlier, last = self.rng.sample(TYPES, 2)
        return f"{first} ; (({self.source(earlier)} ; {self.source(last)}) | {self.source(last)})"

    def distant_exception(self) -> str:
        """An exception whose failed detections concern runs of two operators."""
        first, second = self.source(), self.source()
        inner = f"({second} ; ({self.source()} \\ {self.excepted(self.source)}))"
        return f"{first} ; ({inner} | {self.source()})" if self.luck(0.6) else f"{first} ; ({inner} @ {self.steps()})"

    def timed_exception(self) -> str:
        operand = self.operand(1)
        return f"({operand} \\ ({self.excepted(self.source)} @ {self.steps()}))"

    def steps(self) -> int:
        return self.rng.randint(0, 4)

    def source(self, kind: str | None = None) -> str:
        name = f"a{len(self.aliases)}"
        self.aliases.append(_Alias(name))
        return f"{kind or self.rng.choice(TYPES)} {name}"

    def operand(self, depth: int) -> str:
        """Something that stands beside an operator, in parentheses where it needs them."""
        kind = self.rng.choice(("source", "source", "source", "chain", "union", "iteration", "exception", "timer"))
        if depth > 1 or kind == "source":
            return self.source()
        match kind:
            case "chain":
                return f"({self.chain(depth)})"
            case "union":
                return self.union(depth + 1)
            case "iteration":
                return self.iteration(depth + 1)
            case "exception":
                return self.exception(depth + 1)
        return f"({self.operand(depth + 1)} @ {self.steps()})"

    def chain(self, depth: int) -> str:
        number = self.rng.choice((2, 2, 3))
        return " ; ".join(self.operand(depth + 1) if self.luck(0.25) else self.source() for _ in range(number))

    def union(self, depth: int) -> str:
        return f"({self.operand(depth)} | {self.operand(depth)})"

    def iteration(self, depth: int) -> str:
        before = len(self.aliases)
        operand = self.source() if self.luck(0.7) else f"({self.operand(depth)})"
        for each in self.aliases[before:]:
            each.iterated = each.iterated or not each.excepted
        return f"{operand}+"

    def exception(self, depth: int) -> str:
        operand = self.operand(depth)
        return f"({operand} \\ {self.excepted(lambda: self.operand(depth + 1))})"

    def excepted(self, draw: Callable[[], str]) -> str:
        before = len(self.aliases)
        text = draw()
        for each in self.aliases[before:]:
            each.excepted = True
        return text

    # Conditions

    def links(self) -> list[str]:
        """The same key in two events, and in the exception between them."""
        bound = [each.name for each in self.aliases if not each.iterated and not each.excepted]
        excepted = [each.name for each in self.aliases if each.excepted]
        if len(bound) < 2:
            return []
        left, right = bound[:2]
        fields = self.rng.choice((("k",), ("k",), ("s",), ("k", "s")))
        links = [f"FILTER({left}.{field} = {right}.{field})" for field in fields]
        if self.luck(0.15):
            links.append(f"FILTER({left}.x <> {right}.x)")
        if excepted and self.luck(0.7):
            links += [f"{left}.{field} = {excepted[0]}.{field}" for field in fields]
        return links

    def qualification(self) -> str:
        condition = self.condition()
        if self.luck(0.15):
            condition = f"({condition} OR {self.condition()})"
        return f"FILTER({condition})" if self.luck(0.45) else condition

    def condition(self) -> str:
        if self.luck(0.15):
            return self.occurs_within()
        names = self.rng.sample(self.aliases, min(len(self.aliases), 2))
        if len(names) == 2 and self.luck(0.6):
            column = self.rng.choice(("k", "k", "x", "y", "s"))
            operator = "=" if column in "ks" or self.luck(0.4) else self.rng.choice(_COMPARISONS)
            return f"{self.field(names[0], column)} {operator} {self.field(names[1], column, one_all=True)}"
        return self.with_constant(names[0])

    def occurs_within(self) -> str:
        names = [each.name for each in self.rng.choices(self.aliases, k=2)]
        denied = "NOT " if self.luck(0.1) else ""
        return f"{denied}({', '.join(names)}) OCCURS WITHIN {self.rng.randint(2, 9)}"

    def with_constant(self, alias: _Alias) -> str:
        column = self.rng.choice(tuple(COLUMNS))
        named = self.field(alias, column)
        if column == "s":
            return self.rng.choice((f"{named} = 'p'", f"{named} CONTAINS 'q'", f"{named} IS NOT NULL"))
        if column == "k":
            return f"{named} = {self.rng.randint(0, 1)}"
        if self.luck(0.2):
            return f"{named} / {self.rng.randint(0, 2)} < {self.rng.randint(1, 3)}"
        return f"{named} {self.rng.choice(_COMPARISONS)} {self.rng.randint(0, 4)}"

    def field(self, alias: _Alias, column: str, *, one_all: bool = False) -> str:
        name = f"{alias.name}.{column}"
        if not alias.iterated:
            return name if self.luck(0.95) else f"PREV({name})"
        return f"PREV({name})" if one_all or self.luck(0.35) else f"ALL({name})"
