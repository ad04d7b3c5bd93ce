"""The rules of the optimiser, in the order in which they are applied; `Settings.without` switches one off by its name.

A rewrite makes a pattern simpler before it becomes trees (ZStream §5.2.1); a rule of lines improves a plan of stacks or
of the automaton (SASE §4, SASE+ §5); and a tree may be built by a rule or without it. One rule is one file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kleene.optimize.look_up_runs import look_up_runs
from kleene.optimize.merge_runs import merge_runs
from kleene.optimize.push_equivalence import push_equivalence, push_other_equivalences
from kleene.optimize.push_negation import push_negation
from kleene.optimize.push_simple_predicates import push_simple_predicates
from kleene.optimize.push_to_construction import push_to_construction
from kleene.optimize.push_to_edges import push_to_edges
from kleene.optimize.push_window import push_window
from kleene.optimize.rewrites.drop_impossible import drop_impossible
from kleene.optimize.rewrites.flatten import flatten
from kleene.optimize.rewrites.merge_negations import merge_negations
from kleene.optimize.rewrites.pull_common_conjunct import pull_common_conjunct
from kleene.optimize.rewrites.pull_common_end import pull_common_end
from kleene.optimize.rewrites.pull_common_start import pull_common_start
from kleene.optimize.trees.logical import Logical
from kleene.pattern.query import BoundQuery
from kleene.plan.physical import AutomatonPlan, SequencePlan

LinePlan = SequencePlan | AutomatonPlan
LineRule = Callable[[LinePlan, BoundQuery], LinePlan]
Rewrite = Callable[[Logical, BoundQuery], Logical]


@dataclass(frozen=True, slots=True)
class Rule:
    name: str
    # What it does with a plan of a line, and with the pattern of a tree.
    line: LineRule | None = None
    rewrite: Rewrite | None = None
    # Whether it has a part in trees as they are built.
    builds_trees: bool = False


PUSH_EQUIVALENCE, ORDER_BY_COST, LOOK_UP_RUNS = "push_equivalence", "order_by_cost", "look_up_runs"

RULES = (
    # What is dropped need not be compared with anything, so that goes first.
    Rule("flatten", rewrite=flatten),
    Rule("drop_impossible", rewrite=drop_impossible),
    Rule("merge_negations", rewrite=merge_negations),
    Rule("pull_common_start", rewrite=pull_common_start),
    Rule("pull_common_end", rewrite=pull_common_end),
    Rule("pull_common_conjunct", rewrite=pull_common_conjunct),
    Rule("push_simple_predicates", push_simple_predicates),
    # The key of a line; of a tree, what every join looks up by.
    Rule(PUSH_EQUIVALENCE, push_equivalence, builds_trees=True),
    Rule("push_other_equivalences", push_other_equivalences),
    Rule("push_to_construction", push_to_construction),
    Rule("push_to_edges", push_to_edges),
    Rule("push_negation", push_negation),
    Rule("push_window", push_window),
    Rule("merge_runs", merge_runs),
    Rule(LOOK_UP_RUNS, look_up_runs),
    # Algorithm 5 (`order`), in the place of a left-deep tree.
    Rule(ORDER_BY_COST, builds_trees=True),
)

ALL_RULES = tuple(rule.name for rule in RULES)
LINE_RULES: tuple[tuple[str, LineRule], ...] = tuple((rule.name, rule.line) for rule in RULES if rule.line is not None)
REWRITES: tuple[tuple[str, Rewrite], ...] = tuple(
    (rule.name, rule.rewrite) for rule in RULES if rule.rewrite is not None
)
TREE_RULES = tuple(rule.name for rule in RULES if rule.rewrite is not None or rule.builds_trees)
