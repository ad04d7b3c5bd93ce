"""Which key left detections wait under, and whether what waits is bounded on a stream that never ends."""

from __future__ import annotations

from collections.abc import Iterable

from kleene.algebra.detections import (
    Delay,
    Detection,
    DetectionFilter,
    DetectionSource,
    DetectionUnion,
    Failing,
    Iteration,
    NextDetection,
    Unless,
    aliases,
    walk_detections,
)
from kleene.algebra.eql_query import BoundEqlQuery
from kleene.optimize.detections.lengths import length_of
from kleene.pattern.expressions import Attribute, Clause, Comparison, Which
from kleene.pattern.nodes import EventClass
from kleene.pattern.types import ValueType
from kleene.plan.detections import DetectionPlan, KeyPart, NextPlan, UnlessPlan
from kleene.plan.layout import AS_INTEGERS

# Types whose equal values are equal integers, whatever the columns.
_PLAIN = frozenset({ValueType.INT, ValueType.STRING, ValueType.BOOL})


def plan_detections(query: BoundEqlQuery, *, supposing: bool = False) -> DetectionPlan:
    """The plan of a query.

    supposing   whether values of unknown types can be keys: a plan that is only shown, before any events are known
    """
    types = _PLAIN | {ValueType.UNKNOWN} if supposing else _PLAIN
    nodes = list(walk_detections(query.root))
    nexts = tuple(_next_plan(node, types) for node in nodes if isinstance(node, NextDetection))
    lasting = query.schema.start is not None
    unlesses = tuple(
        UnlessPlan(node, length_of(node.operand, lasting=lasting)) for node in nodes if isinstance(node, Unless)
    )
    return DetectionPlan(query, nexts, unlesses, next(iter(unbounded_operators(query)), None))


def _next_plan(node: NextDetection, types: frozenset[ValueType]) -> NextPlan:
    lefts, rights = frozenset(aliases(node.left)), frozenset(aliases(node.right))
    keys = {clause: part for clause in node.first_of if (part := key_part(clause, lefts, rights, types)) is not None}
    parts = tuple(keys.values())
    residual = tuple(clause for clause in node.first_of if clause not in keys)
    return NextPlan(node, parts, residual, tuple(_failing_fields(each, parts) for each in node.failing))


def key_part(
    clause: Clause, lefts: frozenset[str], rights: frozenset[str], types: frozenset[ValueType] = _PLAIN
) -> KeyPart | None:
    """A clause as an equality of a field on the left with one on the right; None when it is something else.

    types   those whose equal values are equal keys, whatever the columns
    """
    literal = clause.literals[0]
    if len(clause.literals) > 1 or not isinstance(literal, Comparison) or literal.operator != "=":
        return None
    one, other = literal.left, literal.right
    if not isinstance(one, Attribute) or not isinstance(other, Attribute):
        return None
    if one.variable in rights:
        one, other = other, one
    is_pair = one.variable in lefts and other.variable in rights
    if not is_pair or not one.which is other.which is Which.SINGLE or one.type is not other.type:
        return None
    same_steps = one.type in AS_INTEGERS and one.attribute == other.attribute
    return KeyPart(one, other) if one.type in types or same_steps else None


def _failing_fields(failing: Failing, keys: Iterable[KeyPart]) -> tuple[Attribute, ...] | None:
    """The fields of an exception's events that λ compares with the fields of a key, part by part."""
    compared = {}
    for clause in failing.condition:
        literal = clause.literals[0]
        if len(clause.literals) == 1 and isinstance(literal, Comparison) and literal.operator == "=":
            compared[literal.left], compared[literal.right] = literal.right, literal.left
    fields = tuple(compared.get(part.left) for part in keys)
    known = tuple(each for each in fields if isinstance(each, Attribute) and each.which is Which.SINGLE)
    same = all(part.left.type is each.type for part, each in zip(keys, known, strict=False))
    return known if fields and same and len(known) == len(fields) else None


# Bounds on a stream --------------------------------------------------------------------------------------------------


def unbounded_operators(query: BoundEqlQuery) -> list[NextDetection | Iteration | Unless]:
    """The operators at which detections could gather for ever."""
    lasting = query.schema.start is not None
    holding = (node for node in walk_detections(query.root) if isinstance(node, NextDetection | Iteration | Unless))
    return [node for node in holding if _is_unbounded(node, lasting=lasting)]


def _is_unbounded(node: NextDetection | Iteration | Unless, *, lasting: bool) -> bool:
    """Whether detections could gather at an operator for ever (semantics §3 Window)."""
    match node:
        case NextDetection():
            return not node.expiry and not _takes_any(node)
        case Iteration():
            return not node.expiry
        case Unless():
            # Without conditions on both sides only the last exception matters.
            return bool(node.condition) and length_of(node.operand, lasting=lasting) is None


def _takes_any(node: NextDetection) -> bool:
    """Whether any next event of the kinds that make what waits takes it."""
    awaited = _plain_classes(node.right)
    if node.first_of or awaited is None:
        return False
    types = {name for each in awaited for name in each.types}
    return {name for source in _ends(node.left) for each in source.component.classes for name in each.types} <= types


def _plain_classes(node: Detection) -> list[EventClass] | None:
    """The classes of which every event is a detection; None where conditions choose among them."""
    if isinstance(node, DetectionSource):
        known = list(node.component.classes)
        return None if any(each.predicate for each in known) else known
    if isinstance(node, DetectionUnion):
        parts = [_plain_classes(part) for part in node.parts]
        return None if None in parts else [each for part in parts for each in part or ()]
    return None


def _ends(node: Detection) -> list[DetectionSource]:
    """The sources whose events end the detections of a node."""
    match node:
        case DetectionSource():
            return [node]
        case DetectionUnion(parts):
            return [source for part in parts for source in _ends(part)]
        case NextDetection(right=right):
            return _ends(right)
        case DetectionFilter(operand) | Unless(operand) | Iteration(operand) | Delay(operand):
            return _ends(operand)
