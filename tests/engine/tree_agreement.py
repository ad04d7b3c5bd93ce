"""Tree plans beside the reference: every shape that a tree may have, what rewrites make of it, changes between them.

`python -m tests.engine.tree_agreement '[["closure", 3]]'` compares cases up to the first disagreement;
the last line says what came of it.
"""

from __future__ import annotations

import json
import random
import sys
import traceback
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import islice
from unittest import mock

from tests.engine.agreement import Pair, case_of, check, pair_of
from tests.engine.lookup_cases import QUERIES, lookup_case
from tests.optimize.rewrites.common_parts import common_case
from tests.optimize.rewrites.matching import logicals
from tests.soaking import rounds

import kleene
from kleene.engine.executors.trees import executor, records
from kleene.engine.executors.trees.executor import TreeExecutor
from kleene.engine.state.store import EventStore
from kleene.kernels.timeline import Timeline
from kleene.optimize.rewriting import rewrite
from kleene.optimize.trees.all_trees import all_trees
from kleene.optimize.trees.building import why_not_trees
from kleene.optimize.trees.logical import Logical
from kleene.optimize.trees.options import options
from kleene.pattern.closures import at_edge
from kleene.pattern.nodes import Disjunction, Leaf, Pattern
from kleene.pattern.query import BoundQuery
from kleene.plan.check import check as check_plan
from kleene.plan.physical import Plan
from kleene.plan.settings import Adapting, Settings
from kleene.plan.trees import Alias, TreePlan
from kleene.testing.generators import GeneratedCase

# Of a query with more plans than this, so many are drawn; all its trees are known up to here.
MOST_PLANS = 60
MOST_TREES = 2_000
# Disjunctions whose branches begin or end alike, which rewrites make one of.
COMMON = "common parts"
# What random queries come to too rarely.
CRAFTED = "crafted"
CRAFTS = (
    "PATTERN (A a ; B+ ; C c) & B b",
    "PATTERN (A a ; B^2 k ; C c) & (B b | A d) WHERE k.x >= a.x",
    "PATTERN A+ a[] & A b WHERE a[i].x >= a[i-1].x",
    "PATTERN (A a ; !(B b) ; C c) & B d WHERE [id] AND b.x > c.x",
    "PATTERN A a ; !(B b) ; C c ; !(B d) ; A e WHERE b.x > a.x AND d.x > e.x",
    "PATTERN A a & B b & A c WHERE a.s = b.s AND b.y = c.y",
    "PATTERN (A a & B b) ; (C c | A+ d[]) WHERE a.y = b.y AND c.x >= b.x",
    "PATTERN (A a & C c) ; B* d WHERE d.x >= c.x",
    "PATTERN A a ; !(B b) ; C c",
    "PATTERN !(C c) ; A a ; B+",
    "PATTERN B+ ; A a ; !(C c)",
)
# Equalities by which joins, NSEQ, NEG and KSEQ find events.
LOOKED_UP = "look-ups"
# The pairs of each stratum that every plan is tried on.
STRATA = {
    "conjunction": 30,
    "disjunction": 25,
    "nested": 15,
    "closure": 25,
    "negation": 8,
    "sequence": 25,
    "optional": 18,
    "count_window": 15,
    "durations": 20,
    "ties": 7,
    "tie_breaker": 15,
    "nulls_missing": 8,
    "non_overlap": 15,
    "non_overlap_trees": 20,
    COMMON: 8,
    CRAFTED: 24,
    LOOKED_UP: 40,
}


@dataclass
class Counted:
    pairs: int = 0
    matched: int = 0
    plans: int = 0
    # Plans of what a rewrite changed, and of these the ones with merged components.
    rewritten: int = 0
    aliased: int = 0

    def __str__(self) -> str:
        return (
            f"{self.pairs:3} pairs, {self.matched:3} with matches, {self.plans:4} plans,"
            f" {self.rewritten:3} rewritten, {self.aliased:3} with merged components"
        )


