"""The operators of one query and the events that they refer to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from kleene.algebra.detections import (
    Delay,
    Detection,
    DetectionFilter,
    DetectionSource,
    DetectionUnion,
    Iteration,
    NextDetection,
    Unless,
    aliases,
    operands,
    repeats_iterations,
)
from kleene.engine.detections.arrays import by_end, size_of, taken
from kleene.engine.detections.batches import DetectionBatch
from kleene.engine.detections.counts import OperatorCounts
from kleene.engine.detections.events import HeldEvents, Source
from kleene.engine.detections.operators import (
    DelayOperator,
    FilterOperator,
    IterationOperator,
    NextOperator,
    Operator,
    OperatorContext,
    SourceOperator,
    UnionOperator,
    UnlessOperator,
)
from kleene.engine.intake.strings import StringPool
from kleene.engine.output.matches import Matches
from kleene.kernels.detections import DetectionArrays, by_alias
from kleene.kernels.expression import Ints
from kleene.plan.detections import DetectionPlan, is_read_with_source

# Events that nothing refers to any more are dropped when there are more of them than of the others, and so many.
_WORTH_IT = 1 << 16
_REFERENCE_BYTES = 3 * 8
_DETECTION_BYTES = 6 * 8


class DetectionNetwork:
    def __init__(self, plan: DetectionPlan, columns: pa.Schema) -> None:
        """Operators for events with these columns; `NotCompilable` where a condition has no program."""
        self.plan, self._columns = plan, columns
        self.strings = StringPool()
        self.events = HeldEvents(plan.query, columns, self.strings)
        aliases = {component.variable: number for number, component in enumerate(plan.query.components)}
        self._context = OperatorContext(self.events, self.strings, aliases)
        self._sources: list[Source] = []
        self._operators: list[tuple[Operator, list[int]]] = []
        self.nodes: list[Detection] = []
        self._add(plan.query.root)
        # [alias]: its place among the variables of a match.
        positives = [component.variable for component in plan.query.positives]
        self._places = np.array([positives.index(name) if name in positives else -1 for name in aliases], np.int64)
        self._may_repeat = repeats_iterations(plan.query.root)
        # How many events were of use when others were last dropped.
        self._kept = 0

    def _add(self, node: Detection) -> int:
        """Make the operators of a node and of those below it; the number of its own."""
        source = node.operand if isinstance(node, DetectionFilter) and is_read_with_source(node) else node
        if isinstance(source, DetectionSource):
            self._sources.append((source.component, node.condition if isinstance(node, DetectionFilter) else ()))
            return self._made(node, self._operator(source), [])
        below = [self._add(operand) for operand in operands(node)]
        return self._made(node, self._operator(node), below)

    def _made(self, node: Detection, operator: Operator, below: list[int]) -> int:
        operator.counts = OperatorCounts()
        self._operators.append((operator, below))
        self.nodes.append(node)
        return len(self._operators) - 1

    def _operator(self, node: Detection) -> Operator:
        match node:
            case DetectionSource():
                return SourceOperator(node, self._context)
            case DetectionFilter():
                return FilterOperator(node, self._context)
            case DetectionUnion():
                return UnionOperator()
            case Delay():
                return DelayOperator(node, self._context)
            case NextDetection():
                return NextOperator(node, self.plan.next_plan(node), self._context)
            case Iteration():
                return IterationOperator(node, self._context)
            case Unless():
                return UnlessOperator(node, self.plan.unless_plan(node), self._context)

    # Events in, detections out

    def advance(self, table: pa.Table, until: int | None) -> tuple[Matches, int]:
        """Take in the events of a table; the matches that end before the watermark, and how many events were of use."""
        new = self.events.take_in(table, self._sources)
        given: list[DetectionBatch] = []
        for operator, below in self._operators:
            inputs = [given[place] for place in below]
            given.append(operator.advance(new, inputs, until))
            _count(operator, inputs, given[-1])
        return self._matches(given[-1].detections), new.number

    def _matches(self, detections: DetectionArrays) -> Matches:
        """Detections as matches: the events of each by variable."""
        variables = self._places[detections.aliases]
        rows = detections.rows.copy()
        by_alias(detections.offsets, rows, variables)
        if self._may_repeat:
            detections, rows, variables = _each_once(detections, rows, variables)
        lasts = self.events.points.ends[detections.rows[detections.offsets[1:] - 1]] if size_of(detections) else 0
        later = detections.ends - lasts
        return Matches(detections.offsets, rows, variables.astype(np.uint8), later if np.any(later) else None)

    # What is held

    @property
    def operators(self) -> list[Operator]:
        return [operator for operator, _ in self._operators]

    @property
    def counts(self) -> dict[Detection, OperatorCounts]:
        """What each operator counted, by its node."""
        return {node: operator.counts for node, operator in zip(self.nodes, self.operators, strict=True)}

    @property
    def _waiting(self) -> Iterator[DetectionArrays]:
        return (each.waiting for each in self.operators if each.waiting is not None)

    @property
    def size(self) -> int:
        """How many detections wait."""
        return sum(map(size_of, self._waiting))

    @property
    def most_under_a_key(self) -> int:
        """How many detections wait for the same events."""
        most = 0
        for each in self.operators:
            if isinstance(each, NextOperator) and len(each.keys):
                most = max(most, int(np.unique(each.keys, return_counts=True)[1].max()))
            elif each.waiting is not None:
                most = max(most, size_of(each.waiting))
        return most

    @property
    def rows_needed(self) -> Ints:
        """The rows of the events that something which waits refers to."""
        needed = np.zeros(self.events.size, np.bool_)
        for waiting in self._waiting:
            needed[waiting.rows] = True
        return np.flatnonzero(needed)

    @property
    def state_bytes(self) -> int:
        """The bytes of what waits: they follow from that alone."""
        references = sum(len(waiting.rows) for waiting in self._waiting)
        events = self.rows_needed
        arrays = self.size * _DETECTION_BYTES + references * _REFERENCE_BYTES
        return arrays + len(events) * self.events.bytes_an_event + self.events.bytes_of(events)

    @property
    def nbytes(self) -> int:
        waiting = sum(int(array.nbytes) for each in self._waiting for array in each)
        return waiting + self.events.nbytes + self.strings.nbytes

    @property
    def looks(self) -> int:
        """How many times a detection that waits was looked at, so far."""
        return sum(each.counts.looks for each in self.operators)

    def first_due(self) -> int | None:
        """The first moment at which something that waits is given without further events."""
        return min((due for each in self.operators if (due := each.first_due()) is not None), default=None)

    def last_use(self) -> int | None:
        """The last moment at which something that waits may be of use; None: time does not tell, or nothing waits."""
        uses = [each.last_use() for each in self.operators if each.waiting is not None and size_of(each.waiting)]
        return None if not uses or None in uses else max(use for use in uses if use is not None)

    def drop_over(self, most: int) -> int:
        """Drop the oldest of more than so many detections that wait for the same events; how many went."""
        before = self.size
        for each in self.operators:
            if each.waiting is None or size_of(each.waiting) <= most:
                continue
            keys = each.keys if isinstance(each, NextOperator) else np.zeros(size_of(each.waiting), np.int64)
            # By key, the newest first.
            order = np.lexsort((-np.arange(len(keys)), keys))
            begins = np.concatenate([[True], keys[order][1:] != keys[order][:-1]])
            place = np.arange(len(keys)) - np.maximum.accumulate(np.where(begins, np.arange(len(keys)), 0))
            self.put(each, taken(each.waiting, np.sort(order[place < most])))
        return before - self.size

    def drop_oldest(self, number: int) -> None:
        """Drop the detections whose last events are the oldest."""
        holding = [each for each in self.operators if each.waiting is not None]
        ends = np.concatenate([each.waiting.ends for each in holding if each.waiting is not None])
        kept = np.ones(len(ends), np.bool_)
        kept[np.argsort(ends, kind="stable")[:number]] = False
        at = 0
        for each in holding:
            assert each.waiting is not None
            own = np.flatnonzero(kept[at : at + size_of(each.waiting)])
            at += size_of(each.waiting)
            self.put(each, taken(each.waiting, own))

    def tidy(self) -> DetectionNetwork:
        """This network without the events that nothing refers to, where these are most of them."""
        if self.events.size < _WORTH_IT or self.events.size < 2 * self._kept:
            return self
        needed = self.rows_needed
        self._kept = len(needed)
        if self.events.size < 2 * len(needed):
            return self
        # Keys and strings of events that are gone go, too.
        new = DetectionNetwork(self.plan, self._columns)
        new.restore(
            self.events.rows.take(needed).table,
            self.events.steps[needed],
            self.held(needed),
        )
        new.events.begin_at(self.events.next_step)
        new._kept = len(needed)
        for operator, other in zip(new.operators, self.operators, strict=True):
            operator.counts = other.counts
        return new

    # As it is kept

    def held(self, rows: Ints) -> list[DetectionArrays]:
        """What each operator that holds something holds, with the places of events among these rows."""
        return [each._replace(rows=np.searchsorted(rows, each.rows)) for each in self._waiting]

    def _wrong(self, waiting: Sequence[DetectionArrays]) -> str | None:
        """What is wrong with detections that are said to wait, referring to the events held; None: nothing."""
        holding = [
            (node, each) for node, each in zip(self.nodes, self.operators, strict=True) if each.waiting is not None
        ]
        if len(holding) != len(waiting):
            return "it lacks what an operator holds"
        for (node, _), each in zip(holding, waiting, strict=True):
            awaited = node.exception if isinstance(node, Unless) else operands(node)[0]
            known = [self._context.aliases[name] for name in aliases(awaited)]
            if isinstance(node, Iteration | Delay | NextDetection | Unless) and not np.isin(each.aliases, known).all():
                return "a detection has events of another operator"
            firsts, lasts = each.offsets[:-1], each.offsets[1:] - 1
            points, first, last = self.events.points, each.rows[firsts], each.rows[lasts]
            moments = (
                (each.starts, points.starts[first]),
                (each.start_ties, points.start_ties[first]),
                (each.ends, points.ends[last] + each.later[lasts]),
                (each.end_ties, points.end_ties[last]),
            )
            if not all(np.array_equal(said, known) for said, known in moments):
                return "a detection is of other moments than its events"
        return None

    def restore(self, rows: pa.Table, steps: Ints, waiting: Sequence[DetectionArrays]) -> str | None:
        """Hold what another network held; why no network can have held it, or None."""
        self.events.restore(rows, steps)
        problem = self._wrong(waiting)
        if problem is None:
            holding = (each for each in self.operators if each.waiting is not None)
            for each, arrays in zip(holding, waiting, strict=True):
                self.put(each, arrays)
        return problem

    @staticmethod
    def put(operator: Operator, waiting: DetectionArrays) -> None:
        ordered = taken(waiting, by_end(waiting))
        if isinstance(operator, NextOperator):
            operator.put(ordered)
        else:
            operator.waiting = ordered


def _each_once(detections: DetectionArrays, rows: Ints, variables: Ints) -> tuple[DetectionArrays, Ints, Ints]:
    """Detections of the same events under the same names are one."""
    places: dict[bytes, int] = {}
    for place in range(size_of(detections)):
        own = slice(detections.offsets[place], detections.offsets[place + 1])
        places.setdefault(rows[own].tobytes() + variables[own].tobytes(), place)
    if len(places) == size_of(detections):
        return detections, rows, variables
    chosen = np.array(list(places.values()), np.int64)
    once = taken(detections._replace(rows=rows, aliases=variables), chosen)
    return taken(detections, chosen), once.rows, once.aliases


def _count(operator: Operator, inputs: Sequence[DetectionBatch], output: DetectionBatch) -> None:
    """Count what came, what was given, and what waits."""
    counts = operator.counts
    # The other operand of `;` and of an exception does not wait, and does not go on.
    first = inputs if isinstance(operator, UnionOperator) else inputs[:1]
    counts.came += sum(size_of(each.detections) for each in first)
    counts.given += size_of(output.detections)
    counts.most = max(counts.most, 0 if operator.waiting is None else size_of(operator.waiting))
