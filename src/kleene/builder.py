"""Expressions of the stream algebra as Python methods, for programs that write queries.

Each method adds one operation and gives a new expression; `str` of it is its text in CESAR's spelling, which is what
runs. Conditions, values and attributes are texts of the query language: they are parsed when a method is called, and
never become anything else. Names of types, ids and new attributes are taken as they are.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, Self

from kleene.errors import NOWHERE, QueryError, SyntaxProblem
from kleene.explainable import EqlQuery, StreamQuery
from kleene.lang import cesar_spelling, format_query, tree
from kleene.lang import stream_tree as streams
from kleene.lang.building import build
from kleene.lang.characters import check_characters
from kleene.lang.format_streams import format_step
from kleene.lang.spellings import ParsedQuery

# The text of a value, or a number.
Value = str | int | float
_CARRIED = streams.Carried()


@dataclass(frozen=True, slots=True, repr=False)
class _Operations:
    """The unary operations, applied to what there is so far."""

    tree: streams.Stream

    @abstractmethod
    def _with(self, stream: streams.Stream) -> Self:
        """The same, with one more operation."""

    def select(self, condition: str) -> Self:
        """σ: the events that satisfy a condition.

        >>> print(stream("Stock").select("price > 100 and name = 'IBM'"))
        σ{price > 100 AND name = 'IBM'}(Stock)
        """
        test = _condition(condition, "select")
        return self._with(build(streams.Select, self.tree, test, at=NOWHERE, below=(self.tree, test)))

    def project(self, *attributes: str) -> Self:
        """π: the events with these attributes alone.

        >>> print(stream("Stock", "S1").project("name", "S1.price"))
        π{name, S1.price}(Stock S1)
        """
        projected = tuple(_attribute(each, "project") for each in _some(attributes, "project"))
        return self._with(build(streams.Project, self.tree, projected, at=NOWHERE, below=(self.tree,)))

    def rename(self, names: Mapping[str, str] | None = None, /, **more: str) -> Self:
        """ρ: attributes with new names.

        >>> print(stream("Stock", "S1").rename({"S1.price": "low"}, name="company"))
        ρ{S1.price ↦ low, name ↦ company}(Stock S1)
        """
        pairs = _some({**(names or {}), **more}.items(), "rename")
        renamed = tuple(
            streams.Renaming(_attribute(old, "rename"), checked_name(new, "a new name")) for old, new in pairs
        )
        return self._with(build(streams.Rename, self.tree, renamed, at=NOWHERE, below=(self.tree,)))

    def compute(self, values: Mapping[str, Value] | None = None, /, **more: Value) -> Self:
        """α: attributes with computed values, new ones or overwritten; all are computed before one is assigned.

        >>> print(stream("Stock").compute(worth="price * vol", n=1))
        α{worth ↦ price * vol, n ↦ 1}(Stock)
        """
        assigned = _assignments(_some({**(values or {}), **more}.items(), "compute"), "compute")
        below = (self.tree, *(each.value for each in assigned))
        return self._with(build(streams.Compute, self.tree, assigned, at=NOWHERE, below=below))


@dataclass(frozen=True, slots=True)
class FoldStep(_Operations):
    """What a fold does after each event: a chain of unary operations. `kleene.carried()` is the empty one.

    >>> print(carried().select("S2.price > S2.price.last").compute(n="n + 1"))
    α{n ↦ n + 1} ∘ σ{S2.price > S2.price.last}
    """

    tree: streams.Stream = _CARRIED

    def _with(self, stream: streams.Stream) -> Self:
        return replace(self, tree=stream)

    def __str__(self) -> str:
        return format_step(self.tree)

    def __repr__(self) -> str:
        return f"<step {self}>"


class BuiltQuery:
    """What can be run: an expression of streams or of events, whether it makes a stream or not."""

    __slots__ = ()

    @property
    @abstractmethod
    def query_tree(self) -> ParsedQuery:
        """The syntax tree of its text."""

    @abstractmethod
    def query(self, name: str | None = None, params: Mapping[str, object] | None = None) -> StreamQuery | EqlQuery:
        """The query that it is, with a name and values for its parameters."""

    def __str__(self) -> str:
        return format_query(self.query_tree)


class BuiltStream(BuiltQuery):
    """An expression of streams, whether it is published or not."""

    __slots__ = ()

    def query(self, name: str | None = None, params: Mapping[str, object] | None = None) -> StreamQuery:
        """The query that it is, with a name and values for its parameters.

        >>> stream("Stock").select("price > :low").query("dear", params={"low": 100}).name
        'dear'
        """
        return StreamQuery(str(self), name, dict(params or {}), "cesar")

    def __repr__(self) -> str:
        return f"<stream {self}>"


@dataclass(frozen=True, slots=True, repr=False)
class PublishedStream(BuiltStream):
    """An expression whose results are a stream that other queries read by its name."""

    tree: streams.Stream
    name: str

    @property
    def query_tree(self) -> streams.StreamQuery:
        return streams.StreamQuery(self.tree, self.name)


@dataclass(frozen=True, slots=True, repr=False)
class StreamExpression(_Operations, BuiltStream):
    """An expression of the stream algebra. `kleene.stream(type, id)` makes one; `kleene.match` takes it as a query."""

    @property
    def query_tree(self) -> streams.StreamQuery:
        return streams.StreamQuery(self.tree)

    def _with(self, stream: streams.Stream) -> Self:
        return replace(self, tree=stream)

    def union(self, *others: StreamExpression) -> StreamExpression:
        """∪: the events of all, which have the same attributes. `a | b` is the same.

        >>> print(stream("Buy").project("name").union(stream("Sell").project("name")))
        π{name}(Buy) ∪ π{name}(Sell)
        """
        parts: list[streams.Stream] = []
        for each in (self, *_some(others, "union")):
            part = _operand(each, "union")
            # Unions of unions are one.
            parts += part.parts if isinstance(part, streams.StreamUnion) else [part]
        return StreamExpression(build(streams.StreamUnion, tuple(parts), at=NOWHERE, below=tuple(parts)))

    def next(self, other: StreamExpression, condition: str | None = None) -> StreamExpression:
        """`;`: each event with the first of `other` after it that satisfies the condition. `a >> b` has none.

        >>> print(stream("Stock", "a").next(stream("Stock", "b"), "a.name = b.name"))
        Stock a ;{a.name = b.name} Stock b
        """
        right = _operand(other, "next")
        test = None if condition is None else _condition(condition, "next")
        below = [part for part in (self.tree, right, test) if part is not None]
        return StreamExpression(build(streams.Next, self.tree, right, test, at=NOWHERE, below=tuple(below)))

    def fold(
        self,
        other: StreamExpression,
        condition: str | None = None,
        *,
        step: FoldStep | None = None,
        init: Mapping[str, Value] | None = None,
    ) -> StreamExpression:
        """μ: `next` again and again; the results of all rounds.

        other       what each round adds an event of
        condition   which of its events count; others are skipped
        step        what is done after each round: `kleene.carried().select(…)`; a round that it drops goes no further
        init        what attributes of `other` are before the first round, where no attribute of the same name says it

        >>> rises = carried().select("S2.price > S2.price.last")
        >>> print(stream("Stock", "S1").fold(stream("Stock", "S2"), "S1.name = S2.name", step=rises))
        μ{σ{S2.price > S2.price.last}, S1.name = S2.name}(Stock S1, Stock S2)
        """
        right = _operand(other, "fold")
        test = None if condition is None else _condition(condition, "fold")
        if step is not None and not isinstance(step, FoldStep):
            raise SyntaxProblem(
                f"the step of a fold is no {type(step).__name__}",
                hint="begin with `kleene.carried()`, and go on from it",
            )
        done = (step or FoldStep()).tree
        first = _assignments((init or {}).items(), "init of fold")
        below = [part for part in (self.tree, right, done, test) if part is not None]
        return StreamExpression(
            build(streams.Fold, self.tree, right, done, test, first, at=NOWHERE, below=tuple(below))
        )

    def publish(self, name: str) -> PublishedStream:
        """Make a stream of the results, which queries that run together read by its name.

        >>> print(stream("Stock").select("vol > 10000").publish("Large"))
        σ{vol > 10000}(Stock) publish Large
        """
        return PublishedStream(self.tree, checked_name(name, "a stream's name"))

    def __or__(self, other: StreamExpression) -> StreamExpression:
        return self.union(other) if isinstance(other, StreamExpression) else NotImplemented

    def __rshift__(self, other: StreamExpression) -> StreamExpression:
        return self.next(other) if isinstance(other, StreamExpression) else NotImplemented


def stream(type: str, id: str | None = None) -> StreamExpression:
    """The events of a type, class or stream, whose attributes are called by the id: `S1.price`.

    >>> dear = stream("Stock", "S1").select("S1.price > 100")
    >>> print(dear.next(stream("Stock", "S2"), "S2.name = S1.name"))
    σ{S1.price > 100}(Stock S1) ;{S2.name = S1.name} Stock S2
    """
    name = None if id is None else checked_name(id, "an id")
    return StreamExpression(streams.StreamSource(tree.TypeName(checked_name(type, "a type")), name))


def carried() -> FoldStep:
    """What a fold carries from round to round, to say what is done with it: the beginning of a `step`."""
    return FoldStep()


# Texts and names -----------------------------------------------------------------------------------------------------


def _condition(text: str, method: str) -> tree.Expression:
    return _read(text, "condition", method)  # type: ignore[no-any-return]


def _attribute(text: str, method: str) -> streams.AttributeName:
    return _read(text, "attribute", method)  # type: ignore[no-any-return]


def _assignments(pairs: Any, method: str) -> tuple[streams.Assignment, ...]:
    return tuple(streams.Assignment(_attribute(name, method), _value(value, method)) for name, value in pairs)


def _value(value: Value, method: str) -> tree.Expression:
    if isinstance(value, bool):
        value = str(value)
    elif isinstance(value, int | float):
        if not isfinite(value):
            raise SyntaxProblem(f"`{value}` is no value of a query", hint="NULL stands for what is not known")
        value = repr(value)
    return _read(value, "value", method)  # type: ignore[no-any-return]


def _read(text: object, part: str, method: str) -> Any:
    """A part of a query, parsed; an error shows the place in this text, and says which method it was given to."""
    if not isinstance(text, str):
        raise SyntaxProblem(f"{method}: {_CALLED[part]} is a text, not a {type(text).__name__}")
    try:
        return cesar_spelling.parse_part(text, part)
    except QueryError as error:
        error.origin = method
        raise


_CALLED = {"condition": "a condition", "value": "a value", "attribute": "an attribute"}


def checked_name(name: str, what: str) -> str:
    """A name that a query can hold: plain, or in backquotes."""
    if not isinstance(name, str) or not name or "`" in name or "\n" in name:
        raise SyntaxProblem(f"{what} cannot be {name!r}", hint="a name has one line, and no backquotes")
    check_characters(name)
    return name


def _some(arguments: Any, method: str) -> Any:
    if not arguments:
        raise SyntaxProblem(f"{method} needs at least one", hint=_FORMS[method])
    return arguments


_FORMS = {
    "project": "`.project('name', 'price')`",
    "rename": "`.rename(price='old')`",
    "compute": "`.compute(n='n + 1')`",
    "union": "`.union(other)`",
}


def _operand(other: object, method: str) -> streams.Stream:
    if isinstance(other, StreamExpression):
        return other.tree
    if isinstance(other, PublishedStream):
        hint = f"publish stands at the end; read what it makes as `kleene.stream({other.name!r})`"
        raise SyntaxProblem(f"{method} takes an expression, and `{other.name}` is published", hint=hint)
    raise SyntaxProblem(f"{method} takes an expression, not a {type(other).__name__}", hint="`kleene.stream('Stock')`")
