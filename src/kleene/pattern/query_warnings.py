"""Warnings: conditions that are never true, always true or never tested, and patterns that may explode."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kleene.errors import (
    AlwaysFalse,
    AlwaysTrue,
    AnyWithoutTypes,
    Exponential,
    QueryWarning,
    Span,
    Unreachable,
    WholeStream,
)
from kleene.lang import tree
from kleene.pattern.bind_expression import Scopes
from kleene.pattern.conditions import Conditions
from kleene.pattern.expressions import (
    Aggregate,
    Arithmetic,
    Attribute,
    Clause,
    Comparison,
    Constant,
    Literal,
    Negative,
    Nth,
    Scope,
    Truth,
    Value,
    Which,
    references,
)
from kleene.pattern.nodes import ComponentKind
from kleene.pattern.types import NUMERIC

_MIRROR = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def query_warnings(query: tree.Query, scopes: Scopes, conditions: Conditions) -> tuple[QueryWarning, ...]:
    clauses = (
        *conditions.positive,
        *(clause for group in conditions.negative.values() for clause in group),
        *(clause for group in conditions.members.values() for clause in group),
    )
    warnings = [
        *_constants(clauses, scopes),
        *_contradictions(conditions.positive, scopes),
        *_untested(clauses, scopes),
        *_beyond(clauses, scopes),
        *_untyped_any(query, clauses, scopes),
        *_explosions(query, scopes),
        *_unpartitioned(query, scopes, conditions),
    ]
    return tuple({(warning.code, warning.span, warning.message): warning for warning in warnings}.values())


def _unpartitioned(query: tree.Query, scopes: Scopes, conditions: Conditions) -> Iterator[QueryWarning]:
    """Contiguity goes by brackets: an equality that is spelled out makes no partition (semantics §3 Partition)."""
    strategy = query.strategy
    if (
        strategy is None
        or strategy.kind is not tree.SelectionStrategy.PARTITION_CONTIGUITY
        or len(scopes.components) < 2
    ):
        return
    if not any(item.partitions for item in conditions.equivalences):
        yield WholeStream(
            "no attribute in brackets makes a partition, so the whole stream is one",
            strategy.span,
            hint="write `[id]` for what all events agree on, or strict_contiguity",
        )


def _span(clause: Clause, scopes: Scopes) -> Span | None:
    return next((scopes.places[literal] for literal in clause.literals if literal in scopes.places), None)


def _constants(clauses: Iterable[Clause], scopes: Scopes) -> Iterator[QueryWarning]:
    for clause in clauses:
        verdicts = [_verdict(literal) for literal in clause.literals]
        if all(verdict is False for verdict in verdicts):
            yield AlwaysFalse(
                "this condition is never true, so nothing can match", _span(clause, scopes), _null_hint(clause)
            )
        for literal, verdict in zip(clause.literals, verdicts, strict=True):
            if verdict is True:
                yield AlwaysTrue("this condition is always true", scopes.places.get(literal))


def _null_hint(clause: Clause) -> str | None:
    for literal in clause.literals:
        if isinstance(literal, Comparison) and any(
            isinstance(side, Constant) and side.value is None for side in (literal.left, literal.right)
        ):
            return "a comparison with NULL is never true; write `IS NULL`"
    return None


def _verdict(literal: Literal) -> bool | None:
    """The truth of a literal that does not depend on the events; None when it does."""
    if isinstance(literal, Truth):
        return literal.value
    if not isinstance(literal, Comparison):
        return None
    sides = (literal.left, literal.right)
    if any(isinstance(side, Constant) and side.value is None for side in sides):
        return False
    if any(_is_undefined(side) for side in sides):
        return False
    left, right = map(_constant, sides)
    if left is not None and right is not None:
        return holds(literal.operator, left, right)
    if literal.left is literal.right and isinstance(literal.left, Attribute):
        return False if literal.operator in ("!=", "<", ">") else None
    counted = [side for side in sides if isinstance(side, Aggregate) and side.function == "count"]
    if counted and right is not None and isinstance(right, int) and right < 0:
        return literal.operator in (">", ">=", "!=")
    return None


def _is_undefined(value: Value) -> bool:
    """Division by the number zero has no value, whatever is divided."""
    if not isinstance(value, Arithmetic):
        return False
    zero = value.operator in "/%" and _constant(value.right) == 0
    return zero or _is_undefined(value.left) or _is_undefined(value.right)


def _constant(value: Value) -> int | float | str | None:
    if isinstance(value, Constant):
        return value.value  # type: ignore[no-any-return]
    if isinstance(value, Negative):
        inner = _constant(value.operand)
        return -inner if isinstance(inner, int | float) else None
    if isinstance(value, Arithmetic) and value.type in NUMERIC:
        left, right = _constant(value.left), _constant(value.right)
        if isinstance(left, int | float) and isinstance(right, int | float) and value.operator in "+-*":
            return left + right if value.operator == "+" else left - right if value.operator == "-" else left * right
    return None


def holds(operator: str, left: int | float | str, right: int | float | str) -> bool:
    match operator:
        case "=":
            return left == right
        case "!=":
            return left != right
    if isinstance(left, str) != isinstance(right, str):
        return False
    match operator:
        case "<":
            return left < right  # type: ignore[operator]
        case "<=":
            return left <= right  # type: ignore[operator]
        case ">":
            return left > right  # type: ignore[operator]
    return left >= right  # type: ignore[operator]


@dataclass(slots=True)
class _Range:
    """The values that the conditions seen so far leave to an attribute."""

    low: int | float | str | None = None
    low_open: bool = False
    high: int | float | str | None = None
    high_open: bool = False

    def narrow(self, operator: str, value: int | float | str) -> bool:
        """Take a condition in; False when no value is left."""
        if operator in ("=", ">", ">="):
            strict = operator == ">"
            if self.low is None or holds(">", value, self.low) or (value == self.low and strict):
                self.low, self.low_open = value, strict
        if operator in ("=", "<", "<="):
            strict = operator == "<"
            if self.high is None or holds("<", value, self.high) or (value == self.high and strict):
                self.high, self.high_open = value, strict
        if self.low is None or self.high is None or isinstance(self.low, str) != isinstance(self.high, str):
            return True
        return holds("<", self.low, self.high) or (self.low == self.high and not (self.low_open or self.high_open))


def _contradictions(clauses: Iterable[Clause], scopes: Scopes) -> Iterator[QueryWarning]:
    """`a.x > 5 and a.x < 3`: each is possible, both are not."""
    ranges: dict[Value, _Range] = {}
    for clause in clauses:
        if len(clause.literals) != 1 or not isinstance(clause.literals[0], Comparison):
            continue
        literal = clause.literals[0]
        attribute, operator, value = literal.left, literal.operator, _constant(literal.right)
        if value is None:
            attribute, operator, value = literal.right, _MIRROR[literal.operator], _constant(literal.left)
        if value is None or isinstance(value, bool) or not isinstance(attribute, Attribute | Aggregate):
            continue
        if _can_lack(attribute, scopes):
            continue
        if not ranges.setdefault(attribute, _Range()).narrow(operator, value):
            yield AlwaysFalse("the conditions on this value exclude each other", scopes.places.get(literal))
            ranges.pop(attribute)


def _can_lack(reference: Attribute | Aggregate, scopes: Scopes) -> bool:
    component = scopes.components[reference.variable]
    return (
        reference.variable in scopes.sometimes_absent
        or (reference.attribute is not None and not scopes.always_has(component, reference.attribute))
        or (isinstance(reference, Attribute) and reference.which in (Which.CURRENT, Which.PREVIOUS))
    )


def _untested(clauses: Iterable[Clause], scopes: Scopes) -> Iterator[QueryWarning]:
    """`a[i]` speaks of the second event and later: with at most one event it is never tested."""
    for clause in clauses:
        for reference in references(clause):
            component = scopes.components[reference.variable]
            iterating = isinstance(reference, Attribute) and reference.which in (Which.CURRENT, Which.PREVIOUS)
            so_far = isinstance(reference, Aggregate) and reference.scope is Scope.SO_FAR
            if (iterating or so_far) and component.maximum == 1:
                yield Unreachable(
                    f"`{component.variable}` has at most one event, so `{component.variable}[i]` is never tested",
                    _span(clause, scopes),
                )


def _beyond(clauses: Iterable[Clause], scopes: Scopes) -> Iterator[QueryWarning]:
    """`a[6]` of a closure that ends with the fifth event: NULL, and so is every comparison with it."""
    for clause in clauses:
        for reference in references(clause):
            most = scopes.components[reference.variable].maximum
            if isinstance(reference, Nth) and most is not None and reference.position > most:
                name = reference.variable
                yield AlwaysFalse(
                    f"`{name}` has at most {most} events, so `{name}[{reference.position}]` is NULL",
                    scopes.places.get(reference),
                    f"the last is `{name}[{name}.LEN]`",
                )


def _untyped_any(query: tree.Query, clauses: Iterable[Clause], scopes: Scopes) -> Iterator[QueryWarning]:
    if scopes.schema.types:
        return
    for clause in clauses:
        for reference in references(clause):
            component = scopes.components[reference.variable]
            if len(component.types) > 1:
                yield AnyWithoutTypes(
                    f"no types are declared, so every type of `{component.variable}` is taken to have every column",
                    _span(clause, scopes),
                    "declare the attributes of each type: `DECLARE TYPE A (x int)`",
                )


def _explosions(query: tree.Query, scopes: Scopes) -> Iterator[QueryWarning]:
    kind = query.strategy.kind if query.strategy is not None else tree.SelectionStrategy.SKIP_TILL_ANY_MATCH
    compressed = query.output is not None and query.output.mode is tree.OutputMode.COMPRESSED
    if kind is not tree.SelectionStrategy.SKIP_TILL_ANY_MATCH or compressed:
        return
    for component in scopes.components.values():
        if component.kind is ComponentKind.KLEENE and component.maximum is None:
            yield Exponential(
                f"every subset of the events that `{component.variable}[]` can take is a match",
                query.span,
                "choose another strategy, or OUTPUT COMPRESSED",
            )
