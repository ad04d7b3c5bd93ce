"""The common part of the operators of a tree; DISJ, and steps on the records of one node.

In a round an operator runs those below it first, then adds new records to its buffer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from kleene.engine.executors.equal_values import ValueEquality
from kleene.engine.executors.trees.conditions import CompiledCondition, conditions
from kleene.engine.executors.trees.lookup import EventIndex
from kleene.engine.executors.trees.records import ListPool, NamedRecords, RecordBuffer, taken, together
from kleene.engine.executors.trees.rounds import Round
from kleene.engine.intake.strings import StringPool
from kleene.kernels.expression import Ints
from kleene.kernels.joins import Records
from kleene.pattern.expressions import Clause, Which, variables
from kleene.pattern.nodes import Component
from kleene.plan.layout import Column
from kleene.plan.trees import Node, Site


@dataclass
class OperatorCounts:
    """Counts of an operator: pairs or records that it tried, and records that it made."""

    tried: int = 0
    records: int = 0


@dataclass(frozen=True, eq=False)
class Setting:
    """The arguments that all operators share."""

    columns: Mapping[str, Column]
    strings: StringPool
    # By variable: the lists of closures and of Kleene components.
    pools: dict[str, ListPool]
    # Whether records of different partitions never meet.
    keyed: bool
    # By variable of a closure: the events that may be its members.
    closed: dict[str, ClassEvents] = field(default_factory=dict)

    def members_of(self, closure: Site) -> ClassEvents:
        """The events of a closure's class; closures side by side look at each other's."""
        name = closure.scan.component.variable
        if name not in self.closed:
            self.closed[name] = ClassEvents.of(closure, self)
        return self.closed[name]

    def looked_up(self, clauses: Iterable[Clause], own: Collection[str]) -> tuple[list[ValueEquality], list[Clause]]:
        """Equalities, of which one side has these variables, as look-ups; and those that cannot be told so."""
        equalities, others = [], []
        for clause in clauses:
            equality = ValueEquality.of(clause, own, self.columns, self.strings)
            if equality is None:
                others.append(clause)
            else:
                equalities.append(equality)
        return equalities, others


class Operator(ABC):
    def __init__(self, node: Node, variables: Sequence[str], setting: Setting) -> None:
        self.node, self.variables, self.setting = node, tuple(variables), setting
        self.columns = {variable: place for place, variable in enumerate(variables)}
        self.buffer = RecordBuffer(len(variables))
        self.counts = OperatorCounts()

    @property
    @abstractmethod
    def below(self) -> tuple[Operator, ...]: ...

    @abstractmethod
    def assemble(self, at: Round) -> None:
        """Run the operators below, then add new records."""

    def bound(self, records: Records) -> NamedRecords:
        return NamedRecords(records, self.columns, self.setting.pools)

    def consume(self) -> Records:
        """Remove and return the new records, for a parent that keeps them itself."""
        delta = self.buffer.delta
        self.buffer.clear()
        return delta

    def everything(self) -> list[Operator]:
        return [*(each for operator in self.below for each in operator.everything()), self]

    @property
    def nbytes(self) -> int:
        return self.buffer.nbytes


class Step(ABC):
    """A step on the records of one node, in a round or when their windows have closed."""

    def __init__(self, candidates: ClassEvents, setting: Setting) -> None:
        self.component, self.setting = candidates.component, setting
        # The events that it searches.
        self.candidates = candidates
        # All classes whose events it takes.
        self.takers: tuple[ClassEvents, ...] = (self.candidates,)
        self.counts = OperatorCounts()

    # Variables that the step adds to the records.
    added: tuple[str, ...] = ()

    @abstractmethod
    def apply(self, bound: NamedRecords, at: Round) -> Records: ...

    def applied(self, bound: NamedRecords, at: Round) -> NamedRecords:
        """The resulting records, with the variables of their columns."""
        names = (*bound.columns, *self.added)
        return NamedRecords(self.apply(bound, at), {name: place for place, name in enumerate(names)}, bound.pools)


class ClassEvents:
    """The events that can be members of a closure, or of a negated class.

    tests   what is asked of one of them beside the equalities that it is looked up by
    """

    def __init__(
        self, component: Component, tests: Sequence[Clause], equalities: Sequence[ValueEquality], *, keyed: bool
    ) -> None:
        self.component, self.tests = component, tuple(tests)
        # What an event of the class stands for in conditions.
        self.identifier = component.variable, Which.SINGLE if component.negated else Which.MEMBER
        self.linked = EventIndex(self.identifier, equalities, keyed=keyed)

    @staticmethod
    def of(site: Site, setting: Setting) -> ClassEvents:
        component = site.scan.component
        of_records = {name for clause in site.equalities for name in variables(clause)} - {component.variable}
        equalities, others = setting.looked_up(site.equalities, of_records)
        tests = [clause for clause in site.conditions if clause not in site.equalities or clause in others]
        return ClassEvents(component, tests, equalities, keyed=setting.keyed)

    def offer(self, events: Ints, at: Round) -> None:
        self.linked.append(events, at)

    def codes_of(self, records: NamedRecords, at: Round) -> Ints:
        """[record]: the code of the events that it is to meet; −1: it meets none."""
        return self.linked.lookup.of_records(0, records, at)


class Above(Operator):
    """A step on all records of the node below it: KSEQ, NEG."""

    def __init__(self, node: Node, child: Operator, step: Step, setting: Setting) -> None:
        super().__init__(node, [*child.variables, *step.added], setting)
        self._child, self.step, self.counts = child, step, step.counts

    @property
    def below(self) -> tuple[Operator, ...]:
        return (self._child,)

    def assemble(self, at: Round) -> None:
        self._child.assemble(at)
        delta = self._child.consume()
        if len(delta.times):
            self.buffer.append(self.step.apply(self._child.bound(delta), at))


def kept_by(tests: Sequence[CompiledCondition], bound: NamedRecords, at: Round) -> Records:
    """The records that satisfy all tests."""
    records = bound.records
    for test in tests:
        survivors = test.holds(NamedRecords(records, bound.columns, bound.pools), at)
        if not survivors.all():
            records = taken(records, survivors)
    return records


# DISJ ----------------------------------------------------------------------------------------------------------------


class Union(Operator):
    def __init__(self, node: Node, parts: Sequence[Operator], tests: Sequence[Clause], setting: Setting) -> None:
        super().__init__(node, [name for part in parts for name in part.variables], setting)
        self._parts = tuple(parts)
        self._tests = conditions(tests, setting.columns, setting.strings)

    @property
    def below(self) -> tuple[Operator, ...]:
        return self._parts

    def assemble(self, at: Round) -> None:
        deltas = []
        first = 0
        for part in self._parts:
            part.assemble(at)
            delta = part.consume()
            if len(delta.times):
                refs = np.full((len(delta.times), len(self.variables)), -1, np.int32)
                refs[:, first : first + len(part.variables)] = delta.refs
                deltas.append(Records(refs, delta.times))
            first += len(part.variables)
        if not deltas:
            return
        self.counts.tried += sum(len(records.times) for records in deltas)
        records = kept_by(self._tests, self.bound(together(deltas)), at)
        self.counts.records += len(records.times)
        self.buffer.append(records)