# Plans ---------------------------------------------------------------------------------------------------------------


def all_plans(query: BoundQuery, draw: random.Random) -> list[Plan]:
    """Every tree of each option of a query in some plan; of too many, some."""
    found = [_trees(option, query) for option in options(query)]
    number = max(map(len, found))
    for listed in found:
        draw.shuffle(listed)
    return [_plan(query, [listed[place % len(listed)] for listed in found]) for place in range(min(number, MOST_PLANS))]


def rewritten_plans(query: BoundQuery, draw: random.Random, number: int) -> list[Plan]:
    """So many plans, of random trees, of what the rewrites make of a query; none when they leave it as it is.

    Disjunctions of whole patterns stay together where they can, so that their branches can be merged.
    """
    changed = []
    together = () if _has_open_branch(query.pattern) else tuple(logicals(query))
    for found in (options(query), together):
        made = [rewrite(option, query) for option in found]
        if any(used for _, used in made):
            changed.append(tuple(option for option, _ in made))
    return [
        _plan(query, [draw.choice(_trees(option, query)) for option in found])
        for found in changed
        for _ in range(number)
    ]


def _has_open_branch(pattern: Pattern) -> bool:
    """Whether the neighbour or the bound of what is in a branch is outside of it."""
    if isinstance(pattern, Leaf):
        return False
    if isinstance(pattern, Disjunction) and any(
        at_edge(part, left=left) for part in pattern.parts for left in (True, False)
    ):
        return True
    return any(map(_has_open_branch, pattern.parts))


def _trees(option: Logical, query: BoundQuery) -> list[TreePlan]:
    return list(islice(all_trees(query, option), MOST_TREES))


def _plan(query: BoundQuery, trees: Sequence[TreePlan]) -> Plan:
    return check_plan(Plan(query, tuple(trees)))


# Runs ----------------------------------------------------------------------------------------------------------------


@contextmanager
def forgetful() -> Iterator[None]:
    """Buffers and lists are cleared of what the window has left behind after each round."""
    with mock.patch.object(records, "_WORTH_IT", 0), mock.patch.object(executor, "_MANY_LISTS", 0):
        yield


@contextmanager
def changing(plans: Sequence[Plan], draw: random.Random) -> Iterator[None]:
    """After some rounds a tree goes on in another shape of the same pattern."""
    shapes: dict[tuple[Pattern, tuple[Alias, ...]], list[TreePlan]] = defaultdict(list)
    for plan in plans:
        for tree in plan.alternatives:
            assert isinstance(tree, TreePlan)
            shapes[tree.pattern, tree.aliases].append(tree)
    plain = TreeExecutor._round

    def round_and_change(
        self: TreeExecutor, store: EventStore, time: Timeline, keys: int, first: int, last: int
    ) -> None:
        plain(self, store, time, keys, first, last)
        if draw.random() < 0.25:
            other = draw.choice(shapes[self.plan.pattern, self.plan.aliases])
            self.change_plan(other, store, time, keys, last)

    with mock.patch.object(TreeExecutor, "_round", round_and_change):
        yield


def drawn_case(draw: random.Random, stratum: str) -> GeneratedCase:
    """A random case of a stratum, which may be a query without its window."""
    if stratum == CRAFTED:
        return crafted_case(draw, draw.choice(CRAFTS))
    if stratum == LOOKED_UP:
        return lookup_case(draw, draw.choice(QUERIES))
    if stratum.startswith("PATTERN"):
        return crafted_case(draw, stratum)
    return common_case(draw) if stratum == COMMON else case_of(draw, stratum)


