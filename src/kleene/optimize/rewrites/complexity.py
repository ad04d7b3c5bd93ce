"""How complex a pattern is (ZStream §5.2.1): a rewrite is taken only when it lowers this."""

from __future__ import annotations

from typing import NamedTuple

from kleene.pattern.nodes import Conjunction, Leaf, Pattern, Sequence


class Complexity(NamedTuple):
    """Fewer operators first; of as many, cheaper ones: C_DIS < C_SEQ < C_CON.

    A list of n parts has n − 1 operators, and so has `ANY` of n classes; a negation is one. Associativity changes no
    operator; it takes away parentheses.
    """

    operators: int = 0
    conjunctions: int = 0
    sequences: int = 0
    parentheses: int = 0


def complexity(pattern: Pattern) -> Complexity:
    if isinstance(pattern, Leaf):
        component = pattern.component
        return Complexity(operators=len(component.classes) - 1 + component.negated)
    own = len(pattern.parts) - 1
    conjunctions = own if isinstance(pattern, Conjunction) else 0
    sequences = own if isinstance(pattern, Sequence) else 0
    below = map(complexity, pattern.parts)
    return Complexity(*map(sum, zip((own, conjunctions, sequences, 1), *below, strict=True)))
