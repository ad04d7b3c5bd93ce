"""A query: parsed once, bound to as many schemas as there are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

from kleene.errors import (
    OutputNotAvailable,
    QueryWarning,
    ReservedName,
    StrategyVariables,
    TimeoutsNotAvailable,
    UnknownSpelling,
    did_you_mean,
)
from kleene.lang import format_query, tree
from kleene.lang.eql_tree import EqlQuery as EqlQueryTree
from kleene.pattern import bind_pattern as patterns
from kleene.pattern.alternatives import alternatives
from kleene.pattern.bind_expression import Scopes
from kleene.pattern.classes import ClassBinder
from kleene.pattern.clock import Window, bind_window
from kleene.pattern.conditions import Conditions, bind_conditions
from kleene.pattern.expressions import Aggregate, Agrees, Attribute, Clause, Value, Whole, references
from kleene.pattern.nodes import Component, ComponentKind, Disjunction, Leaf, Pattern, is_linear
from kleene.pattern.query_warnings import query_warnings
from kleene.pattern.returns import ReturnColumn, bind_returns
from kleene.pattern.schema import Schema, is_private
from kleene.pattern.shapes import check_shape, check_strategy, has_disjunction
from kleene.pattern.sinks import columns_of_every_result
from kleene.pattern.types import ValueType
from kleene.pattern.written_query import WrittenQuery

TIMEOUT_COLUMNS = ("stream", "closed", "reached")


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """A query on a schema: every name resolved and typed. Immutable; says what is meant, not how it runs."""

    name: str
    schema: Schema
    pattern: Pattern
    components: tuple[Component, ...]
    # The union that the pattern stands for: no disjunction, nothing optional.
    alternatives: tuple[Pattern, ...]
    strategy: tree.SelectionStrategy
    conditions: Conditions
    partition: tuple[str, ...]
    window: Window | None
    output: tree.OutputMode
    timeouts: str | None
    returns: tuple[ReturnColumn, ...] | None
    into: str | None
    digest: bytes
    warnings: tuple[QueryWarning, ...] = field(compare=False)
    # Whether its matches list their events, as one table of several queries shows them, instead of a column a variable.
    listed: bool = False
    # Whether its timeouts have the private columns that queries reading them need: identity and tie-breaker.
    identified: bool = False

    @property
    def makes(self) -> tuple[str, ...]:
        """The streams that it makes: of its matches, and of its timeouts."""
        return tuple(name for name in (self.into, self.timeouts) if name is not None)

    @property
    def made_types(self) -> dict[str, dict[str, ValueType]]:
        """The types of the events that it makes, and their attributes.

        Those of its matches have the columns of RETURN; those of its timeouts the key, and how far the run came.
        """
        types: dict[str, dict[str, ValueType]] = {}
        if self.timeouts is not None:
            known = self.schema.columns or {}
            key = {name: known.get(name, ValueType.UNKNOWN) for name in self.partition}
            types[self.timeouts] = {**key, "reached": ValueType.INT}
        if self.into is not None:
            columns = {column.name: column.value.type for column in self.returns or ()}
            types[self.into] = {**types.get(self.into, {}), **columns}
        return types

    @property
    def result_types(self) -> dict[str, ValueType]:
        """The columns of its result, and what they hold."""
        columns = columns_of_every_result(self.schema.clock)
        if self.partition:
            columns["key"] = ValueType.OTHER
        if self.output is tree.OutputMode.COMPRESSED:
            return {**columns, "count": ValueType.STRING, "last": ValueType.OTHER, "graph": ValueType.OTHER}
        if self.returns is not None:
            return {**columns, **{column.name: column.value.type for column in self.returns}}
        return {**columns, **{component.variable: ValueType.OTHER for component in self.positives}}

    @property
    def positives(self) -> tuple[Component, ...]:
        return tuple(component for component in self.components if not component.negated)

    @property
    def counts_events(self) -> bool:
        """Whether the window is one of positions: every event of the partition counts, whatever its type."""
        return self.window is not None and self.window.events

    @property
    def is_lines(self) -> bool:
        """Whether NFA^b can run every alternative."""
        return all(map(is_linear, self.alternatives))

    @property
    def types(self) -> tuple[str, ...]:
        """The event types that the query names."""
        return tuple(dict.fromkeys(name for component in self.components for name in component.types))

    @property
    def columns_read(self) -> tuple[str, ...] | None:
        """The columns that conditions read and that the result holds; None when it holds whole events."""
        if self.returns is None or any(isinstance(column.value, Whole) for column in self.returns):
            return None
        nodes: list[Clause | Value] = [*self._clauses(), *(column.value for column in self.returns)]
        named = {
            reference.attribute
            for node in nodes
            for reference in references(node)
            if isinstance(reference, Attribute | Aggregate | Agrees) and reference.attribute is not None
        }
        return tuple(sorted(named | set(self.partition) | set(self.schema.own_columns)))

    def listing(self) -> BoundQuery:
        """This query with the events of its matches in lists; COMPRESSED becomes ALL, which has the same matches."""
        output = tree.OutputMode.ALL if self.output is tree.OutputMode.COMPRESSED else self.output
        return replace(self, listed=True, output=output)

    def identifying(self) -> BoundQuery:
        """This query with the private columns in its timeouts that queries reading them need."""
        return replace(self, identified=True)

    def columns_compared(self, columns: Iterable[str]) -> tuple[str, ...]:
        """The columns that tell events of a table apart: those that the query reads or that its result holds."""
        read = self.columns_read
        return tuple(name for name in (columns if read is None else read) if not is_private(name))

    def _clauses(self) -> list[Clause]:
        groups = [self.conditions.positive, *self.conditions.negative.values(), *self.conditions.members.values()]
        groups += [event_class.predicate for component in self.components for event_class in component.classes]
        return [clause for group in groups for clause in group]


@dataclass(frozen=True)
class Query(WrittenQuery):
    """A parsed query of a pattern. `kleene.query(text)` makes one.

    >>> Query("PATTERN SEQ(A a, B b) WHERE a.x = b.x WITHIN 10").bind(Schema()).partition
    ()
    """

    @cached_property
    def tree(self) -> tree.Query:
        parsed = self._parsed()
        if not isinstance(parsed, tree.Query):
            is_eql = isinstance(parsed, EqlQueryTree)
            raise UnknownSpelling(
                "this is a query in EQL" if is_eql else "this is an expression of streams",
                hint="`kleene.query(text)` reads it, and patterns",
            )
        return parsed

    @cached_property
    def canonical(self) -> str:
        """The query without its declarations, in one spelling; ALL and COMPRESSED show the same matches."""
        output = self.tree.output
        if output is not None and output.mode is not tree.OutputMode.NON_OVERLAP:
            output = None
        return format_query(replace(self.tree, declarations=(), output=output))

    def bind(self, schema: Schema | None = None, *, checking: bool = False) -> BoundQuery:
        """Resolve every name against a schema; the text's own declarations go first.

        A query that is only checked may leave its parameters without values.
        """
        return self._bound_to(schema or Schema(), checking, lambda whole, checks: _bind(self, whole, checks))


def _bind(query: Query, schema: Schema, checking: bool) -> BoundQuery:
    parsed = query.tree
    params = dict(query.params)
    classes = ClassBinder(schema, params, checking)
    for declaration in parsed.declarations:
        if isinstance(declaration, tree.ClassDeclaration):
            classes.bound(declaration)
    bound = patterns.bind_pattern(parsed.pattern, schema, classes.named)
    if parsed.timeouts is not None:
        _check_timeout_names(bound)
    options = alternatives(bound, parsed.pattern.span)
    strategy = parsed.strategy or tree.Strategy(tree.SelectionStrategy.SKIP_TILL_ANY_MATCH)
    _check_strategy_variables(strategy, bound)
    check_strategy(strategy, bound, options)
    lines = all(map(is_linear, options)) and not has_disjunction(bound.pattern)
    _check_output(parsed, lines=lines)
    for option in options:
        check_shape(option, bound, windowed=parsed.within is not None, whole=parsed.pattern.span)
    scopes = Scopes(
        schema,
        {component.variable: component for component in bound.components},
        bound.ambiguous,
        sometimes_absent(bound.pattern),
        params,
        checking,
        alternatives=options,
    )
    conditions = bind_conditions(parsed.where, scopes)
    returns = None if parsed.returns is None else bind_returns(parsed.returns, scopes)
    warnings = query_warnings(parsed, scopes, conditions)
    for warning in warnings:
        warning.locate(query.text, query.origin)
    digest = _digest(query, schema, bound.components)
    into = None if parsed.returns is None else parsed.returns.into
    return BoundQuery(
        name=query.name or into or f"q{digest.hex()[:8]}",
        schema=schema,
        pattern=bound.pattern,
        components=bound.components,
        alternatives=options,
        strategy=strategy.kind,
        conditions=conditions,
        partition=tuple(item.attribute for item in conditions.equivalences if item.partitions),
        window=_window(parsed, schema, params, checking),
        output=parsed.output.mode if parsed.output is not None else tree.OutputMode.ALL,
        timeouts=parsed.timeouts,
        returns=returns,
        into=into,
        digest=digest,
        warnings=warnings,
    )


def _window(parsed: tree.Query, schema: Schema, params: dict[str, object], checking: bool) -> Window | None:
    if parsed.within is None:
        return None
    if checking:
        open_ones = [
            term.amount.name for term in parsed.within.duration.terms if isinstance(term.amount, tree.Parameter)
        ]
        if any(name not in params for name in open_ones):
            return Window(1, parsed.within.inclusive, events=False)
    return bind_window(parsed.within, schema.clock, params)


def _check_timeout_names(bound: patterns.BoundPattern) -> None:
    for component in bound.components:
        if component.variable in TIMEOUT_COLUMNS:
            span = bound.spans[component.variable]
            raise ReservedName(f"`{component.variable}` is a column of every timeout", span, hint="rename the variable")


def _check_strategy_variables(strategy: tree.Strategy, bound: patterns.BoundPattern) -> None:
    if strategy.variables is None:
        return
    known = {component.variable: component for component in bound.components}
    named = set()
    for item in strategy.variables:
        if item.name not in known:
            raise StrategyVariables(
                f"`{item.name}` is no variable of the pattern", item.span, hint=did_you_mean(item.name, known)
            )
        if item.name in named:
            raise StrategyVariables(f"`{item.name}` is listed twice", item.span)
        if item.brackets != (known[item.name].kind is not ComponentKind.SINGLE):
            right = item.name if item.brackets else f"{item.name}[]"
            raise StrategyVariables(
                f"`{item.name}` is written otherwise in the pattern", item.span, hint=f"write `{right}`"
            )
        named.add(item.name)
    missing = [name for name in known if name not in named]
    if missing:
        raise StrategyVariables(
            f"the list leaves out `{missing[0]}`", strategy.span, hint="name every variable, or leave the list out"
        )


def sometimes_absent(pattern: Pattern, inside: bool = False) -> frozenset[str]:
    if isinstance(pattern, Leaf):
        absent = inside or pattern.component.optional
        return frozenset(each.variable for each in pattern.component.forbidden) if absent else frozenset()
    inside = inside or isinstance(pattern, Disjunction)
    return frozenset().union(*(sometimes_absent(part, inside) for part in pattern.parts))


def _check_output(parsed: tree.Query, *, lines: bool) -> None:
    if parsed.timeouts is not None:
        if parsed.within is None:
            raise TimeoutsNotAvailable(
                "TIMEOUTS needs a window that can close", parsed.pattern.span, hint="add `WITHIN …`"
            )
        if not lines:
            raise TimeoutsNotAvailable("TIMEOUTS needs a sequence of plain and Kleene components", parsed.timeouts_span)
    if parsed.output is None or parsed.output.mode is not tree.OutputMode.COMPRESSED:
        return
    if parsed.returns is not None and parsed.returns.into is not None:
        raise OutputNotAvailable(
            "COMPRESSED writes no match out, and INTO makes an event of each",
            parsed.output.span,
            hint="leave COMPRESSED out, or INTO",
        )
    if parsed.returns is not None:
        raise OutputNotAvailable(
            "COMPRESSED writes no match out, and RETURN computes columns of each",
            parsed.output.span,
            hint="leave RETURN out and compute from what `kleene.decompress` gives, or leave COMPRESSED out",
        )
    if not lines:
        raise OutputNotAvailable(
            "COMPRESSED shares the beginnings of runs, and only a sequence of plain and Kleene components has runs",
            parsed.output.span,
            hint="leave COMPRESSED out: other patterns are joined match by match, with nothing left to save",
        )


def _digest(query: Query, schema: Schema, parts: tuple[Component, ...]) -> bytes:
    """The hash that identifies the query in match ids: of its canonical text, its parameters and its classes."""
    return query.digest(schema, {event_class.name for component in parts for event_class in component.classes})
