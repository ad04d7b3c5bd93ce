"""Queries in EQL as Python methods, for programs that write queries; and `@`, which EQL has no sign for.

Each method gives a new expression; `str` of it is its text, which is what runs. Conditions and fields are texts of EQL:
they are parsed when a method is called. As in EQL, they belong to the whole query and name events by their aliases;
where in a chain of methods they stand does not matter.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from kleene.builder import BuiltQuery, checked_name
from kleene.errors import NOWHERE, QueryError, SyntaxProblem
from kleene.explainable import EqlQuery
from kleene.lang import eql_spelling, parse_duration, tree
from kleene.lang import eql_tree as eql
from kleene.lang.building import build
from kleene.lang.format_eql import format_eql_query

# The text of a length of time, or a number of ticks.
Time = str | int
R = TypeVar("R")
F = TypeVar("F", eql.NextChain, eql.EitherPattern)


class BuiltEvents(BuiltQuery):
    """What can be run: events, with fields that were selected or without."""

    __slots__ = ()

    @property
    @abstractmethod
    def query_tree(self) -> eql.EqlQuery:
        """The syntax tree of its text."""

    def query(self, name: str | None = None, params: Mapping[str, object] | None = None) -> EqlQuery:
        """The query that it is, with a name and values for its parameters.

        >>> events("t").where("t.amount > :low").query("large", params={"low": 100}).name
        'large'
        """
        return EqlQuery(str(self), name, dict(params or {}), "next")

    def __repr__(self) -> str:
        return f"<events {format_eql_query(self.query_tree, None)}>"


@dataclass(frozen=True, slots=True, repr=False)
class SelectedEvents(BuiltEvents):
    """Events of which some fields are selected: a whole query."""

    pattern: eql.EventPattern
    qualifications: tuple[eql.Qualification, ...]
    fields: tuple[tree.ReturnItem, ...]
    stream: str | None = None

    @property
    def query_tree(self) -> eql.EqlQuery:
        return eql.EqlQuery(self.pattern, self.qualifications, tree.Return(self.fields, self.stream))

    def into(self, name: str) -> SelectedEvents:
        """INTO: make a stream of the results, which queries that run together read by its name.

        >>> print(events("t", "S1").then(events("t", "S2")).select("S2.acc").into("Pair"))
        SELECT S2.acc FROM t S1 ; t S2
        INTO Pair
        """
        return replace(self, stream=checked_name(name, "a stream's name"))


@dataclass(frozen=True, slots=True, repr=False)
class EventExpression(BuiltEvents):
    """Events of EQL. `kleene.events(type, alias)` makes one; `kleene.match` takes it as a query, with all fields."""

    pattern: eql.EventPattern
    qualifications: tuple[eql.Qualification, ...] = ()

    @property
    def query_tree(self) -> eql.EqlQuery:
        return eql.EqlQuery(self.pattern, self.qualifications)

    # Events

    def then(self, *others: EventExpression) -> EventExpression:
        """`;`: each detection with the first of the next ones after it. `a >> b` is the same.

        >>> print(events("t", "S1").then(events("t", "S2"), events("t", "L")))
        SELECT * FROM t S1 ; t S2 ; t L
        """
        return self._joined(eql.NextChain, others, "then")

    def either(self, *others: EventExpression) -> EventExpression:
        """`|`: the detections of all. `a | b` is the same.

        >>> print(events("A").either(events("B")).then(events("C")))
        SELECT * FROM A | B ; C
        """
        return self._joined(eql.EitherPattern, others, "either")

    def repeated(self) -> EventExpression:
        """`+`: one detection, then again and again the next one; every prefix is a detection.

        >>> print(events("t", "T").repeated().where("ALL(T.amount) > 100"))
        SELECT * FROM t T+
        WHERE ALL(T.amount) > 100
        """
        return replace(self, pattern=build(eql.Iterated, self.pattern, at=NOWHERE, below=(self.pattern,)))

    def unless(self, exception: EventExpression) -> EventExpression:
        r"""`\`: the detections in whose time no exception occurs.

        >>> print(events("A").then(events("B")).unless(events("C")))
        SELECT * FROM (A ; B) \ C
        """
        other = _operand(exception, "unless")
        below = (self.pattern, other.pattern)
        return EventExpression(
            build(eql.Excepted, *below, at=NOWHERE, below=below), (*self.qualifications, *other.qualifications)
        )

    def after(self, time: Time) -> EventExpression:
        """`@`: the same detections, each so much later, unless something ends them until then.

        >>> print(events("A").then(events("A", "timer").after("5 min").unless(events("B"))))
        SELECT * FROM A ; (A timer @ 5 minutes \\ B)
        """
        delay = _time(time, "after")
        return replace(self, pattern=build(eql.Delayed, self.pattern, delay, at=NOWHERE, below=(self.pattern,)))

    # Conditions

    def where(self, *conditions: str) -> EventExpression:
        """WHERE: conditions θ. What comes next is tested with them, and where they fail nothing is detected.

        >>> print(events("t", "S1").then(events("t", "S2")).where("S1.amount < 100", "S2.amount > 250"))
        SELECT * FROM t S1 ; t S2
        WHERE S1.amount < 100, S2.amount > 250
        """
        return self._tested(_conditions(conditions, "where"))

    def filter(self, *conditions: str) -> EventExpression:
        """FILTER: conditions φ. The next one is the first that satisfies them; others are skipped.

        >>> print(events("t", "S1").then(events("t", "S2")).filter("S1.acc = S2.acc"))
        SELECT * FROM t S1 ; t S2
        WHERE FILTER(S1.acc = S2.acc)
        """
        read = _conditions(conditions, "filter")
        if any(each.filters for each in read):
            raise SyntaxProblem("FILTER stands in `where` only", hint="leave it out: `.filter('S1.acc = S2.acc')`")
        return self._tested(tuple(replace(each, filters=True) for each in read))

    def occurs_within(self, aliases: Iterable[str], time: Time) -> EventExpression:
        """OCCURS WITHIN: from the first of these events to the last it takes no longer than this.

        >>> print(events("t", "S1").then(events("t", "L")).occurs_within(("S1", "L"), "12 hours"))
        SELECT * FROM t S1 ; t L
        WHERE (S1, L) OCCURS WITHIN 12 hours
        """
        listed = (aliases,) if isinstance(aliases, str) else tuple(aliases)
        if len(listed) < 2:
            raise SyntaxProblem(
                "occurs_within names two events or more", hint="`.occurs_within(('S1', 'L'), '12 hours')`"
            )
        names = tuple(tree.Name(checked_name(each, "an alias")) for each in listed)
        condition = tree.OccursWithin(names, _time(time, "occurs_within"))
        return self._tested((build(eql.Qualification, condition, at=NOWHERE, below=(condition,)),))

    # Results

    def select(self, *fields: str, **named: str) -> SelectedEvents:
        """SELECT: the fields of results, `name=…` under names of their own; without it results have all events.

        >>> print(events("t", "S1").then(events("t", "L")).select("S1.acc", large="L.amount"))
        SELECT S1.acc, L.amount AS large FROM t S1 ; t L
        """
        items = [item for text in fields for item in _fields(text)]
        for name, text in named.items():
            read = _fields(text)
            if len(read) != 1:
                raise SyntaxProblem(f"select: `{name}` is one field, not {len(read)}")
            items.append(replace(read[0], alias=checked_name(name, "a field's name")))
        if not items:
            raise SyntaxProblem("select needs at least one field", hint="without `select`, results have all events")
        return SelectedEvents(self.pattern, self.qualifications, tuple(items))

    def _tested(self, conditions: tuple[eql.Qualification, ...]) -> EventExpression:
        return replace(self, qualifications=(*self.qualifications, *conditions))

    def _joined(self, kind: type[F], others: tuple[EventExpression, ...], method: str) -> EventExpression:
        """Chains of chains are one, and so are unions of unions."""
        if not others:
            raise SyntaxProblem(f"{method} needs at least one", hint=f"`.{method}(kleene.events('t', 'S2'))`")
        every = (self, *(_operand(other, method) for other in others))
        parts: list[eql.EventPattern] = []
        for each in every:
            parts += each.pattern.parts if isinstance(each.pattern, kind) else [each.pattern]
        return EventExpression(
            build(kind, tuple(parts), at=NOWHERE, below=tuple(parts)),
            tuple(condition for each in every for condition in each.qualifications),
        )

    def __rshift__(self, other: EventExpression) -> EventExpression:
        return self.then(other) if isinstance(other, EventExpression) else NotImplemented

    def __or__(self, other: EventExpression) -> EventExpression:
        return self.either(other) if isinstance(other, EventExpression) else NotImplemented


def events(type: str, alias: str | None = None) -> EventExpression:
    """The events of a type, class or stream, whose fields are called by the alias: `S1.amount`.

    >>> small = events("t", "S1").then(events("t", "S2")).filter("S1.acc = S2.acc").where("S1.amount < 100")
    >>> print(small.occurs_within(("S1", "S2"), "12 hours").select("S1.acc", second="S2.amount"))
    SELECT S1.acc, S2.amount AS second FROM t S1 ; t S2
    WHERE FILTER(S1.acc = S2.acc), S1.amount < 100, (S1, S2) OCCURS WITHIN 12 hours
    """
    name = None if alias is None else checked_name(alias, "an alias")
    return EventExpression(eql.EventSource(tree.TypeName(checked_name(type, "a type")), name))


# Texts ---------------------------------------------------------------------------------------------------------------


def _conditions(texts: tuple[str, ...], method: str) -> tuple[eql.Qualification, ...]:
    if not texts:
        raise SyntaxProblem(f"{method} needs at least one condition", hint=f"`.{method}('S1.acc = S2.acc')`")
    read = [_read(eql_spelling.parse_conditions, text, "a condition", method) for text in texts]
    return tuple(each for listed in read for each in listed)


def _fields(text: str) -> tuple[tree.ReturnItem, ...]:
    return _read(eql_spelling.parse_fields, text, "a field", "select")


def _time(time: Time, method: str) -> tree.Duration:
    given: Any = str(time) if isinstance(time, int) and not isinstance(time, bool) else time
    return _read(parse_duration, given, "a time", method)


def _read(parse: Callable[[str], R], text: object, called: str, method: str) -> R:
    """A part of a query, parsed; an error shows the place in this text, and says which method it was given to."""
    if not isinstance(text, str):
        raise SyntaxProblem(f"{method}: {called} is a text, not a {type(text).__name__}")
    try:
        return parse(text)
    except QueryError as error:
        error.origin = method
        raise


def _operand(other: object, method: str) -> EventExpression:
    if isinstance(other, EventExpression):
        return other
    if isinstance(other, SelectedEvents):
        raise SyntaxProblem(
            f"{method} takes events, and of these fields are selected", hint="`select` stands at the end"
        )
    raise SyntaxProblem(f"{method} takes events, not a {type(other).__name__}", hint="`kleene.events('t', 'S2')`")
