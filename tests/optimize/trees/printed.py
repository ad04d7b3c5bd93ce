"""Trees by the text that they print as: `SEQ(a, SEQ(b, c))`."""

from __future__ import annotations

from kleene.optimize.trees.all_trees import all_trees, default_tree
from kleene.optimize.trees.options import options
from kleene.pattern.query import BoundQuery
from kleene.plan.explain_trees import print_tree
from kleene.plan.trees import TreePlan


def tree(query: BoundQuery, text: str) -> TreePlan:
    """The tree of a query of one option that prints so."""
    (option,) = options(query)
    found = {print_tree(plan.root): plan for plan in all_trees(query, option)}
    assert text in found, f"there is no such tree; there are {', '.join(found)}"
    return found[text]


def default_trees(query: BoundQuery) -> tuple[TreePlan, ...]:
    """One plan an option, in the form that needs no statistics."""
    return tuple(default_tree(query, option) for option in options(query))
