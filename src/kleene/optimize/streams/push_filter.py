"""`σ{p} ∘ π{…}` → `π{…} ∘ σ{p}`; likewise below ρ, with the names before it, and below α, with what it computes.

Arithmetic without a result assigns NULL, and is not NULL itself: a test for NULL of such a value stays above α.
"""

from __future__ import annotations

from collections.abc import Iterable

from kleene.algebra.nodes import AttributeName, Compute, Filter, Node, Project, Rename
from kleene.optimize.streams.rewriting import computed, filtered, renamed
from kleene.optimize.streams.substitution import all_substituted, attribute
from kleene.pattern.expressions import Arithmetic, Attribute, Clause, IsNull, Negative, references


def push_filter(node: Node) -> Node | None:
    match node:
        case Filter(Project(operand, schema), condition):
            return Project(filtered(operand, condition), schema)
        case Filter(Rename(operand, names), condition):
            types = dict(operand.schema.attributes)
            before = {new: attribute(old, types) for old, new in names}
            return renamed(filtered(operand, all_substituted(condition, before)), names)
        case Filter(Compute(operand, assignments), condition):
            undefined = {name for name, value in assignments if isinstance(value, Arithmetic | Negative)}
            if _tests_null(condition, undefined):
                return None
            return computed(filtered(operand, all_substituted(condition, dict(assignments))), assignments)
    return None


def _tests_null(condition: Iterable[Clause], names: set[AttributeName]) -> bool:
    tests = [literal for clause in condition for literal in clause.literals if isinstance(literal, IsNull)]
    read = [each for test in tests for each in references(test) if isinstance(each, Attribute)]
    return any((each.variable, each.attribute) in names for each in read)
