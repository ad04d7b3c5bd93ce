"""Places the conditions of a pattern: each is tested at the lowest node of a tree that binds its variables.

Within a disjunction that is right only for a condition that holds where its variables are absent; any other is tested
above the disjunction, on the records of all its branches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kleene.optimize.trees.logical import Logical
from kleene.pattern.expressions import Attribute, Clause, Comparison, Which, references, variables
from kleene.pattern.nodes import Component, ComponentKind, Disjunction, Leaf, Pattern, components
from kleene.pattern.schema import Schema
from kleene.pattern.types import ValueType
from kleene.plan.check_trees import holds_when_absent
from kleene.plan.implied import implied_by_key

# The types whose values are equal exactly when they are the same, so that a hash lookup finds the equal ones.
_HASHED = frozenset(
    {ValueType.INT, ValueType.STRING, ValueType.BOOL, ValueType.FLOAT, ValueType.TIMESTAMP, ValueType.ZONED}
)


# An integer is looked up among real numbers as the real number that it equals.
_NUMBERS = frozenset({ValueType.INT, ValueType.FLOAT})


def unless_implied(clauses: Iterable[Clause], key: tuple[str, ...]) -> tuple[Clause, ...]:
    """The clauses that the key does not imply, each once."""
    return tuple(dict.fromkeys(clause for clause in clauses if not implied_by_key(clause, key)))


class ClausePlaces:
    """The positive clauses of a pattern that its key does not imply; variables and clauses are bits of an integer."""

    def __init__(self, logical: Logical, key: tuple[str, ...], schema: Schema) -> None:
        present = {c.variable: c for c in components(logical.pattern) if not c.negated}
        self._bits = {name: 1 << number for number, name in enumerate(present)}
        self._clauses = unless_implied(logical.positive, key)
        self._needs = tuple(self._needed(clause, logical.pattern) for clause in self._clauses)
        # The clauses that a join tests by hash lookup, if each of its records binds their variables.
        self.lookups = sum(1 << n for n, c in enumerate(self._clauses) if is_lookup(c, present, schema))
        self.every = (1 << len(self._clauses)) - 1
        self._known: dict[int, int] = {}
        self._listed: dict[int, tuple[Clause, ...]] = {}

    def bits(self, names: Iterable[str]) -> int:
        """The bits of these variables; a variable that no match binds, such as a negated one, has none."""
        return sum(self._bits.get(name, 0) for name in names)

    def at_leaf(self, component: Component) -> int:
        """The clauses that a leaf tests."""
        bit = self._bits[component.variable]
        own = (number for number, needed in enumerate(self._needs) if needed == bit)
        return sum(1 << number for number in own if _fits_leaf(self._clauses[number], component))

    def known_with(self, bound: int) -> int:
        """The clauses that can be tested where these variables are bound."""
        testable = self._known.get(bound)
        if testable is None:
            testable, bit = 0, 1
            for needed in self._needs:
                if needed and needed & bound == needed:
                    testable |= bit
                bit <<= 1
            self._known[bound] = testable
        return testable

    def listed(self, chosen: int) -> tuple[Clause, ...]:
        """The clauses of these bits, in the order of the text."""
        if not chosen:
            return ()
        clauses = self._listed.get(chosen)
        if clauses is None:
            in_order, rest = [], chosen
            while rest:
                in_order.append(self._clauses[(rest & -rest).bit_length() - 1])
                rest &= rest - 1
            clauses = self._listed[chosen] = tuple(in_order)
        return clauses

    def _needed(self, clause: Clause, pattern: Pattern) -> int:
        """The variables that must be bound where a clause is tested; 0 for a clause that no node of a tree can test."""
        named = self.bits(variables(clause))
        if not named or holds_when_absent(clause):
            return named
        # It is tested above the outermost disjunction with one branch that has all its variables: the others lack them.
        while not isinstance(pattern, Leaf):
            part = next((part for part in pattern.parts if not named & ~self._within(part)), None)
            if part is None:
                break
            if isinstance(pattern, Disjunction):
                # A closure of a branch may be bound later than the disjunction is.
                return named | self._within(pattern, closures=False)
            pattern = part
        return named

    def _within(self, pattern: Pattern, *, closures: bool = True) -> int:
        return self.bits(
            component.variable
            for component in components(pattern)
            if closures or component.kind is not ComponentKind.CLOSURE
        )


def _fits_leaf(clause: Clause, component: Component) -> bool:
    """Whether a leaf can test a clause on its variable: the mask of a single event can name no other event."""
    return component.kind is not ComponentKind.SINGLE or all(
        isinstance(r, Attribute) and r.variable == component.variable and r.which is Which.SINGLE
        for r in references(clause)
    )


def is_lookup(clause: Clause, always: Mapping[str, Component], schema: Schema) -> bool:
    """Whether a join can test a clause by hash lookup: it equates one value of each side, which every record has."""
    literal = clause.literals[0]
    if len(clause.literals) > 1 or not isinstance(literal, Comparison) or literal.operator != "=":
        return False
    one, other = literal.left, literal.right
    if not isinstance(one, Attribute) or not isinstance(other, Attribute):
        return False
    if {one.type, other.type} != _NUMBERS and (one.type is not other.type or one.type not in _HASHED):
        return False
    return all(
        side.which is Which.SINGLE
        and side.variable in always
        and all(schema.has(name, side.attribute) for name in always[side.variable].types)
        for side in (one, other)
    )
