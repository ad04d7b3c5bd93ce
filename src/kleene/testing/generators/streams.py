"""Random expressions of the stream algebra, with streams that they may well have results on."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

from kleene.algebra.bind import StreamBinder
from kleene.algebra.names import show
from kleene.algebra.nodes import AttributeName, Node, StreamSchema
from kleene.errors import TypeMismatch
from kleene.lang.cesar_spelling import parse
from kleene.pattern.nodes import EventClass
from kleene.pattern.schema import Schema
from kleene.pattern.types import ValueType

TYPES = ("A", "B")
COLUMNS = {"k": ValueType.INT, "x": ValueType.INT, "y": ValueType.FLOAT, "s": ValueType.STRING}
_NUMERIC = (ValueType.INT, ValueType.FLOAT)
_PLAIN = ("u", "v", "w")


@dataclass(frozen=True, slots=True)
class GeneratedStreamCase:
    """An expression in CESAR's spelling, the rows it runs over, and which columns have a role."""

    text: str
    rows: list[dict[str, Any]]
    start: str | None = None
    tie_breaker: str | None = None

    @property
    def schema(self) -> Schema:
        columns = {"type": ValueType.STRING, "ts": ValueType.INT, **COLUMNS}
        columns |= {name: ValueType.INT for name in (self.start, self.tie_breaker) if name is not None}
        return Schema(start=self.start, tie_breaker=self.tie_breaker, columns=columns)


def bound(text: str, schema: Schema) -> Node:
    """An expression bound to a schema whose classes are its types."""
    binder = StreamBinder(schema, lambda name: EventClass(name.name, (name.name,)), {})
    return binder.bind(parse(text).stream)


def random_stream_case(rng: Random, *, linear_plus: bool = False) -> GeneratedStreamCase:
    """One expression and its rows; `linear_plus`: one that a single automaton can run."""
    start = "began" if rng.random() < 0.4 else None
    tie_breaker = "seq" if rng.random() < 0.25 else None
    case = GeneratedStreamCase("", [], start, tie_breaker)
    while True:
        draft = _ExpressionDraft(rng, case.schema, linear_plus=linear_plus)
        # Names that were overwritten by other types make some of them wrong.
        with suppress(TypeMismatch):
            text = draft.stream(rng.choice((1, 2, 2, 3)))
            bound(text, case.schema)
            return GeneratedStreamCase(text, random_rows(rng, start, tie_breaker), start, tie_breaker)


def random_rows(rng: Random, start: str | None, tie_breaker: str | None) -> list[dict[str, Any]]:
    """Few values, so that conditions hold; two of three steps are shared by several events."""
    rows: list[dict[str, Any]] = []
    now = 0
    while len(rows) < rng.randint(4, 12):
        now += rng.choice((1, 1, 2, 3))
        for _ in range(rng.choice((1, 1, 2, 2, 3))):
            row: dict[str, Any] = {"type": rng.choice(TYPES), "ts": now, "k": rng.randint(0, 1)}
            row["x"] = None if rng.random() < 0.1 else rng.randint(0, 5)
            row["y"] = None if rng.random() < 0.1 else rng.randint(0, 8) / 2
            row["s"] = None if rng.random() < 0.1 else rng.choice("pq")
            if start is not None:
                row[start] = now - rng.choice((0, 0, 1, 2, 4))
            if tie_breaker is not None:
                row[tie_breaker] = rng.randint(0, 1)
            rows.append(row)
    rng.shuffle(rows)
    return rows


