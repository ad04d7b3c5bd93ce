"""Each rewrite before and after, and the same matches before and after any of them."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
from tests.optimize.rewrites.common_parts import common_case
from tests.optimize.rewrites.matching import bound_case, logicals, matches
from tests.soaking import rounds

from kleene.errors import ClosureCondition
from kleene.optimize.rewrites.complexity import Complexity, complexity
from kleene.optimize.rewrites.merging import Merging, merged
from kleene.optimize.rewrites.renaming import meaning, renamed
from kleene.optimize.rewriting import rewrite
from kleene.optimize.rules import REWRITES
from kleene.optimize.trees.all_trees import default_tree
from kleene.optimize.trees.logical import Logical
from kleene.pattern import Query
from kleene.pattern.expressions import Clause
from kleene.pattern.printing import print_clause, print_clauses, print_pattern
from kleene.pattern.query import BoundQuery
from kleene.plan.check_trees import check_tree
from kleene.plan.trees import Alias
from kleene.testing.generators import GeneratedCase, random_case

NAMES = [name for name, _ in REWRITES]
CASES_A_STRATUM = rounds(640)

pytestmark = pytest.mark.filterwarnings("ignore::kleene.errors.QueryWarning")


@dataclass(frozen=True)
class Example:
    """A query, and how a rule leaves its pattern and its conditions."""

    rule: str
    title: str
    query: str
    expected: str


def examples() -> Iterator[Example]:
    """`# what it shows`, the query, `->`, what becomes of it; an empty line ends an example."""
    for name in NAMES:
        for block in Path(__file__).with_name(f"{name}.txt").read_text().strip().split("\n\n"):
            title, *lines = block.splitlines()
            arrow = lines.index("->")
            yield Example(name, title.removeprefix("# "), "\n".join(lines[:arrow]), "\n".join(lines[arrow + 1 :]))


def logical_of(text: str) -> tuple[Logical, BoundQuery]:
    query = Query(text).bind()
    (logical,) = logicals(query)
    return logical, query


def alone(name: str) -> frozenset[str]:
    """All rules but one."""
    return frozenset(NAMES) - {name}


def shown(logical: Logical) -> str:
    lines = [print_pattern(logical.pattern)]
    lines += [f"WHERE {print_clauses(logical.positive)}"] if logical.positive else []
    for word, groups in (("NO", logical.negative), ("MEMBERS", logical.members)):
        lines += [f"{word} {variable} WITH {print_clauses(clauses)}" for variable, clauses in groups.items() if clauses]
    lines += [f"{alias.of} IS {alias.variable} BESIDE {', '.join(alias.when)}" for alias in logical.aliases]
    return "\n".join(lines)


@pytest.mark.parametrize("example", [*examples()], ids=lambda example: f"{example.rule}: {example.title}")
def test_before_and_after(example: Example) -> None:
    before, query = logical_of(example.query)
    after, used = rewrite(before, query, alone(example.rule))
    if example.expected == "unchanged":
        assert (after, used) == (before, ())
    else:
        assert shown(after) == example.expected
        assert used == (example.rule,)
        assert complexity(after.pattern) < complexity(before.pattern)


@pytest.mark.parametrize("example", [*examples()], ids=lambda example: f"{example.rule}: {example.title}")
def test_what_is_left_is_a_plan(example: Example) -> None:
    """The checker, which knows nothing of rewrites, finds every condition tested that some match could violate."""
    before, query = logical_of(example.query)
    after, _ = rewrite(before, query, alone(example.rule))
    plan = check_tree(query, default_tree(query, after))
    assert plan.aliases == after.aliases


@pytest.mark.parametrize("name", NAMES)
def test_every_rule_has_an_example_that_changes_and_one_that_does_not(name: str) -> None:
    unchanged = {example.expected == "unchanged" for example in examples() if example.rule == name}
    assert unchanged == {True, False}


# The measure and the loop ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PATTERN A", Complexity()),
        ("PATTERN A ; B ; C", Complexity(2, 0, 2, 1)),
        ("PATTERN A ; (B ; C)", Complexity(2, 0, 2, 2)),
        ("PATTERN A ; (B & C)", Complexity(2, 1, 1, 2)),
        ("PATTERN A ; (B | C)", Complexity(2, 0, 1, 2)),
        ("PATTERN A ; !B ; D", Complexity(3, 0, 2, 1)),
        ("PATTERN A ; !(ANY(B, C) n) ; D", Complexity(4, 0, 2, 1)),
    ],
)
def test_complexity(text: str, expected: Complexity) -> None:
    assert complexity(Query(text).bind().pattern) == expected


def test_the_papers_expressions_become_the_same() -> None:
    both, query = logical_of("PATTERN A ; (!B & !C) ; D")
    either, _ = logical_of("PATTERN A ; !(B | C) ; D")
    rewritten, used = rewrite(both, query)
    assert rewritten == rewrite(either, query)[0]
    assert used == ("flatten", "merge_negations")
    assert print_pattern(rewritten.pattern) == "SEQ(A, !(ANY(B, C) B), D)"
    # Expression 1 of §5.2.1 has five operators and expression 2 has four.
    assert (complexity(both.pattern).operators, complexity(rewritten.pattern).operators) == (5, 4)


def test_rules_go_on_where_others_have_made_room() -> None:
    logical, query = logical_of("PATTERN (A ; B ; E) | (A ; C ; E) | (A ; (D ; E)) WHERE [id]")
    rewritten, used = rewrite(logical, query)
    assert used == ("flatten", "pull_common_start", "pull_common_end")
    assert shown(rewritten) == "\n".join(
        [
            "SEQ(A, B | C | D, E)",
            "WHERE B.id = A.id AND E.id = A.id AND E.id = B.id AND C.id = A.id AND D.id = A.id"
            " AND E.id = C.id AND E.id = D.id",
            "A IS A_2 BESIDE C",
            "A IS A_3 BESIDE D",
            "E IS E_2 BESIDE C",
            "E IS E_3 BESIDE D",
        ]
    )


@pytest.mark.parametrize("name", NAMES)
def test_any_rule_can_be_switched_off(name: str) -> None:
    for example in examples():
        logical, query = logical_of(example.query)
        assert name not in rewrite(logical, query, frozenset({name}))[1]


# Names -------------------------------------------------------------------------------------------------------------


def clauses(text: str) -> tuple[Clause, ...]:
    return Query(text).bind().conditions.positive


def test_renamed_reaches_every_reference() -> None:
    (clause,) = clauses("PATTERN A a ; B+ b[] ; C c WHERE a.x + sum(b.x) > -c.x or a.s CONTAINS 'u' or a.x IS NULL")
    assert print_clause(renamed(clause, {"a": "d", "b": "e"})) == (
        "d.x + sum(e.x) > - c.x OR d.s CONTAINS 'u' OR d.x IS NULL"
    )
    assert renamed(clause, {"q": "r"}) is clause


def test_mirrored_comparisons_mean_the_same() -> None:
    left, right, other = clauses("PATTERN A a ; B b WHERE a.x < b.x and b.x > a.x and b.x < a.x")
    assert meaning(left) == meaning(right) != meaning(other)


def test_an_alias_counts_on_what_only_its_own_matches_have() -> None:
    logical, query = logical_of("PATTERN (A ; B) | ((A ; C ; E) | (A ; D ; E))")
    rewritten, _ = rewrite(logical, query, {"flatten"})
    assert print_pattern(rewritten.pattern) == "SEQ(A, B | SEQ(C | D, E))"
    # All of C, D and E stand beside the second A or the third; E stands beside both.
    assert set(rewritten.aliases) == {Alias("A_2", "A", ("C",)), Alias("A_3", "A", ("D",)), Alias("E_2", "E", ("D",))}


def test_an_alias_does_not_count_on_a_component_that_now_stands_in_other_branches() -> None:
    logical, query = logical_of("PATTERN (A a ; B b ; E e) | (A k ; C c ; E f) | (A m ; D d ; E g)")
    started, _ = rewrite(logical, query, alone("pull_common_start"))
    assert started.aliases == (Alias("k", "a", ("c", "f")), Alias("m", "a", ("d", "g")))
    second, third = logical.pattern.parts[1:]  # type: ignore[union-attr]
    pair = Merging("f", "g", second.parts[1], third.parts[1])  # type: ignore[union-attr]
    ended = merged(started, pair)
    assert ended is not None
    assert ended.aliases == (Alias("k", "a", ("c",)), Alias("m", "a", ("d",)), Alias("g", "f", ("d",)))


# The same matches --------------------------------------------------------------------------------------------------


def check_case(case: GeneratedCase, used: Counter[str]) -> bool:
    """Whether there were matches to compare; `used` counts the rules that changed something."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            query, events = bound_case(case)
        except ClosureCondition:  # some nested patterns have no component that tells a closure its key
            return False
    some = False
    for logical in logicals(query):
        expected = matches(logical, query, events)
        some = some or bool(expected)
        for without in {frozenset[str]()} | {alone(name) for name in NAMES}:
            rewritten, names = rewrite(logical, query, without)
            used.update(names if not without else ())
            if not names:
                continue
            assert complexity(rewritten.pattern) < complexity(logical.pattern)
            assert matches(rewritten, query, events) == expected, "\n".join(
                [case.query_text, *map(str, (case.types, case.params, *case.events)), shown(logical), shown(rewritten)]
            )
    return some


@pytest.mark.slow
@pytest.mark.parametrize("stratum", ["disjunction", "nested", "negation", "conjunction"])
def test_rewriting_keeps_the_matches(stratum: str) -> None:
    used: Counter[str] = Counter()
    numbers = range(CASES_A_STRATUM)
    matching = sum(check_case(random_case(Random(f"{stratum} {number}"), stratum), used) for number in numbers)
    assert matching > CASES_A_STRATUM / 4
    assert stratum == "conjunction" or used, "nothing was rewritten"


@pytest.mark.slow
def test_rewriting_keeps_the_matches_of_common_parts() -> None:
    used: Counter[str] = Counter()
    numbers = range(3 * CASES_A_STRATUM)
    matching = sum(check_case(common_case(Random(f"common {number}")), used) for number in numbers)
    assert matching > CASES_A_STRATUM
    for name in ("pull_common_start", "pull_common_end", "pull_common_conjunct", "drop_impossible"):
        assert used[name] >= 5, used
