"""All rules of the optimiser by name: which there are for lines, and which for trees."""

from __future__ import annotations

from kleene.optimize.choosing import ORDER_BY_COST
from kleene.optimize.planner import RULES
from kleene.optimize.rewrites import REWRITES

LINE_RULES = tuple(name for name, _ in RULES)
TREE_RULES = (*(name for name, _ in REWRITES), "push_equivalence", ORDER_BY_COST)
# Those that `Settings.without` may name.
ALL_RULES = tuple(dict.fromkeys((*LINE_RULES, *TREE_RULES)))
