"""Places the conditions of a pattern: each is tested at the lowest node of a tree that binds its variables.

Within a disjunction that is right only for a condition that holds where its variables are absent; any other is tested
above the disjunction, on the records of all its branches.
"""

from __future__ import annotations

from collections.abc import Iterable

from kleene.optimize.trees.logical import Logical
from kleene.optimize.trees.lookups import is_lookup
from kleene.pattern.expressions import Attribute, Clause, Which, equated, references, variables
from kleene.pattern.nodes import Component, ComponentKind, Disjunction, Leaf, Pattern, components
from kleene.pattern.schema import Schema
from kleene.plan.check_trees import holds_when_absent
from kleene.plan.implied import implied_by_key


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
        # By bit: the clauses that a join tests by hash lookup if each of its records binds their variables, and of
        # those on more than two variables, what must be on one side of it.
        self._lookups = 0
        self._together: dict[int, tuple[int, int]] = {}
        for number, clause in enumerate(self._clauses):
            if is_lookup(clause, present, schema) and (sides := equated(clause)) is not None:
                self._lookups |= 1 << number
                if self._needs[number].bit_count() > 2:
                    self._together[1 << number] = self.bits(variables(sides[0])), self.bits(variables(sides[1]))
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

    def looked_up(self, chosen: int, left: int, right: int) -> int:
        """Of clauses that a join of these variables is the first to know, those that equate one side with the other."""
        found = chosen & self._lookups
        for bit, (one, other) in self._together.items():
            apart = not (one & ~left or other & ~right) or not (one & ~right or other & ~left)
            if found & bit and not apart:
                found ^= bit
        return found

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
