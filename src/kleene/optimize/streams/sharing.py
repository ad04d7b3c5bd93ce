"""What of an event automaton many queries can share (CESAR §4.1–4.3): its conditions, split by how they are looked up.

A condition on the newest event alone that compares an attribute with a constant is an atom. Equalities are the access
path of an edge, and so are, at a state, those that the filter tests, with constants or with what an instance holds.
Ranges are tested beside the equalities. All else is left as a program.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from kleene.algebra.nodes import AttributeName, StreamSource
from kleene.optimize.streams.deadlines import longest
from kleene.pattern.expressions import (
    Among,
    Attribute,
    Clause,
    Comparison,
    Constant,
    Elapsed,
    Node,
    OpenParameter,
    Value,
    Which,
)
from kleene.pattern.rewriting import rewritten
from kleene.pattern.types import ValueType
from kleene.plan.streams import FINAL, START, EventAutomaton, InputFormula, StreamEdge

_MIRRORED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NUMBERS = frozenset({ValueType.INT, ValueType.FLOAT})
_EQUAL_ONLY = frozenset({ValueType.STRING, ValueType.BOOL})
# The columns of ranges that stand beside the equalities of an edge.
MOST_RANGES = 2
# The values of an IN that are as many edges.
MOST_CHOICES = 256

Given = Constant | OpenParameter
N = TypeVar("N", bound=Node)


@dataclass(frozen=True, slots=True)
class Atom:
    """A column of the newest event, compared with a constant."""

    column: str
    operator: str
    value: Given


@dataclass(frozen=True, slots=True)
class EdgeLabel:
    """How an edge is found, and what else it asks of an event.

    number      that of the edge in the plan
    source      the events that it takes; None at a state, whose filter has seen to that
    equalities  one for each column, in the order of columns
    ranges      of at most two columns
    """

    number: int
    source: StreamSource | None
    equalities: tuple[Atom, ...]
    ranges: tuple[Atom, ...]


@dataclass(frozen=True, slots=True)
class NodeLabel:
    """How instances at a state are found, and how long they may last.

    state       that of the plan, or FINAL
    source      the events that its filter looks at; None: they are results
    equalities  those of the filter with constants
    lengths     upper bounds on DUR, of its filter or further on
    entering    the edges that enter the state from another one
    """

    state: int
    source: StreamSource | None
    equalities: tuple[Atom, ...]
    lengths: tuple[Clause, ...]
    entering: tuple[EdgeLabel, ...]


@dataclass(frozen=True, slots=True)
class SharedPlan:
    """A plan without what is looked up, and that.

    plan      its conditions are what programs are left to test
    nodes     one for each state, then for results: edges lead to later ones
    whole     the plan with all its conditions, whose states say whether time frees what waits there
    results   what tells results apart besides their attributes
    """

    plan: EventAutomaton
    nodes: tuple[NodeLabel, ...]
    whole: EventAutomaton
    results: object = None

    @property
    def alternatives(self) -> tuple[SharedPlan, ...]:
        """It runs as it is."""
        return (self,)


def share(
    plan: EventAutomaton, types: Mapping[str, ValueType], *, rooms: bool = True, results: object = None
) -> SharedPlan:
    """Split the conditions of a plan over events whose columns have these types.

    rooms     whether instances wait by the values that filters test; otherwise every event looks at all of them
    results   what tells results apart besides their attributes
    """
    sources: dict[InputFormula, int] = {}

    def plain(formula: int) -> int:
        return sources.setdefault(InputFormula(plan.formulas[formula].source), len(sources))

    all_lengths = _lengths(plan)
    edges: list[StreamEdge] = []
    labels: dict[int, list[EdgeLabel]] = {}
    for number, edge in enumerate(plan.edges):
        formula = plan.formulas[edge.formula]
        starts = edge.source == START
        columns = dict(formula.source.columns)
        split = _Split.of(formula.condition if starts else edge.condition, columns, types)
        rest = ordered(edge.condition)
        if starts or edge.source != edge.target:
            seen_to = not starts and formula.source == plan.formulas[plan.states[edge.source].formula].source
            source = None if seen_to else formula.source
            labels[number] = [EdgeLabel(number, source, *each) for each in split.alternatives(columns, types)]
            rest = split.rest
        if edge.target != FINAL:
            # Nothing is made that is too long already for the state where it would wait.
            rest = tuple(clause for clause in rest if not _is_known(clause, all_lengths[edge.target], starts))
        edges.append(replace(edge, formula=plain(edge.formula), condition=rest))
    states, nodes = [], []
    for number, state in enumerate(plan.states):
        formula = plan.formulas[state.formula]
        split = _Split.of(formula.condition, dict(formula.source.columns), types if rooms else {}, of_state=True)
        lengths = all_lengths[number]
        tested = [clause for clause in state.condition if not _is_known(clause, lengths)]
        states.append(
            replace(state, formula=plain(state.formula), condition=ordered((*split.rest, *tested)), most=None)
        )
        nodes.append(NodeLabel(number, formula.source, split.equalities, lengths, _entering(plan, number, labels)))
    nodes.append(NodeLabel(FINAL, None, (), (), _entering(plan, FINAL, labels)))
    reduced = replace(plan, formulas=tuple(sources), states=tuple(states), edges=tuple(edges))
    bounded = tuple(
        replace(state, most=0 if lengths else None) for state, lengths in zip(plan.states, all_lengths, strict=True)
    )
    return SharedPlan(reduced, tuple(nodes), replace(plan, states=bounded), results)


def _entering(plan: EventAutomaton, state: int, labels: Mapping[int, list[EdgeLabel]]) -> tuple[EdgeLabel, ...]:
    numbers = [number for number, edge in enumerate(plan.edges) if edge.target == state and number in labels]
    return tuple(label for number in numbers for label in labels[number])


@dataclass(frozen=True, slots=True)
class _Split:
    """A condition: equalities with constants, ranges beside them, a choice of several atoms, and the rest.

    choice   the clause by which an edge without equalities is found: it is as many edges as the clause has literals
    """

    equalities: tuple[Atom, ...]
    ranges: tuple[Atom, ...]
    choice: Clause | None
    rest: tuple[Clause, ...]

    def alternatives(
        self, columns: Mapping[AttributeName, str], types: Mapping[str, ValueType]
    ) -> list[tuple[tuple[Atom, ...], tuple[Atom, ...]]]:
        """The equalities and the ranges by which edges are found, one of which must hold."""
        if self.choice is None:
            return [(self.equalities, self.ranges)]
        return [((atom,), self.ranges) for atom in chosen_atoms(self.choice, columns, types)]

    @staticmethod
    def of(
        condition: Iterable[Clause],
        columns: Mapping[AttributeName, str],
        types: Mapping[str, ValueType],
        *,
        of_state: bool = False,
    ) -> _Split:
        """A condition on an edge, or on the filter of a state: there only what some value is surely equal to."""
        equal: dict[str, Atom] = {}
        ranged: dict[str, list[Atom]] = {}
        rest: list[Clause] = []
        ranges = 0 if of_state else MOST_RANGES
        for clause in ordered(condition):
            atom = atom_of(clause, columns, types)
            kind = None if atom is None else types[atom.column]
            if atom is None or (of_state and (kind is ValueType.FLOAT or kind is not atom.value.type)):
                rest.append(clause)
            elif atom.operator == "=" and atom.column not in equal:
                equal[atom.column] = atom
            elif kind in _NUMBERS and (atom.column in ranged or len(ranged) < ranges):
                ranged.setdefault(atom.column, []).append(atom)
            else:
                rest.append(clause)
        choice = None
        if not of_state and not equal:
            choice = next((clause for clause in rest if chosen_atoms(clause, columns, types)), None)
            rest = [clause for clause in rest if clause is not choice]
        listed = [atom for column in sorted(ranged) for atom in sorted(ranged[column], key=lambda each: each.operator)]
        return _Split(tuple(equal[column] for column in sorted(equal)), tuple(listed), choice, tuple(rest))


def atom_of(clause: Clause, columns: Mapping[AttributeName, str], types: Mapping[str, ValueType]) -> Atom | None:
    """The atom that a clause is, or None."""
    if len(clause.literals) != 1 or not isinstance(clause.literals[0], Comparison):
        return None
    comparison = clause.literals[0]
    operator, attribute, value = comparison.operator, comparison.left, comparison.right
    if isinstance(attribute, Constant | OpenParameter) and operator in _MIRRORED:
        operator, attribute, value = _MIRRORED[operator], value, attribute
    if not isinstance(attribute, Attribute) or attribute.which is not Which.SINGLE or operator not in _MIRRORED:
        return None
    if not isinstance(value, Constant | OpenParameter) or (isinstance(value, Constant) and value.value is None):
        return None
    column = columns.get((attribute.variable, attribute.attribute))
    kind = None if column is None else types.get(column)
    if column is None or kind is None:
        return None
    alike = {kind, value.type} <= _NUMBERS or (kind is value.type and kind in _EQUAL_ONLY and operator == "=")
    return Atom(column, operator, value) if alike else None


def chosen_atoms(
    clause: Clause, columns: Mapping[AttributeName, str], types: Mapping[str, ValueType]
) -> tuple[Atom, ...]:
    """The equalities of which a clause wants one, such as IN does; none where it wants anything else."""
    literals = clause.literals
    match literals:
        case (Among(operand, values, False),) if len(values) <= MOST_CHOICES:
            kind = ValueType.STRING if isinstance(values[0], str) else ValueType.INT
            literals = tuple(Comparison("=", operand, Constant(value, kind)) for value in values)
    if len(literals) < 2:
        return ()
    atoms = [atom_of(Clause((literal,)), columns, types) for literal in literals]
    equalities = tuple(atom for atom in atoms if atom is not None and atom.operator == "=")
    return equalities if len(equalities) == len(atoms) else ()


# Lengths of time -----------------------------------------------------------------------------------------------------


def _lengths(plan: EventAutomaton) -> list[tuple[Clause, ...]]:
    """[state]: the clauses that say how long a composite event may last there.

    Those of its own filter; without any, those further on, since what is too long for them later is too long already.
    Queries that differ in these do not share the node: but what waits there would wait for ever otherwise.
    """
    lengths: list[tuple[Clause, ...]] = [()] * len(plan.states)
    for number in reversed(range(len(plan.states))):
        own = tuple(clause for clause in plan.states[number].condition if _is_length(clause))
        if not own:
            (forward,) = (edge for edge in plan.leaving(number) if edge.target != number)
            later = () if forward.target == FINAL else lengths[forward.target]
            own = (*(clause for clause in forward.condition if _is_length(clause)), *later)
        lengths[number] = own
    return lengths


def _is_length(clause: Clause) -> bool:
    """Whether a clause bounds DUR from above by a constant, or by a parameter that counts ticks."""
    return longest(clause) is not None or open_length(clause) is not None


def _is_known(clause: Clause, lengths: Iterable[Clause], starts: bool = False) -> bool:
    """Whether a clause says no more than one of the upper bounds on DUR.

    starts   it is about an event that begins a composite one, whose duration is that of the event
    """
    if starts:
        clause = rewritten(clause, lambda part: replace(part, of_event=False) if isinstance(part, Elapsed) else None)
    literal = clause.literals[0]
    return clause in lengths and isinstance(literal, Comparison) and literal.operator != "="


def open_length(clause: Clause) -> tuple[Elapsed, str, OpenParameter] | None:
    """DUR, an operator, and the parameter that bounds it from above; None: a clause says nothing of that kind."""
    match clause.literals:
        case (Comparison(operator, Elapsed() as elapsed, OpenParameter() as bound),):
            pass
        case (Comparison(mirrored, OpenParameter() as bound, Elapsed() as elapsed),) if mirrored in _MIRRORED:
            operator = _MIRRORED[mirrored]
        case _:
            return None
    is_number = bound.type is ValueType.INT and elapsed.type is ValueType.INT and not elapsed.of_event
    return (elapsed, operator, bound) if is_number and operator in ("<", "<=", "=") else None


# One form for equal conditions ---------------------------------------------------------------------------------------


def ordered(condition: Iterable[Clause]) -> tuple[Clause, ...]:
    """The clauses in an order that does not depend on how they were written, nor on the names of parameters."""
    return tuple(sorted(dict.fromkeys(condition), key=lambda clause: (_unnamed(clause).digest, clause.digest)))


def _unnamed(node: N) -> N:
    return rewritten(node, lambda part: replace(part, name="") if isinstance(part, OpenParameter) else None)


def numbered(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """Expressions with their parameters called by their places, so that equal ones of different templates are equal."""
    names: dict[str, str] = {}

    def renamed(part: Node) -> Node | None:
        if not isinstance(part, OpenParameter):
            return None
        return replace(part, name=names.setdefault(part.name, str(len(names))))

    return tuple(rewritten(node, renamed) for node in nodes)


def values_and_tests(edge: StreamEdge) -> tuple[Clause | Value, ...]:
    return (*edge.condition, *edge.values)
