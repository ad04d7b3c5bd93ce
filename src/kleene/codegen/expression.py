"""Clauses to programs of the expression machine.

Where a condition mixes kinds of values in a way that no instruction knows, there is no program (`NotCompilable`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from kleene.codegen.value_kinds import (
    FOREIGN,
    INT,
    NO_VALUES,
    REAL,
    TIME_LIKE,
    ValueKind,
    aggregate_kind,
    beside,
    column_named,
    from_zero,
    in_steps,
    kind_of,
)
from kleene.kernels import opcodes as op
from kleene.pattern.expressions import (
    Aggregate,
    Agrees,
    Among,
    Arithmetic,
    Assigned,
    Attribute,
    Clause,
    Comparison,
    Constant,
    Contains,
    Elapsed,
    IsNull,
    Literal,
    Negative,
    OpenParameter,
    Truth,
    Value,
)
from kleene.pattern.types import ValueType, comparable
from kleene.plan.layout import AS_INTEGERS, Accumulator, Layout, accumulators_of
from kleene.plan.program import NotCompilable, Program, StringConstant, StringTest

_OUTCOMES = {
    "=": op.EQUAL,
    "!=": op.LESS | op.GREATER,
    "<": op.LESS,
    "<=": op.LESS | op.EQUAL,
    ">": op.GREATER,
    ">=": op.GREATER | op.EQUAL,
}
_MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_INT_OPERATIONS = {"+": op.ADD_INT, "-": op.SUBTRACT_INT, "*": op.MULTIPLY_INT, "%": op.MODULO_INT}
_REAL_OPERATIONS = {
    "+": op.ADD_REAL,
    "-": op.SUBTRACT_REAL,
    "*": op.MULTIPLY_REAL,
    "/": op.DIVIDE_REAL,
    "%": op.MODULO_REAL,
}
_TIME_OPERATIONS = {"+": op.ADD_TIME, "-": op.SUBTRACT_TIME}


def compile_clauses(clauses: Sequence[Clause], layout: Layout) -> Program:
    """A program that is true when all clauses hold; `NotCompilable` when there is none."""
    writer = Writer(layout)
    for clause in clauses:
        writer.clause(clause)
    return writer.program()


@dataclass(slots=True)
class Writer:
    """Writes a program, instruction by instruction."""

    layout: Layout
    code: list[int] = field(default_factory=list)
    ints: list[int] = field(default_factory=list)
    reals: list[float] = field(default_factory=list)
    strings: list[tuple[int, str]] = field(default_factory=list)
    tests: list[tuple[int, StringTest, StringConstant]] = field(default_factory=list)
    parameters: list[tuple[bool, int, str]] = field(default_factory=list)
    slots: set[int] = field(default_factory=set)
    groups: set[int] = field(default_factory=set)
    columns: set[str] = field(default_factory=set)
    ordered: bool = False
    # The kinds of values, kept: comparing a value with a long list looks its kind up for every item.
    kinds: dict[Value, ValueKind] = field(default_factory=dict)
    # How many values are on the stack here, and at most.
    height: int = 0
    depth: int = 0

    def program(self) -> Program:
        return Program(
            np.array(self.code, np.int64),
            np.array(self.ints, np.int64),
            np.array(self.reals, np.float64),
            self.depth,
            tuple(sorted(self.slots)),
            tuple(sorted(self.groups)),
            tuple(sorted(self.columns)),
            tuple(self.strings),
            tuple(self.tests),
            self.ordered,
            tuple(self.parameters),
        )

    def emit(self, operation: int, *operands: int, pushes: int = 0) -> None:
        """One instruction, and by how much it makes the stack grow."""
        self.code += [operation, *operands, *[0] * (op.WIDTH - 1 - len(operands))]
        self.height += pushes
        self.depth = max(self.depth, self.height)

    # Clauses and literals

    def clause(self, clause: Clause) -> None:
        """The literals, each of which goes on after the clause when it is true."""
        if any(isinstance(literal, Truth) and literal.value for literal in clause.literals):
            return
        tests = [self.literal(literal) for literal in clause.literals if not isinstance(literal, Truth)]
        self.emit(op.FAIL)
        for at in tests:
            self.code[at + 1] = len(self.code)

    def literal(self, literal: Literal) -> int:
        """Where the literal's test stands."""
        match literal:
            case Comparison(operator, left, right):
                return self.comparison(operator, left, right)
            case IsNull(operand, negated):
                self.value(operand)
                return self.test(op.IS_NULL, int(negated), takes=1)
            case Contains(left, right, negated):
                return self.contains(left, right, negated)
            case Among(operand, values, negated):
                return self.among(operand, values, negated)
            case Agrees(left):
                (accumulator,) = accumulators_of(literal)
                return self.compare("=", self.value(left), self.group(accumulator))
        raise NotCompilable(f"a {type(literal).__name__} literal")

    def test(self, operation: int, *operands: int, takes: int = 2) -> int:
        """An instruction that jumps; its first operand, the target, is not known yet."""
        self.emit(operation, 0, *operands, pushes=-takes)
        return len(self.code) - op.WIDTH

    def comparison(self, operator: str, left: Value, right: Value) -> int:
        left, right = beside(left, self.kind(right)), beside(right, self.kind(left))
        kinds = self.kind(left), self.kind(right)
        if kinds == (REAL, INT):
            operator, left, right = _MIRRORED[operator], right, left
        ranked = operator not in ("=", "!=") and kinds[0].type is kinds[1].type is ValueType.STRING
        sides = []
        for side, other in ((left, kinds[1]), (right, kinds[0])):
            sides.append(self.value(side, other.step))
            if ranked:
                self.emit(op.TO_RANK)
                self.ordered = True
        return self.compare(operator, *sides)

    def compare(self, operator: str, left: ValueKind, right: ValueKind) -> int:
        """Compare the two values on top."""
        outcomes = _OUTCOMES[operator]
        if not comparable(left.type, right.type, operator) or FOREIGN & {left.type, right.type}:
            raise NotCompilable(f"{left.type.value} {operator} {right.type.value}")
        if NO_VALUES & {left.type, right.type}:
            return self.test(op.COMPARE_INT, outcomes)  # there are never two values: only missing makes it true
        if left == right == REAL:
            return self.test(op.COMPARE_REAL, outcomes)
        if right == REAL:
            return self.test(op.COMPARE_INT_REAL, outcomes)
        if left.step == right.step:
            return self.test(op.COMPARE_INT, outcomes)
        ratio = left.step // right.step if left.step > right.step else -(right.step // left.step)
        return self.test(op.COMPARE_TIME, outcomes, ratio)

    def contains(self, left: Value, right: Value, negated: bool) -> int:
        for kind in (self.kind(left), self.kind(right)):
            if kind.type not in NO_VALUES | {ValueType.STRING}:
                raise NotCompilable(f"CONTAINS on {kind.type.value} values")
        for tested, other, test in ((left, right, StringTest.CONTAINS), (right, left, StringTest.PART_OF)):
            if isinstance(other, Constant) and other.value is not None:
                self.value(tested)
                self.tests.append((len(self.ints), test, other.value))
                return self.test(op.TEST_STRING, int(negated), self.int_constant(0), takes=1)
        kinds = self.value(left), self.value(right)
        if not NO_VALUES & {kinds[0].type, kinds[1].type}:
            raise NotCompilable("CONTAINS between two attributes")
        return self.test(op.COMPARE_INT, op.EQUAL)  # there are never two values: only missing makes it true

    def among(self, operand: Value, values: tuple[int, ...] | tuple[str, ...], negated: bool) -> int:
        kind = self.value(operand)
        if kind.type is ValueType.STRING:
            self.tests.append((len(self.ints), StringTest.AMONG, frozenset(map(str, values))))
            return self.test(op.TEST_STRING, int(negated), self.int_constant(0), takes=1)
        if kind != INT:
            raise NotCompilable(f"IN on {kind.type.value} values")
        place = self.int_constant(len(values))
        self.ints += sorted(map(int, values))
        return self.test(op.AMONG_INTS, int(negated), place, takes=1)

    # Values

    def kind(self, value: Value) -> ValueKind:
        known = self.kinds.get(value)
        if known is None:
            known = self.kinds[value] = kind_of(value, self.layout)
        return known

    def value(self, value: Value, step: int = 1) -> ValueKind:
        """Push a value, a constant time in these steps where that is possible; returns the kind of the value."""
        kind = self.kind(value)
        match value:
            case Constant():
                return self.constant(value, kind, step)
            case OpenParameter(name):
                self.parameter(name, kind)
            case Attribute():
                self.attribute(value, kind)
            case Aggregate(function="avg"):
                for accumulator in accumulators_of(value):
                    self.real(self.group(accumulator))
                self.emit(op.DIVIDE_REAL, pushes=-1)
            case Aggregate():
                self.group(*accumulators_of(value))
            case Negative(operand):
                self.arithmetic(from_zero(operand, self.layout), kind)
            case Arithmetic():
                self.arithmetic(value, kind)
            case Assigned(operand):
                written = self.value(operand, step)
                self.emit(op.SETTLE)
                if kind == REAL:
                    self.real(written)
                return kind if kind == REAL else written
            case Elapsed():
                self.elapsed(value)
        return kind

    def elapsed(self, value: Elapsed) -> None:
        raise NotCompilable("DUR is of the stream algebra")

    def constant(self, constant: Constant, kind: ValueKind, step: int) -> ValueKind:
        value = constant.value
        if value is None:
            self.emit(op.PUSH_NULL, pushes=1)
        elif kind == REAL:
            self.reals.append(value)
            self.emit(op.PUSH_REAL, len(self.reals) - 1, pushes=1)
        elif kind.type is ValueType.STRING:
            self.strings.append((len(self.ints), value))
            self.emit(op.PUSH_INT, self.int_constant(0), pushes=1)
        elif kind.type in TIME_LIKE:
            steps, step = in_steps(value, step)
            self.emit(op.PUSH_INT, self.int_constant(steps), pushes=1)
            return ValueKind(kind.type, step)
        else:
            self.emit(op.PUSH_INT, self.int_constant(int(value)), pushes=1)
        return kind

    def parameter(self, name: str, kind: ValueKind) -> None:
        """Push a value that the program is given later, among its constants."""
        place = len(self.reals) if kind == REAL else len(self.ints)
        self.parameters.append((kind == REAL, place, name))
        if kind == REAL:
            self.reals.append(0.0)
            self.emit(op.PUSH_REAL, place, pushes=1)
        else:
            self.emit(op.PUSH_INT, self.int_constant(0), pushes=1)

    def int_constant(self, value: int) -> int:
        self.ints.append(value)
        return len(self.ints) - 1

    def attribute(self, attribute: Attribute, kind: ValueKind) -> None:
        identifier = attribute.variable, attribute.which
        if identifier not in self.layout.identifiers:
            raise NotCompilable(f"`{attribute.variable}` ({attribute.which.value}) is not in the layout")
        slot, column = self.layout.identifiers[identifier], self.layout.column_of(attribute)
        self.slots.add(slot)
        self.columns.add(attribute.attribute)
        operation = op.LOAD_INT if kind.type in AS_INTEGERS else op.LOAD_REAL if kind == REAL else op.LOAD_STATE
        self.emit(operation, slot, column.place, column.index, pushes=1)

    def group(self, accumulator: Accumulator) -> ValueKind:
        if accumulator not in self.layout.accumulators:
            raise NotCompilable(f"{accumulator.function} of `{accumulator.variable}` is not in the layout")
        kind = INT
        if accumulator.attribute is not None:
            kind = aggregate_kind(accumulator.function, column_named(accumulator.attribute, self.layout))
            self.columns.add(accumulator.attribute)
        slot = self.layout.accumulators[accumulator]
        self.groups.add(slot)
        self.emit(op.GROUP_REAL if kind == REAL else op.GROUP_INT, slot, pushes=1)
        return kind

    def real(self, kind: ValueKind) -> None:
        """Make the value on top a real."""
        if kind == INT:
            self.emit(op.TO_REAL)

    def arithmetic(self, node: Arithmetic, kind: ValueKind) -> None:
        left, right = beside(node.left, kind), beside(node.right, kind)
        kinds = self.kind(left), self.kind(right)
        steps = []
        for side, other in ((left, kinds[1]), (right, kinds[0])):
            written = self.value(side, other.step)
            if kind == REAL:
                self.real(written)
            steps.append(written.step)
        if kind == REAL:
            self.emit(_REAL_OPERATIONS[node.operator], pushes=-1)
        elif kind.type in TIME_LIKE and steps != [1, 1]:
            self.emit(_TIME_OPERATIONS[node.operator], *steps, pushes=-1)
        else:
            # NULL and what is missing spread through any operation.
            self.emit(_INT_OPERATIONS.get(node.operator, op.ADD_INT), pushes=-1)
