"""The plan of a query in EQL: its operators, and for each `;` the key under which left detections wait."""

from __future__ import annotations

from dataclasses import dataclass

from kleene.algebra.detections import (
    Detection,
    DetectionFilter,
    DetectionSource,
    Iteration,
    NextDetection,
    Unless,
    operands,
)
from kleene.algebra.eql_query import BoundEqlQuery
from kleene.pattern.expressions import Attribute, Clause, Which, references


@dataclass(frozen=True, slots=True)
class KeyPart:
    """An equality of φ: a field of a left alias, and one of a right alias."""

    left: Attribute
    right: Attribute


@dataclass(frozen=True, slots=True)
class NextPlan:
    """How left detections wait at a `;`.

    keys      the equalities of φ: a right detection looks only at left ones with its own values
    residual  the rest of φ, which is tested with each that waits under the key
    failing   for each exception of the right side, the fields of its events that λ compares with those of the key; None
              where λ does not compare all of them
    """

    node: NextDetection
    keys: tuple[KeyPart, ...]
    residual: tuple[Clause, ...]
    failing: tuple[tuple[Attribute, ...] | None, ...]


@dataclass(frozen=True, slots=True)
class UnlessPlan:
    r"""How long exceptions are held at a `\` whose λ compares both sides.

    longest   how many steps what it cancels may last; None: any number
    """

    node: Unless
    longest: int | None


@dataclass(frozen=True, slots=True)
class DetectionPlan:
    query: BoundEqlQuery
    nexts: tuple[NextPlan, ...]
    unlesses: tuple[UnlessPlan, ...] = ()
    # An operator whose detections could wait for ever on a stream; None: there is none.
    unbounded: NextDetection | Iteration | Unless | None = None
    # Why the reference evaluator runs the query; None where operators do.
    why_on_reference: str | None = None

    @property
    def alternatives(self) -> tuple[DetectionPlan, ...]:
        """One network of operators runs it, or none."""
        return () if self.why_on_reference is not None else (self,)

    def next_plan(self, node: NextDetection) -> NextPlan:
        return next(each for each in self.nexts if each.node is node)

    def unless_plan(self, node: Unless) -> UnlessPlan:
        return next(each for each in self.unlesses if each.node is node)


def is_read_with_source(node: Detection) -> bool:
    """Whether a filter is tested as events are read: it names the event of one source alone."""
    if not isinstance(node, DetectionFilter) or not isinstance(node.operand, DetectionSource):
        return False
    named = [each for clause in node.condition for each in references(clause)]
    return bool(named) and all(isinstance(each, Attribute) and each.which is Which.SINGLE for each in named)


def operator_nodes(root: Detection) -> list[Detection]:
    """The nodes that run as operators, those below before those above."""
    below = () if is_read_with_source(root) else operands(root)
    return [each for operand in below for each in operator_nodes(operand)] + [root]
