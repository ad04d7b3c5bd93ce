"""Cases: a query and a stream that may well match it, drawn from one stratum."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING, Any

from kleene.testing.generators.closure_patterns import draw_closures
from kleene.testing.generators.conditions import Speaker
from kleene.testing.generators.groups import draw_groups
from kleene.testing.generators.patterns import (
    ATTRIBUTES,
    CLASSES,
    TYPES,
    DrawnPart,
    DrawnTree,
    Role,
    VariableNames,
    draw_bare_line,
    draw_line,
    draw_tree,
    pairs_of,
    parts_of,
    render,
)
from kleene.testing.generators.strata import ANY_STRATEGY, STRATA, Stratum

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

COLUMN_TYPES = {"type": "string", "ts": "int", "id": "int", "x": "int", "y": "float", "s": "string", "f": "bool"}
MOST_EVENTS = 8


@dataclass(frozen=True, slots=True)
class GeneratedCase:
    """A query, the rows it runs over, and the schema: attributes by type (None is open), tie-breaker, start column."""

    query_text: str
    events: list[dict[str, Any]]
    types: dict[str, set[str]] | None = None
    tie_breaker: str | None = None
    start: str | None = None
    params: dict[str, Any] = field(default_factory=dict)

    @property
    def columns(self) -> dict[str, str]:
        more = [name for name in (self.tie_breaker, self.start) if name is not None]
        return {**COLUMN_TYPES, **dict.fromkeys(more, "int")}


def cases(stratum: str) -> SearchStrategy[GeneratedCase]:
    """The cases of a stratum as a hypothesis strategy."""
    from hypothesis import strategies

    return strategies.integers(0, 2**32 - 1).map(lambda seed: random_case(Random(seed), stratum))


def random_case(rng: Random, stratum: str) -> GeneratedCase:
    """One case of a stratum; the same state of the generator gives the same case."""
    return _CaseDraft(rng, STRATA[stratum]).case()


class _CaseDraft:
    """A case while it is drawn: first what is declared, then the query, then a stream that may well match it."""

    def __init__(self, rng: Random, plan: Stratum) -> None:
        self.rng, self.plan = rng, plan
        self.tie_breaker = "seq" if self.luck(plan.tie_breaker) else None
        self.start = "began" if self.luck(plan.durations) else None
        self.ties = self.luck(plan.ties)
        self.types = self._types() if self.luck(plan.declared) else None
        self.params: dict[str, Any] = {}
        self.tree = self._pattern()
        self.parts = tuple(parts_of(self.tree))
        self.strategy = rng.choice(_STRATEGIES) if plan.strategy == ANY_STRATEGY else plan.strategy

    def luck(self, chance: float) -> bool:
        return self.rng.random() < chance

    def case(self) -> GeneratedCase:
        text = self._text()
        # A condition that was left out takes its parameters with it.
        params = {name: value for name, value in self.params.items() if re.search(rf":{name}\b", text)}
        return GeneratedCase(text, self._events(), self.types, self.tie_breaker, self.start, params)

    def _types(self) -> dict[str, set[str]]:
        return {name: {a for a in ATTRIBUTES if not self.luck(self.plan.lacking)} for name in TYPES}

    def _pattern(self) -> DrawnTree:
        plan, names = self.plan, VariableNames()
        wishes = plan.wishes if plan.lacking == 0 else replace(plan.wishes, classes=0.0)
        if self.luck(plan.nameless):
            return draw_bare_line(self.rng)
        if plan.closures:
            return draw_closures(self.rng, names, wishes)
        if plan.groups:
            return draw_groups(self.rng, names, wishes, plan.depth)
        if plan.signs:
            return draw_tree(self.rng, names, wishes, plan.signs, plan.depth)
        return draw_line(self.rng, names, wishes, plan.lengths)

    # The query

    def _text(self) -> str:
        conditions = self._conditions()
        joined = " AND ".join(conditions)
        text = f"{self.rng.choice(('PATTERN', 'EVENT'))} {render(self.tree, self.rng)}"
        if self.strategy is not None:
            text += f" WHERE {self._strategy()} {{ {joined} }}"
        elif conditions:
            text += f" WHERE {joined}"
        output = f" OUTPUT {self.plan.output}" if self.plan.output else ""
        return f"{self._declarations(text)}{text}{self._window()}{output}"

    def _declarations(self, text: str) -> str:
        used = [name for name in CLASSES if name in text]
        return "".join(f"DECLARE CLASS {name} IS {CLASSES[name][1]}\n" for name in used)

    def _strategy(self) -> str:
        if self.luck(0.5):
            return str(self.strategy)
        names = [f"{part.variable}{'[]' if part.role is Role.KLEENE else ''}" for part in self.parts]
        return f"{self.strategy}({', '.join(names)})"

    def _window(self) -> str:
        """A WITHIN clause, or none. Negations and closures need one: without an optional part they may be at an end."""
        needed = any(part.role in (Role.NEGATED, Role.CLOSURE) for part in self.parts)
        inclusive = " INCLUSIVE" if self.luck(0.3) else ""
        if self.luck(self.plan.count_window):
            return f" WITHIN {self.rng.choice(self.plan.counts)} EVENTS{inclusive}"
        if needed or self.luck(0.75):
            size = self.rng.randint(3, 15)
            if self.luck(0.05):
                self.params["window"] = size
                return f" WITHIN :window{inclusive}"
            return f" WITHIN {size}{self.rng.choice(('', '', ' units', ' ticks'))}{inclusive}"
        return ""

    def _has(self, part: DrawnPart, attribute: str) -> bool:
        return self.types is None or attribute == "ts" or any(attribute in self.types[name] for name in part.types)

    def _conditions(self) -> list[str]:
        if any(part.variable is None for part in self.parts):
            return []
        conditions = [self._condition() for _ in range(self.rng.choice(self.plan.conditions))]
        if self.luck(self.plan.equivalence):
            conditions.insert(self.rng.randint(0, len(conditions)), self._equivalence())
        return [condition for condition in conditions if condition]

    def _equivalence(self) -> str:
        names = [n for n in ("id", "id", "id", "x") if all(self._has_surely(part, n) for part in self.parts)]
        if not any(part.role is Role.CLOSURE for part in self.parts):
            names += [name for name in ("id", "x") if any(self._has(part, name) for part in self.parts)]
        if not names:
            return ""
        if self.plan.two_attributes and {*names} == {"id", "x"} and self.luck(self.plan.two_attributes):
            return "[id, x]"
        name = self.rng.choice(names)
        texts = (
            [f"[{name}]"] * 6 + [f"[{name} = 1]"] * 2 + [*(f"[{name}, {other}]" for other in names if other != name)]
        )
        return self._deepened(self.rng.choice(texts))

    def _deepened(self, equivalence: str) -> str:
        """An equivalence test, sometimes below OR or NOT, where it stands for pairs and so needs single events."""
        if any(part.role not in (Role.SINGLE, Role.OPTIONAL) for part in self.parts):
            return equivalence
        if not self.luck(self.plan.deep_equivalence):
            return equivalence
        return self.rng.choice((f"({equivalence} or {self._condition() or 'FALSE'})",) * 3 + (f"not {equivalence}",))

    def _has_surely(self, part: DrawnPart, attribute: str) -> bool:
        return self.types is None or all(attribute in self.types[name] for name in part.types)

    def _condition(self) -> str:
        """A formula of one kind: about a negated part, a closure's members, a take edge, or the positive parts."""
        positive = tuple(part for part in self.parts if part.role is not Role.NEGATED)
        about = self.rng.choice(self.parts)
        others = tuple(part for part in positive if part.role is not Role.CLOSURE)
        speaker = self._speaker(positive, None)
        if about.role is Role.NEGATED:
            pair = next((pair for pair in pairs_of(self.tree) if about in pair), (about,))
            speaker = self._speaker((*positive, *pair), about)
        elif about.role is Role.CLOSURE and self.luck(0.6):
            speaker = self._speaker((*others, about), about)
        elif about.role is Role.KLEENE and self.luck(0.5):
            line = not (self.plan.signs or self.plan.groups)
            speaker = self._speaker((*(positive[: positive.index(about)] if line else ()), about), about, taking=True)
        if not speaker.can_speak():
            return ""
        formula = speaker.formula(self.rng.choice(self.plan.nesting))
        alone = len(self.parts) == 1 and about.role is Role.SINGLE
        return formula.replace(f"{about.variable}.", "") if alone and self.luck(0.5) else formula

    def _speaker(self, parts: tuple[DrawnPart, ...], about: DrawnPart | None, taking: bool = False) -> Speaker:
        return Speaker(self.rng, self._has, parts, about, taking, self.plan.arithmetic, self.params)

    # The stream

    def _events(self) -> list[dict[str, Any]]:
        """Events that could fill the pattern's places in order, others among them, at times that grow.

        A value left out of a row is NULL, but the first row has all columns, so that the input has.
        """
        rng = self.rng
        kinds: list[tuple[str | None, bool]] = [(kind, True) for kind in self._planted(self.tree)[:MOST_EVENTS]]
        used = [kind for part in self.parts for kind in part.types]
        for _ in range(min(MOST_EVENTS - len(kinds), rng.choice(self.plan.noise))):
            kind = rng.choice(used) if self.luck(0.65) else rng.choice((*TYPES, "E", None))
            at_end = self._contiguous() and self.luck(0.5)
            kinds.insert(rng.choice((0, len(kinds))) if at_end else rng.randint(0, len(kinds)), (kind, False))
        gaps = (0, 0, 0, 1, 1, 2) if self.ties else (1, 1, 1, 2, 3)
        now, rows = rng.randint(0, 3), []
        for kind, planted in kinds:
            now += rng.choice(gaps) if not planted or self.luck(0.4) or not self.ties else 1
            rows.append(self._row(kind, now, planted))
        if self.luck(0.3):
            rng.shuffle(rows)
        return [{**dict.fromkeys(ATTRIBUTES), **row} if i == 0 else row for i, row in enumerate(rows)]

    def _contiguous(self) -> bool:
        return self.strategy in ("strict_contiguity", "partition_contiguity")

    def _planted(self, node: DrawnTree | DrawnPart) -> list[str]:
        rng = self.rng
        if isinstance(node, DrawnPart):
            count = 0 if node.role is Role.NEGATED else rng.randint(node.low, node.high)
            return [rng.choice(node.types) for _ in range(count)]
        if node.sign.startswith("!"):
            return []
        if node.sign == "|":
            return self._planted(rng.choice(node.below))
        below = [self._planted(child) for child in node.below]
        if node.sign == "&":
            rng.shuffle(below)
        return [kind for kinds in below for kind in kinds]

    def _row(self, kind: str | None, now: int, planted: bool) -> dict[str, Any]:
        rng = self.rng
        values: dict[str, Any] = {
            "id": 1 if self.luck(0.95 if planted else 0.5) else 2,
            "x": rng.choice((0, 1, 1, 2, 2, 3)),
            "y": rng.choice((0.0, 0.5, 1.0, 2.5)),
            "s": rng.choice(("u", "v", "uv")),
            "f": rng.choice((True, False)),
        }
        row: dict[str, Any] = {"type": kind, "ts": now}
        for name, value in values.items():
            if not self.luck(self.plan.nulls):
                row[name] = value
            elif self.luck(0.5):
                row[name] = None
        if self.tie_breaker is not None:
            row[self.tie_breaker] = rng.choice((0, 1, 1, 2))
        if self.start is not None:
            row[self.start] = now - rng.choice(self.plan.spans)
        return self._spoiled(row) if not planted and self.luck(0.06) else row

    def _spoiled(self, row: dict[str, Any]) -> dict[str, Any]:
        """A bad row: no time, no tie-breaker, no start, or an end before its start."""
        name = self.rng.choice([name for name in ("ts", self.tie_breaker, self.start) if name is not None])
        return {**row, name: row["ts"] + 1 if name == self.start and self.luck(0.5) else None}


_STRATEGIES = (None, "skip_till_any_match", "skip_till_next_match", "strict_contiguity", "partition_contiguity")


def schema_of(case: GeneratedCase) -> Mapping[str, Any]:
    """The arguments of `kleene.Schema` that describe a case's stream."""
    types = None if case.types is None else {name: sorted(attributes) for name, attributes in case.types.items()}
    return {"types": types, "tie_breaker": case.tie_breaker, "start": case.start, "columns": case.columns}
