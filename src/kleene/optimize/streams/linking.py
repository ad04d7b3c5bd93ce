"""Keys that keep the events of a stream apart: equalities on every `;` and μ between what waits and what comes.

Where each condition compares a value of the waiting event with one of the coming event, events of other values neither
serve it nor use it up. So all events of a result, and all that decide on it, have the same value in one column each,
and events may be divided by these columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from kleene.algebra.nodes import (
    AttributeName,
    Carried,
    Compute,
    Filter,
    Fold,
    Next,
    Node,
    Project,
    Rename,
    StreamSchema,
    StreamSource,
    StreamUnion,
    Unary,
    chain,
)
from kleene.pattern.expressions import Attribute, Clause, Comparison, Which

# So many ways to choose columns are looked at.
_MOST = 64


@dataclass(frozen=True)
class SourceKeys:
    """A column for each source, such that events of different values never meet.

    key   the attributes of results that have the same value
    """

    columns: Mapping[StreamSource, str]
    key: frozenset[AttributeName]


def linked(node: Node) -> list[SourceKeys]:
    """The ways to divide the events of a stream; none where something looks at all events."""
    return list(_linked(node))[:_MOST]


def _linked(node: Node) -> Iterator[SourceKeys]:
    match node:
        case StreamSource(columns=columns):
            for attribute, column in columns:
                yield SourceKeys({node: column}, frozenset({attribute}))
        case StreamUnion(parts, schema):
            yield from _united([linked(part) for part in parts], schema)
        case Next(left, right, condition):
            yield from _next(left, right, condition)
        case Fold():
            yield from _fold(node)
        case Filter() | Project() | Rename() | Compute():
            for each in linked(node.operand):
                yield SourceKeys(each.columns, _after([node], each.key))
        case Carried():
            raise TypeError("what a fold carries is known inside its step alone")


def _after(operations: Iterable[Unary], key: frozenset[AttributeName]) -> frozenset[AttributeName]:
    """The attributes with the key after some operations, innermost first."""
    for node in operations:
        match node:
            case Project(_, schema):
                key = key & frozenset(schema.names)
            case Rename(_, names):
                new = dict(names)
                key = frozenset(new.get(name, name) for name in key)
            case Compute(_, assignments):
                copied = {name for name, value in assignments if _plain(value) in key}
                key = (key - {name for name, _ in assignments}) | copied
    return key


def _plain(value: object) -> AttributeName | None:
    """The attribute that a value is."""
    if isinstance(value, Attribute) and value.which is not Which.OVERWRITTEN:
        return value.variable, value.attribute
    return None


def _united(parts: list[list[SourceKeys]], schema: StreamSchema) -> Iterator[SourceKeys]:
    """By an attribute that all parts have as their key; where none is left above, by any key of each."""
    for name in schema.names:
        chosen = [next((each for each in part if name in each.key), None) for part in parts]
        merged = _merged(each for each in chosen if each is not None) if None not in chosen else None
        if merged is not None:
            yield SourceKeys(merged, frozenset.intersection(*(each.key for each in chosen if each is not None)))
    if all(parts):
        merged = _merged(part[0] for part in parts)
        if merged is not None:
            yield SourceKeys(merged, frozenset())


def _next(left: Node, right: Node, condition: tuple[Clause, ...]) -> Iterator[SourceKeys]:
    pairs = list(_equalities(condition, right.schema))
    for one in linked(left):
        for other in linked(right):
            if any(mine in one.key and brought in other.key for mine, brought in pairs):
                merged = _merged([one, other])
                if merged is not None:
                    yield SourceKeys(merged, (one.key - frozenset(right.schema.names)) | other.key)


def _fold(node: Fold) -> Iterator[SourceKeys]:
    pairs = list(_equalities(node.condition, node.right.schema))
    operations, _ = chain(node.step)
    names = frozenset(node.right.schema.names)
    for one in linked(node.left):
        begun = one.key | {name for name, value in node.init if _plain(value) in one.key}
        for other in linked(node.right):
            # What has the key before every round, and after it.
            lasting = begun
            while not lasting <= (after := _after(reversed(operations), (lasting - names) | other.key)):
                lasting = lasting & after
            if any(mine in lasting and brought in other.key for mine, brought in pairs):
                merged = _merged([one, other])
                if merged is not None:
                    yield SourceKeys(merged, after)


def _equalities(condition: tuple[Clause, ...], right: StreamSchema) -> Iterator[tuple[AttributeName, AttributeName]]:
    """What a condition makes equal: an attribute that waits, and one that comes."""
    for clause in condition:
        match clause.literals:
            case (Comparison("=", Attribute() as left, Attribute() as other),) if left.type is other.type:
                for waiting, brought in ((left, other), (other, left)):
                    name = brought.variable, brought.attribute
                    waits = (
                        waiting.which is Which.OVERWRITTEN or (waiting.variable, waiting.attribute) not in right.names
                    )
                    if waits and brought.which is not Which.OVERWRITTEN and name in right.names:
                        yield (waiting.variable, waiting.attribute), name


def _merged(parts: Iterable[SourceKeys]) -> dict[StreamSource, str] | None:
    """The columns of all parts; None where one source has two."""
    columns: dict[StreamSource, str] = {}
    for part in parts:
        for source, column in part.columns.items():
            if columns.setdefault(source, column) != column:
                return None
    return columns
