"""Random nested disjunctions under every plan beside the reference: each rewrite on and off, and other shapes.

`python -m tests.engine.disjunction_agreement 2000 500` compares 500 pairs from seed 2000 on.
"""

from __future__ import annotations

import random
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from tests.engine.agreement import Pair, at_once, content, eager_rebuilding, in_pieces, pair_of
from tests.engine.tree_agreement import MOST_TREES, changing, forgetful
from tests.optimize.rewrites.matching import logicals
from tests.optimize.rewrites.nested_disjunctions import nested_disjunction_case

from kleene.optimize.planner import plan_query
from kleene.optimize.rewriting import rewrite
from kleene.optimize.rules import REWRITES
from kleene.optimize.trees.all_trees import all_trees
from kleene.optimize.trees.logical import Logical
from kleene.pattern.query import BoundQuery
from kleene.plan.check import check
from kleene.plan.physical import Plan
from kleene.plan.settings import Adapting, ExecutorKind, Settings
from kleene.plan.trees import Alternative, TreePlan

_NAMES = tuple(name for name, _ in REWRITES)


@dataclass
class Counted:
    pairs: int = 0
    matched: int = 0
    plans: int = 0
    # Pairs with a plan that a rewrite changed, and with one in which components were merged.
    rewritten: int = 0
    merged: int = 0

    def __str__(self) -> str:
        return (
            f"{self.pairs:4} pairs, {self.matched:4} with matches, {self.plans:5} plans,"
            f" {self.rewritten:4} pairs rewritten, {self.merged:4} with merged components"
        )


def plans_of(query: BoundQuery, draw: random.Random, *, more: bool) -> list[Plan]:
    """What the planner chooses, as trees with every rewrite on, each off and all off, and a random shape of the whole.

    A disjunction of whole patterns is several plans to the planner; here it is one as well, so that it is rewritten.

    more   other rules off as well, and random shapes of what was not rewritten, and of what one rule fewer rewrote
    """
    all_on = plan_query(query, Settings(executor=ExecutorKind.TREES))
    whole = tuple(logicals(query))
    rewritten = [rewrite(option, query) for option in whole]
    used = sorted({name for _, names in rewritten for name in names})
    # Without a rule that changed nothing the plan is the same.
    off = [{name} for name in all_on.rules if more or name in _NAMES]
    if len(off) > 1:
        off.append({*_NAMES})
    found = [plan_query(query), all_on]
    found += [plan_query(query, Settings(without=frozenset(names), executor=ExecutorKind.TREES)) for names in off]
    if used:
        found.append(_in_random_order(query, [option for option, _ in rewritten], draw))
    if more:
        found.append(_in_random_order(query, whole, draw))
    if more and len(used) > 1:
        without = {draw.choice(used)}
        found.append(_in_random_order(query, [rewrite(option, query, without)[0] for option in whole], draw))
    return list({plan.alternatives: plan for plan in found}.values())


def _in_random_order(query: BoundQuery, parts: Sequence[Logical], draw: random.Random) -> Plan:
    trees = (draw.choice(list(islice(all_trees(query, part), MOST_TREES))) for part in parts)
    return check(Plan(query, tuple(trees)))


def compare_pair(pair: Pair, draw: random.Random, counted: Counted) -> None:
    """Under every plan at once; some pairs under more shapes, and in pieces, with changes of plan between them."""
    expected = content(pair.expected.matches)
    thorough = draw.random() < 0.25
    plans = plans_of(pair.bound, draw, more=thorough)
    for plan in plans:
        assert at_once(pair, Settings(), draw, plan).matches == expected, f"{pair.text}\n{plan.rules}\n{plan}"
    if thorough:
        # A plan is not changed for one with another key while it runs.
        trees = [plan for plan in plans if all(_is_tree(each, pair.bound.partition) for each in plan.alternatives)]
        settings = Settings(adapting=Adapting(round=draw.randint(1, 4)))
        with eager_rebuilding(), forgetful(), changing(trees, draw):
            pieces = in_pieces(pair, settings, draw, saving=draw.random() < 0.3, plans=draw.sample(trees, len(trees)))
        assert sorted(pieces.matches) == sorted(expected), f"in pieces: {pair.text}"
    counted.pairs += 1
    counted.plans += len(plans)
    counted.matched += bool(expected)
    counted.rewritten += any(name in _NAMES for plan in plans for name in plan.rules)
    counted.merged += any(getattr(each, "aliases", ()) for plan in plans for each in plan.alternatives)


def _is_tree(alternative: Alternative, key: tuple[str, ...]) -> bool:
    return isinstance(alternative, TreePlan) and alternative.key == key


def compare(wanted: int, *, first: int = 0) -> Counted:
    """So many pairs from a seed on; a few queries are refused."""
    counted = Counted()
    seed = first
    while counted.pairs < wanted:
        draw = random.Random(f"disjunctions {seed}")
        pair = pair_of(nested_disjunction_case(draw))
        if pair is not None:
            compare_pair(pair, draw, counted)
        seed += 1
    return counted


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(compare(int(sys.argv[2]), first=int(sys.argv[1])))