@dataclass
class _ExpressionDraft:
    rng: Random
    schema: Schema
    linear_plus: bool
    ids: int = 0
    _schemas: dict[str, StreamSchema] = field(default_factory=dict)

    def luck(self, chance: float) -> bool:
        return self.rng.random() < chance

    def attributes(self, text: str) -> StreamSchema:
        if text not in self._schemas:
            self._schemas[text] = bound(text, self.schema).schema
        return self._schemas[text]

    # Streams

    def stream(self, depth: int) -> str:
        if depth == 0:
            return self.chain(self.source(), 0.4)
        kind = self.rng.choice(("next", "next", "fold", "fold", "union", "chain"))
        if kind == "union":
            return self.chain(self.union(depth - 1), 0.4)
        if kind == "chain":
            return self.chain(self.stream(depth - 1), 0.8)
        left = self.stream(depth - 1)
        nested = not self.linear_plus and self.luck(0.35)
        right = self.stream(depth - 1) if nested else self.chain(self.source(), 0.35)
        return self.chain(self.next(left, right) if kind == "next" else self.fold(left, right), 0.5)

    def source(self) -> str:
        name = self.rng.choice(TYPES)
        if self.luck(0.25):
            return name
        self.ids += 1
        return f"{name} s{self.ids}"

    def union(self, depth: int) -> str:
        """Parts with the same attributes: some of each, of one type each, called alike."""
        parts = [self.stream(depth) for _ in range(2)]
        schemas = [self.attributes(part) for part in parts]
        wanted: list[list[AttributeName]] = []
        for kind in (ValueType.INT, ValueType.FLOAT, ValueType.STRING):
            each = [[name for name, known in schema.attributes if known is kind] for schema in schemas]
            if all(each) and (self.luck(0.7) or not wanted):
                wanted.append([self.rng.choice(names) for names in each])
        if not wanted:
            return parts[0]
        written = []
        for number, part in enumerate(parts):
            names = [pair[number] for pair in wanted]
            pairs = ", ".join(f"{show(name)} ↦ m{place}" for place, name in enumerate(names))
            written.append(f"ρ{{{pairs}}} ∘ π{{{', '.join(map(show, names))}}}({part})")
        return f"({' ∪ '.join(written)})"

    def next(self, left: str, right: str) -> str:
        mine, other = self.attributes(left), self.attributes(right)
        both = StreamSchema(tuple({**dict(mine.attributes), **dict(other.attributes)}.items()))
        last = [name for name in other.names if name in mine.names]
        condition = self.condition(both, last, self.link(mine, other)) if self.luck(0.7) else None
        text = f"({left}) ;{'' if condition is None else f'{{{condition}}}'} ({right})"
        if self.luck(0.4):
            text = f"σ{{{self.condition(both, last)}}}({text})"
            return text
        return f"({text})"

    def fold(self, left: str, right: str) -> str:
        mine, other = self.attributes(left), self.attributes(right)
        init = []
        for name, kind in other.attributes:
            namesakes = [each for each in mine.names if each[1] == name[1]]
            if name in mine.names or (len(namesakes) == 1 and mine.type_of(namesakes[0]) is kind):
                continue
            init.append(f"init {show(name)} ↦ {self.value_of_type(mine, kind)}")
        both = StreamSchema(tuple({**dict(mine.attributes), **dict(other.attributes)}.items()))
        last = list(other.names)
        parts = [self.step(both, last)]
        if self.luck(0.7):
            parts.append(self.condition(both, last, self.link(mine, other)))
        text = f"μ{{{', '.join([*parts, *init])}}}({left}, {right})"
        return f"σ{{{self.condition(both, last)}}}({text})" if self.luck(0.3) else text

    def step(self, both: StreamSchema, last: list[AttributeName]) -> str:
        operations = []
        if self.luck(0.5):
            operations.append(f"σ{{{self.condition(both, last)}}}")
        numbers = [name for name, kind in both.attributes if kind in _NUMERIC]
        if numbers and self.luck(0.4):
            several = self.rng.sample(numbers, 2 if len(numbers) > 1 and self.luck(0.3) else 1)
            pairs = ", ".join(f"{show(name)} ↦ {self.number(both, last)}" for name in several)
            operations.append(f"α{{{pairs}}}")
        self.rng.shuffle(operations)
        return " ∘ ".join(operations) or "ID"

    def chain(self, text: str, chance: float) -> str:
        while self.luck(chance):
            chance /= 2
            schema = self.attributes(text)
            kind = self.rng.choice(("select", "select", "project", "rename", "compute"))
            if kind == "select":
                text = f"σ{{{self.condition(schema)}}}({text})"
            elif kind == "project" and len(schema.names) > 1:
                projected = self.rng.sample(schema.names, self.rng.randint(1, len(schema.names)))
                text = f"π{{{', '.join(map(show, projected))}}}({text})"
            elif kind == "rename":
                free = [name for name in _PLAIN if ("", name) not in schema.names]
                if free:
                    text = f"ρ{{{show(self.rng.choice(schema.names))} ↦ {self.rng.choice(free)}}}({text})"
            elif kind == "compute" and any(known in _NUMERIC for _, known in schema.attributes):
                text = f"α{{{self.assignments(schema)}}}({text})"
        return text

    def assignments(self, schema: StreamSchema) -> str:
        """One value, or two at once, of which the second may read what the first overwrites."""
        first, second = self.rng.sample(_PLAIN, 2)
        written = f"{first} ↦ {self.number(schema)}"
        if not self.luck(0.3):
            return written
        kind = dict(schema.attributes).get(("", first))
        value = first if kind in _NUMERIC and self.luck(0.6) else self.number(schema)
        return f"{written}, {second} ↦ {value}"

    # Conditions and values

    def link(self, left: StreamSchema, right: StreamSchema) -> str | None:
        """An equality between the two sides, as most conditions of `;` and μ have one."""
        pairs = [
            (one, other)
            for one, kind in left.attributes
            for other, known in right.attributes
            if kind is known and one != other and other[1] in ("k", "s")
        ]
        if not pairs or self.luck(0.5):
            return None
        one, other = self.rng.choice(pairs)
        return f"{show(one)} = {show(other)}"

    def condition(self, schema: StreamSchema, last: list[AttributeName] | None = None, first: str | None = None) -> str:
        tests = [] if first is None else [first]
        tests += [self.test(schema, last or []) for _ in range(self.rng.choice((1, 1, 2)))]
        if len(tests) > 1 and self.luck(0.25):
            return f"({' or '.join(tests)})"
        return " and ".join(tests)

    def test(self, schema: StreamSchema, last: list[AttributeName]) -> str:
        texts = [name for name, kind in schema.attributes if kind is ValueType.STRING]
        if self.luck(0.15):
            return f"DUR {self.rng.choice(('<=', '<', '>=', '='))} {self.rng.randint(1, 8)}"
        if texts and self.luck(0.2):
            name = self.rng.choice(texts)
            return self.rng.choice((f"{show(name)} = 'p'", f"{show(name)} IS NULL", f"NOT {show(name)} = 'q'"))
        operator = self.rng.choice(("<", "<=", ">", ">=", "=", "!="))
        if any(kind in _NUMERIC for _, kind in schema.attributes):
            return f"{self.number(schema, last)} {operator} {self.number(schema, last)}"
        return f"DUR {operator} {self.rng.randint(1, 5)}"

    def number(self, schema: StreamSchema, last: list[AttributeName] | None = None) -> str:
        """A number of some attributes: one of them is an attribute wherever there is one."""
        names = [name for name, kind in schema.attributes if kind in _NUMERIC]
        if not names or self.luck(0.3):
            return str(self.rng.randint(0, 4))
        name = self.rng.choice(names)
        text = show(name)
        if last and name in last and self.luck(0.4):
            text += ".last"
        if self.luck(0.2):
            text = f"({text} {self.rng.choice('+-*/')} {self.rng.randint(0, 3)})"
        return text

    def value_of_type(self, schema: StreamSchema, kind: ValueType) -> str:
        names = [name for name, known in schema.attributes if known is kind]
        if names and self.luck(0.7):
            return show(self.rng.choice(names))
        return {ValueType.STRING: "'p'", ValueType.INT: "1", ValueType.FLOAT: "0.5"}[kind]
