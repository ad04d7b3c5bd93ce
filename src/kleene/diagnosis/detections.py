"""Why a query in EQL has the results that it has, or none: what came of the detections at each operator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from kleene.algebra.detections import (
    Detection,
    DetectionFilter,
    DetectionSource,
    DetectionUnion,
    Iteration,
    NextDetection,
    Unless,
    aliases,
    operands,
)
from kleene.algebra.eql_explaining import exception_named, expiry_text, print_detection
from kleene.algebra.eql_printing import Occurs, conjuncts, print_conjuncts
from kleene.algebra.eql_query import BoundEqlQuery
from kleene.analysis import analyzed_detections
from kleene.diagnosis.stream import DiagnosedStream
from kleene.diagnosis.wording import counted, why_unseen
from kleene.engine.detections.counts import OperatorCounts
from kleene.pattern.explaining import aligned
from kleene.pattern.expressions import Clause
from kleene.plan.detections import is_read_with_source
from kleene.plan.physical import Plan
from kleene.plan.settings import Settings


def diagnose_detections(query: BoundEqlQuery, table: pa.Table) -> str:
    """Run a query for its counts, in plain words."""
    ran = analyzed_detections(query, table, Settings())
    if ran.plan.why_on_reference is not None:
        reason = ran.plan.why_on_reference
        return f"why is not available: `{query.name}` runs on the reference evaluator, which counts nothing ({reason})"
    given = counted(ran.matches, "match", "matches") if ran.matches else "no match"
    said = _Wording(query, ran.counts, table)
    lines = [f"`{query.name}`: {given} in {counted(ran.events, 'event')}", *(f"  {line}" for line in said.lines())]
    if not ran.matches:
        lines.append(f"  {said.verdict(query.root)}")
    return "\n".join(lines)


@dataclass(frozen=True)
class _Wording:
    """What the operators of a query counted, in words."""

    query: BoundEqlQuery
    counts: dict[Detection, OperatorCounts]
    table: pa.Table

    def lines(self) -> Iterator[str]:
        yield from aligned((self._shown(node), self._operator(node, counts)) for node, counts in self.counts.items())

    def _shown(self, node: Detection) -> str:
        return print_detection(node, self.query.schema.clock)

    def _texts(self, clauses: Sequence[Clause]) -> list[str]:
        return [f"`{text}`" for text in print_conjuncts(clauses, self.query.schema.clock)]

    # An operator

    def _operator(self, node: Detection, counts: OperatorCounts) -> str:
        match node:
            case DetectionSource():
                return counted(counts.given, "event")
            case DetectionFilter(operand, condition) if is_read_with_source(node):
                seen = self._given(operand)
                return f"{counted(seen, 'event')}, {counts.given:,} with {' and '.join(self._texts(condition))}"
            case DetectionFilter(_, condition):
                return f"{counts.came:,} came, {counts.given:,} with {' and '.join(self._texts(condition))}"
            case Unless():
                name = exception_named(node.number, self.query)
                return f"{counts.came:,} came, {counts.ended:,} ended by {name}, {counts.given:,} given"
            case NextDetection() | Iteration():
                return self._waited(node, counts)
            case _:
                return f"{counts.given:,} given"

    def _waited(self, node: NextDetection | Iteration, counts: OperatorCounts) -> str:
        served = counted(counts.served, "was", "were") if counts.served else "none was"
        facts = [f"{served} served by what came next"]
        facts += [
            f"{number:,} {what}"
            for number, what in (
                (counts.failed, "over: what came next failed"),
                (counts.ended, f"ended by {self._exceptions(node)}"),
                (counts.unkeyed, "had no value for the key"),
                (counts.expired, "expired"),
                (counts.left, "still waited at the end"),
            )
            if number
        ]
        return f"{counts.came:,} came: {', '.join(facts)}; {counts.given:,} given"

    def _exceptions(self, node: NextDetection | Iteration) -> str:
        if isinstance(node, Iteration):
            numbers = list(node.failing)
        else:
            numbers = [each.exception for each in node.failing if each.kills]
        return " or ".join(exception_named(number, self.query) for number in numbers)

    # Why nothing came further

    def verdict(self, node: Detection) -> str:
        """What stopped most, at the lowest operator that gave nothing and should have."""
        if node not in self.counts:
            # Without events there are no operators.
            return "there are no events"
        if isinstance(node, DetectionUnion):
            return "; ".join(map(self.verdict, node.parts))
        for operand in self._needed(node):
            if operand in self.counts and not self.counts[operand].given:
                return self.verdict(operand)
        return f"nothing came of {self._shown(node)}: {', '.join(self._reasons(node)) or 'nothing is known'}"

    @staticmethod
    def _needed(node: Detection) -> tuple[Detection, ...]:
        """The operands without which a node gives nothing."""
        return operands(node)[:1] if isinstance(node, Unless) else operands(node)

    def _reasons(self, node: Detection) -> Iterator[str]:
        counts = self.counts[node]
        match node:
            case DetectionSource():
                yield self._unseen(node)
            case DetectionFilter(operand, condition):
                if isinstance(operand, DetectionSource) and not self._given(operand):
                    yield self._unseen(operand)
                else:
                    yield from self._failing(node, condition)
            case NextDetection():
                yield from self._failing(node, node.condition)
                yield from self._ended(node, counts)
                yield from self._never_next(node, counts)
            case Iteration():
                yield from self._failing(node, (*node.first_of, *node.condition))
            case Unless():
                yield f"{exception_named(node.number, self.query)} ended {counts.ended:,} of {counts.came:,}"

    def _unseen(self, source: DetectionSource) -> str:
        stream = DiagnosedStream(self.query, Plan.on_reference(self.query, "EQL"), self.table)
        return why_unseen(source.component, self.query, stream)

    def _failing(self, node: Detection, condition: Sequence[Clause]) -> Iterator[str]:
        """The conditions that what came failed, that which most failed first; each is tested alone."""
        failures = []
        for each in conjuncts(condition):
            own = each.clauses if isinstance(each, Occurs) else (each,)
            failures.append((self._failed(node, own), self._texts(own)[0]))
        for number, text in sorted(failures, key=lambda pair: -pair[0]):
            if number:
                yield f"{number:,} failed {text}"

    def _failed(self, node: Detection, condition: tuple[Clause, ...]) -> int:
        """How many fail some clauses of a node alone."""
        match node:
            case DetectionFilter(operand):
                return self._given(operand) - self._given(replace(node, condition=condition))
            case NextDetection():
                return self._counted(replace(node, condition=condition)).failed
            case Iteration(operand):
                # A run begins with a detection that satisfies both φ and θ.
                begun = DetectionFilter(operand, condition)
                return self._given(operand) - self._given(begun)
        raise TypeError(f"{type(node).__name__} has no such condition")

    def _ended(self, node: NextDetection, counts: OperatorCounts) -> Iterator[str]:
        if counts.ended:
            yield f"{self._exceptions(node)} ended {counts.ended:,}"
        if counts.unkeyed:
            yield f"{counts.unkeyed:,} had no value for the key"
        if counts.expired:
            yield f"{counts.expired:,} expired ({expiry_text(node.expiry[0], self.query)})"

    def _never_next(self, node: NextDetection, counts: OperatorCounts) -> Iterator[str]:
        """Of those that waited until they were gone: which part of φ kept them from what came."""
        if not counts.left + counts.expired:
            return
        awaited = ", ".join(aliases(node.right))
        alone = self._counted(replace(node, first_of=(), condition=())).served
        if not alone:
            yield f"no {awaited} came after {', '.join(aliases(node.left))}"
            return
        base = self._counted(replace(node, condition=())).served
        gains = []
        for each in conjuncts(node.first_of):
            own = each.clauses if isinstance(each, Occurs) else (each,)
            others = tuple(clause for clause in node.first_of if clause not in own)
            served = self._counted(replace(node, first_of=others, condition=())).served
            gains.append((served - base, self._texts(own)[0]))
        for gain, text in sorted(gains, key=lambda pair: -pair[0]):
            if gain:
                yield f"without {text} {gain:,} more would have had a next {awaited}"
        if gains and not any(gain for gain, _ in gains):
            yield f"without FILTER {alone - base:,} more would have had a next {awaited}"

    # What-if

    def _given(self, root: Detection) -> int:
        return self._counted(root).given

    def _counted(self, root: Detection) -> OperatorCounts:
        """What the last operator of another query over the same aliases counts."""
        other = replace(self.query, root=root, returns=None, into=None)
        return analyzed_detections(other, self.table, Settings()).counts.get(root, OperatorCounts())
