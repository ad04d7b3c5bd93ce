r"""Keys that keep the events of a query in EQL apart.

A key needs an equality in FILTER on every `;`, between a field that waits and one that comes: then events of other
values neither follow nor use it up. An exception needs one, too, between its own field and one of what it ends; one
without (an uncorrelated `\`) ends the runs of all keys. In `+` nothing compares one event with the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product

from kleene.algebra.detections import (
    Delay,
    Detection,
    DetectionFilter,
    DetectionSource,
    DetectionUnion,
    Iteration,
    NextDetection,
    Unless,
    walk_detections,
)
from kleene.algebra.eql_query import BoundEqlQuery, clauses_of_detection
from kleene.pattern.expressions import Attribute, Clause, Comparison, Which

# A field of an alias.
Field = tuple[str, str]
# So many ways to choose columns are looked at.
_MOST = 64


@dataclass(frozen=True)
class AliasKeys:
    """A column for each source, such that events of different values never meet.

    key        the fields of detections that have the same value
    excepted   by number of an exception: the fields of its events that have the value by which they are divided
    """

    columns: Mapping[DetectionSource, str]
    key: frozenset[Field]
    excepted: Mapping[int, frozenset[Field]] = field(default_factory=dict)


def linked(query: BoundEqlQuery) -> list[AliasKeys]:
    """The ways to divide the events of a query; none where something looks at all events."""
    compared = {each for clause in clauses_of_detection(query.root) for each in _pair(clause)}
    return list(_linked(query.root, compared))[:_MOST]


def why_not_linked(query: BoundEqlQuery) -> str:
    """What keeps the events of a query from being divided by key."""
    for node in walk_detections(query.root):
        if isinstance(node, Unless) and not node.condition and not node.deferred:
            return "an exception without an equality ends the runs of all keys"
        if isinstance(node, Iteration):
            return "`+` takes the next event of any key"
    return "it has no FILTER with one equality on every `;`"


def _linked(node: Detection, compared: set[Field]) -> Iterator[AliasKeys]:
    match node:
        case DetectionSource(component):
            for alias, attribute in sorted(compared):
                if alias == component.variable:
                    yield AliasKeys({node: attribute}, frozenset({(alias, attribute)}))
        case DetectionFilter(operand) | Delay(operand):
            yield from _linked(operand, compared)
        case DetectionUnion(parts):
            for ways in product(*(list(_linked(part, compared))[:_MOST] for part in parts)):
                yield _merged(ways)
        case NextDetection(left, right):
            for one, other in product(_linked(left, compared), list(_linked(right, compared))):
                if _joins(node.first_of, one.key, other.key) and _fails_alike(node, one, other):
                    yield _merged([one, other])
        case Unless(operand, exception):
            yield from _excepted(node, list(_linked(operand, compared)), list(_linked(exception, compared)))
        case Iteration():
            return


def _excepted(node: Unless, ways: list[AliasKeys], exceptions: list[AliasKeys]) -> Iterator[AliasKeys]:
    for one, other in product(ways, exceptions):
        if node.deferred or _joins(node.condition, one.key, other.key):
            both = _merged([one, other])
            yield AliasKeys(both.columns, one.key, {**both.excepted, node.number: other.key})


def _fails_alike(node: NextDetection, left: AliasKeys, right: AliasKeys) -> bool:
    """Whether a failed detection is seen only by runs with its own key."""
    for failing in node.failing:
        known = right.excepted.get(failing.exception, frozenset())
        seen = failing.kills or failing.condition
        if seen and not _joins(failing.condition, left.key, known):
            return False
    return True


def _joins(clauses: Iterable[Clause], one: frozenset[Field], other: frozenset[Field]) -> bool:
    """Whether a clause makes a field of one side equal to a field of the other."""
    for clause in clauses:
        pair = _pair(clause)
        if len(pair) == 2 and any(mine in one and theirs in other for mine, theirs in (pair, pair[::-1])):
            return True
    return False


def _pair(clause: Clause) -> tuple[Field, ...]:
    """The fields of an equality of two; nothing for any other clause."""
    match clause.literals:
        case (
            Comparison("=", Attribute(one, Which.SINGLE, left) as first, Attribute(other, Which.SINGLE, right) as last),
        ):
            return ((one, left), (other, right)) if first.type is last.type and one != other else ()
    return ()


def _merged(ways: Iterable[AliasKeys]) -> AliasKeys:
    columns: dict[DetectionSource, str] = {}
    key: frozenset[Field] = frozenset()
    excepted: dict[int, frozenset[Field]] = {}
    for way in ways:
        columns |= way.columns
        key |= way.key
        excepted |= way.excepted
    return AliasKeys(columns, key, excepted)


def is_alone(query: BoundEqlQuery) -> bool:
    """Whether a result is one event, whatever is around it."""
    waits = NextDetection | Iteration | Unless | Delay
    return not any(isinstance(node, waits) for node in walk_detections(query.root))
