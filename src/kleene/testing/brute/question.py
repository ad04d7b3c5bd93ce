"""A query taken apart: places, conjuncts, equivalence tests, partition, window (the semantics page §3)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from kleene.lang import parse, tree
from kleene.lang.durations import EVENTS, TICKS
from kleene.lang.tree import OutputMode, SelectionStrategy
from kleene.testing.brute.conditions import Clause, Clauses, Identifiers, conjuncts, holds
from kleene.testing.brute.pattern import BruteClass, BrutePlace, Shape, places, read_pattern
from kleene.testing.brute.stream import BruteEvent, BruteStream, Nothing
from kleene.testing.brute.values import Assignment, Binding, evaluate


@dataclass(frozen=True, slots=True)
class BruteWindow:
    """`WITHIN T`: less than T, or at most T when INCLUSIVE; of time, or of positions under EVENTS."""

    size: Fraction
    inclusive: bool
    counts_events: bool

    def admits(self, distance: Any) -> bool:
        return bool(distance <= self.size if self.inclusive else distance < self.size)


@dataclass(frozen=True)
class Question:
    """The query over one stream, with the names resolved that its conditions use."""

    query: tree.Query
    stream: BruteStream
    params: Mapping[str, Any]

    @cached_property
    def shape(self) -> Shape:
        return read_pattern(self.query)

    @cached_property
    def positives(self) -> tuple[BrutePlace, ...]:
        return tuple(places(self.shape, negated=False))

    @cached_property
    def negatives(self) -> frozenset[str]:
        return frozenset(place.name for place in places(self.shape)) - {place.name for place in self.positives}

    @cached_property
    def strategy(self) -> SelectionStrategy:
        return self.query.strategy.kind if self.query.strategy else SelectionStrategy.SKIP_TILL_ANY_MATCH

    @cached_property
    def output(self) -> OutputMode:
        return self.query.output.mode if self.query.output else OutputMode.ALL

    @cached_property
    def window(self) -> BruteWindow | None:
        within = self.query.within
        if within is None:
            return None
        (term,) = within.duration.terms
        if term.unit not in (TICKS, EVENTS):
            raise NotImplementedError("windows here are in ticks or events")
        amount = self.params[term.amount.name] if isinstance(term.amount, tree.Parameter) else term.amount
        return BruteWindow(Fraction(amount), within.inclusive, term.unit == EVENTS)

    # Conditions

    @cached_property
    def identifiers(self) -> Identifiers:
        lists = frozenset(place.name for place in self.positives if place.is_list or place.is_closure)
        closures = frozenset(place.name for place in self.positives if place.is_closure)
        return Identifiers(lists, closures, self._owners)

    @cached_property
    def _owners(self) -> dict[str, str]:
        """An unqualified attribute belongs to the only variable that can have it."""
        everything = tuple(places(self.shape))
        owners: dict[str, str] = {}
        for attribute in self._attributes - {place.name for place in everything}:
            able = [place.name for place in everything if any(self.stream.type_has(t, attribute) for t in place.types)]
            if len(able) == 1:
                owners[attribute] = able[0]
        return owners

    @cached_property
    def _attributes(self) -> frozenset[str]:
        """Every attribute that is declared or in a row."""
        declared = () if self.stream.types is None else self.stream.types.values()
        return frozenset(self.stream.common.union(*declared, *(event.row for event in self.stream.events)))

    @cached_property
    def _conditions(self) -> tuple[tree.Expression, ...]:
        """The top-level conjuncts of WHERE."""
        where = self.query.where
        if where is None:
            return ()
        return where.operands if isinstance(where, tree.And) else (where,)

    @cached_property
    def brackets(self) -> tuple[tree.EquivalenceItem, ...]:
        """The top-level equivalence tests: `[id]`, `[id = 1]`."""
        return tuple(
            item
            for condition in self._conditions
            if isinstance(condition, tree.Equivalence)
            for item in condition.items
        )

    @cached_property
    def clauses(self) -> Clauses:
        """Every other condition, in conjunctive normal form."""
        rest = tuple(item for item in self._conditions if not isinstance(item, tree.Equivalence))
        singles = [place.name for place in self.positives if not (place.is_list or place.is_closure)]
        return conjuncts(tree.And(rest), singles) if rest else ()

    @cached_property
    def partition(self) -> tuple[str, ...]:
        """§3 Partition: the top-level bracketed attributes that every component's type has."""
        names = dict.fromkeys(item.attribute for item in self.brackets)
        kinds = {name for place in places(self.shape) for name in place.types}
        return tuple(name for name in names if all(self.stream.type_has(kind, name) for kind in kinds))

    def admits(self, place: BrutePlace, event: BruteEvent) -> bool:
        """The class test of a place; an event without a type is of no class."""
        return any(event.type in item.types and self._has_property(item, event) for item in place.classes)

    def _has_property(self, kind: BruteClass, event: BruteEvent) -> bool:
        """A class's predicate speaks of the attributes of one event, without a variable."""
        if kind.predicate is None:
            return True
        owners: Mapping[str, str] = defaultdict(lambda: "event")
        binding = Binding(self.stream, {"event": (event,)}, frozenset(), owners, self.params)
        return all(holds(clause, binding) for clause in conjuncts(kind.predicate, ()))

    def equivalent(self, event: BruteEvent, others: Sequence[BruteEvent]) -> bool:
        """The top-level equivalence tests of one event with others: all pairs that have the attribute are equal.

        A key of the partition that is NULL matches nothing, even alone (§3 Partition).
        """
        if self.stream.key(event, self.partition) is None:
            return False
        return all(
            _equal(self.stream.value(event, item.attribute), value)
            for item in self.brackets
            for value in self._wanted(item, others)
        )

    def _wanted(self, item: tree.EquivalenceItem, others: Sequence[BruteEvent]) -> Iterator[Any]:
        yield from (self.stream.value(other, item.attribute) for other in others)
        if item.value is not None:
            yield evaluate(item.value, self.bind({}))

    def variables(self, clause: Clause) -> set[str]:
        return {variable for variable, _ in self.identifiers.of(clause)}

    @cached_property
    def positive_clauses(self) -> Clauses:
        """P₊ (SASE §2.2.2)."""
        return tuple(clause for clause in self.clauses if not self.variables(clause) & self.negatives)

    def negative_clauses(self, name: str) -> Clauses:
        """P₋ of one negated variable."""
        return tuple(clause for clause in self.clauses if name in self.variables(clause))

    def bind(self, chosen: Assignment, turn: int = 0) -> Binding:
        return Binding(self.stream, chosen, self.identifiers.lists, self._owners, self.params, turn)


def _equal(left: Any, right: Any) -> bool:
    if left is Nothing.MISSING or right is Nothing.MISSING:
        return True
    return left is not None and right is not None and bool(left == right)


def ask(text: str, stream: BruteStream, params: Mapping[str, Any] | None) -> Question:
    query = parse(text)
    assert isinstance(query, tree.Query), "a pattern"
    return Question(query, stream, params or {})


def line_of(shape: Shape, parts: Sequence[Shape]) -> tuple[BrutePlace, ...]:
    """The places of a line in their order; a line is one place or a sequence of places."""
    line = tuple(part for part in parts if isinstance(part, BrutePlace))
    if set(line) != set(places(shape, negated=False)):
        raise NotImplementedError("only a line has a strategy other than skip_till_any_match")
    return line