def crafted_case(draw: random.Random, query: str) -> GeneratedCase:
    """A query with a window, and a stream of its classes A, B and C."""
    text = f"{query} WITHIN {draw.randint(6, 14)}{draw.choice(('', ' INCLUSIVE'))}"
    start = draw.choice((None, None, "began"))
    now, rows = 0, []
    for _ in range(draw.randint(8, 11)):
        now += draw.choice((0, 0, 1, 1, 2))
        row = {
            "type": draw.choice("AABBBCC"),
            "ts": now,
            "id": draw.choice((1, 1, 2)),
            "x": draw.choice((0, 1, 2, None)),
        }
        rows.append({**row, "y": draw.choice((0.5, 0.5, None)), "s": draw.choice(("u", "u", None)), "f": True})
        if start is not None:
            rows[-1][start] = now - draw.choice((0, 0, 1, 2))
    return GeneratedCase(text, rows, start=start)


def pair_for_trees(draw: random.Random, stratum: str) -> Pair | None:
    """None when trees cannot run it."""
    pair = pair_of(drawn_case(draw, stratum))
    return None if pair is None or why_not_trees(pair.bound) is not None else pair


def try_plans(pair: Pair, draw: random.Random, counted: Counted, *, most: int = MOST_PLANS) -> bool:
    """Whether the pair ran: under each plan, which is another after a restore, and half the time after a round."""
    plans = all_plans(pair.bound, draw)
    rewritten = rewritten_plans(pair.bound, draw, 2)
    every = [*plans, *rewritten]
    tried = [*plans[:most], *rewritten]
    for plan in tried:
        others = [plan, *draw.sample(every, min(len(every), 4))]
        settings = Settings(adapting=Adapting(round=draw.randint(1, 4)))
        with forgetful(), changing(every, draw) if draw.random() < 0.5 else nullcontext():
            if not check(pair, settings, draw, others):
                return False
    counted.plans += len(tried)
    counted.rewritten += len(rewritten)
    counted.aliased += sum(any(_aliases(plan)) for plan in rewritten)
    return True


def _aliases(plan: Plan) -> Iterator[bool]:
    return (bool(getattr(alternative, "aliases", ())) for alternative in plan.alternatives)


def compare(stratum: str, wanted: int, *, first: int = 0, seeds: int = 400, most: int = MOST_PLANS) -> Counted:
    """So many pairs from a seed on; some strata draw strategies that trees do not run."""
    counted = Counted()
    for seed in range(first, first + seeds):
        if counted.pairs == wanted:
            break
        draw = random.Random(f"trees {stratum} {seed}")
        pair = pair_for_trees(draw, stratum)
        if pair is not None and try_plans(pair, draw, counted, most=most):
            counted.pairs += 1
            counted.matched += pair.expected.matches.num_rows > 0
    return counted


def agree(stratum: str, record_property: Callable[[str, object], None]) -> None:
    wanted = rounds(3 * STRATA[stratum])
    counted = compare(stratum, wanted)
    record_property("counted", f"trees = reference: {stratum:17} {counted}")
    assert counted.pairs == wanted
    assert counted.matched >= wanted // 4
    assert counted.plans >= wanted
    assert stratum != COMMON or counted.aliased >= wanted


def agree_at_a_glance(stratum: str) -> None:
    """Other cases than the many, under a few of their plans."""
    counted = compare(stratum, 3, first=10_000, most=3)
    assert counted.plans >= counted.pairs == 3


# In a process of its own ---------------------------------------------------------------------------------------------


def first_disagreement(places: Iterable[tuple[str, int]]) -> dict[str, object]:
    """How many pairs were compared, each under a few of its plans, and where the first disagreement is."""
    counted = Counted()
    for stratum, seed in places:
        try:
            counted.pairs += compare(stratum, 1, first=seed, seeds=1, most=6).pairs
        except Exception:
            return {"compared": counted.pairs, "place": [stratum, seed], "problem": traceback.format_exc()}
    return {"compared": counted.pairs}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps({**first_disagreement(json.loads(sys.argv[1])), "kleene": kleene.__file__}))
