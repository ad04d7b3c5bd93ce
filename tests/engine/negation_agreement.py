"""Negation in groups and negated pairs: brute force, reference and every tree plan on the same random pairs.

`python -m tests.engine.negation_agreement '[["negated_groups", 3]]'` compares cases up to the first disagreement;
the last line says what came of it.
"""

from __future__ import annotations

import json
import random
import re
import sys
import traceback
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tests.engine.agreement import case_of, pair_of
from tests.engine.tree_agreement import MOST_PLANS, Counted, crafted_case, try_plans
from tests.testing.test_reference_agrees import brute_arguments, explain, reference

import kleene
from kleene.optimize.trees.building import why_not_trees
from kleene.testing.brute import brute_force_match
from kleene.testing.generators import GeneratedCase

# What random queries come to too rarely.
CRAFTED = "crafted"
CRAFTS = (
    "PATTERN A a & !(B b)",
    "PATTERN A a & C c & !(B b) WHERE [id] AND b.x >= a.x",
    "PATTERN A a ; (B b & !(C c)) ; A d",
    "PATTERN A a ; (B b & !(C c)) ; A d WHERE [id] AND c.x >= a.x AND c.x > d.x",
    "PATTERN A a ; (B b & !(C c))",
    "PATTERN (B b & !(C c)) ; A a",
    "PATTERN (!(B b) ; A a) & C c",
    "PATTERN (A a ; !(B b)) & C c WHERE b.x > c.x",
    "PATTERN A a ; ((!(B b) ; C c) & B d) ; A e",
    "PATTERN (A a & !(B b)) ; (C c & !(A d))",
    "PATTERN ((A a & !(B b)) | C c) & A d",
    "PATTERN A a ; ((B b & !(C c)) | (C d & !(B e))) ; A f WHERE c.x = a.x",
    "PATTERN A a & !(A b) WHERE b.ts != a.ts",
    "PATTERN A+ a[] & !(B b) & !(C c)",
    "PATTERN A a ; (B? b & !(C c)) ; A d",
    "PATTERN A a ; (B b & !(C c)) ; B+ k ; A d",
    "PATTERN A a ; !(B b ; C c) ; A d",
    "PATTERN A a ; !(B b ; C c) ; A d WHERE [id] AND b.x >= c.x",
    "PATTERN A a ; !(B b ; C c) ; A d WHERE b.x >= a.x AND c.x > d.x",
    "PATTERN A a & !(B b ; C c)",
    "PATTERN A a ; !(B b ; B c)",
    "PATTERN !(B b ; C c) ; A a WHERE b.x = c.x",
    "PATTERN A a ; (C c & !((B b ; B d) | C e)) ; A f WHERE e.x > a.x",
    "PATTERN ((A a ; !(B b ; C c) ; B d) | C e) & A f WHERE b.x = f.x",
)


@dataclass
class NegationsCounted(Counted):
    # Pairs that only the brute force and the reference ran: no tree can.
    off_trees: int = 0


def drawn_case(draw: random.Random, stratum: str) -> GeneratedCase:
    """A random case of a stratum, which may be a query without its window."""
    if stratum != CRAFTED and not stratum.startswith("PATTERN"):
        return case_of(draw, stratum)
    case = crafted_case(draw, draw.choice(CRAFTS) if stratum == CRAFTED else stratum)
    # Shorter windows than others have: here they decide how far something is forbidden.
    return replace(case, query_text=re.sub(r"WITHIN \d+", f"WITHIN {draw.randint(2, 8)}", case.query_text))


def compare(
    stratum: str, wanted: int, *, first: int = 0, seeds: int = 4_000, most: int = MOST_PLANS
) -> NegationsCounted:
    """So many pairs from a seed on, each by brute force, by the reference, and under so many of its plans at most."""
    counted = NegationsCounted()
    for seed in range(first, first + seeds):
        if counted.pairs == wanted:
            break
        draw = random.Random(f"negation {stratum} {seed}")
        case = drawn_case(draw, stratum)
        expected = brute_force_match(case.events, case.query_text, **brute_arguments(case))
        found, _ = reference(case)
        assert found == expected, f"{stratum} {seed}\n{explain(case, expected, found)}"
        pair = pair_of(case)
        if pair is None or why_not_trees(pair.bound) is not None:
            counted.off_trees += 1
        elif try_plans(pair, draw, counted, most=most):
            counted.pairs += 1
            counted.matched += bool(expected)
    return counted


def first_disagreement(places: Iterable[tuple[str, int]]) -> dict[str, object]:
    """How many pairs were compared, each under a few of its plans, and where the first disagreement is."""
    compared = 0
    for stratum, seed in places:
        try:
            counted = compare(stratum, 1, first=seed, seeds=1, most=4)
            compared += counted.pairs + counted.off_trees
        except Exception:
            return {"compared": compared, "place": [stratum, seed], "problem": traceback.format_exc()}
    return {"compared": compared}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps({**first_disagreement(json.loads(sys.argv[1])), "kleene": kleene.__file__}))
