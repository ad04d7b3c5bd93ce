"""What a tree plan tests where; plans in every order are well-formed, and ill-formed ones are refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from random import Random

import pytest
from tests.optimize.trees.printed import default_trees, tree

from kleene.errors import QueryError
from kleene.optimize.trees.all_trees import all_trees, default_tree
from kleene.optimize.trees.building import why_not_trees
from kleene.optimize.trees.options import options
from kleene.pattern import Query, Schema
from kleene.pattern.expressions import Clause
from kleene.pattern.printing import print_clause
from kleene.pattern.query import BoundQuery
from kleene.plan.check_trees import check_tree, holds_when_absent
from kleene.plan.physical import IllFormedPlan
from kleene.plan.trees import (
    Alias,
    Gap,
    GroupNode,
    Join,
    JoinNode,
    LeafNode,
    NegNode,
    Node,
    Side,
    Site,
    TreePlan,
    UnionNode,
)
from kleene.testing.generators import random_case, schema_of

KNOWN = {"id": "int", "x": "int", "y": "float", "s": "string", "d": "decimal"}
TYPED = Schema(columns={"type": "string", "ts": "int", **KNOWN})


def bound(text: str, schema: Schema = TYPED) -> BoundQuery:
    return Query(f"PATTERN {text} WITHIN 9").bind(schema)


def only_plan(text: str, schema: Schema = TYPED) -> TreePlan:
    query = bound(text, schema)
    (plan,) = default_trees(query)
    return check_tree(query, plan)


def drawn(node: Node) -> str:
    """`(a{mask} ; b)` is SEQ, `&` CONJ, `|` DISJ, `+c(…)` KSEQ, `!n(…)` NEG, `<n` and `>n` NSEQ; tests in braces."""
    match node:
        case LeafNode(scan=scan, tests=tests):
            return scan.component.variable + listed(scan.mask) + listed(tests, "()")
        case JoinNode(kind, left, right, equalities, tests, pushed):
            sides = "".join(f" {'<' if side is Side.LEFT else '>'}{absent(absence)}" for side, absence in pushed)
            sign = ";" if kind is Join.SEQ else "&"
            return f"({drawn(left)} {sign}{sides} {drawn(right)})" + listed(equalities, "[]") + listed(tests)
        case UnionNode(parts, tests):
            return f"({' | '.join(map(drawn, parts))})" + listed(tests)
        case GroupNode(child, scan, _, members, tests):
            inner = drawn(child)
            return f"+{scan.component.variable}{listed(members, '()')}({inner})" + listed(tests)
        case NegNode(child, absence):
            return f"!{absent(absence)}({drawn(child)})"


def absent(absence: Site) -> str:
    return absence.scan.component.variable + listed(absence.conditions, "()")


def listed(clauses: tuple[Clause, ...], marks: str = "{}") -> str:
    return marks[0] + ", ".join(map(print_clause, clauses)) + marks[1] if clauses else ""


@pytest.mark.parametrize(
    ("query", "tree"),
    [
        ("A a", "a"),
        ("A a WHERE a.x = 1", "a{a.x = 1}"),
        ("A a ; B b ; C c", "((a ; b) ; c)"),
        ("A a & B b", "(a & b)"),
        ("A a ; (B b | C c)", "(a ; (b | c))"),
        ("A a ; B b ; C c WHERE a.x < b.x AND a.x < c.x", "((a ; b){a.x < b.x} ; c){a.x < c.x}"),
        ("A a ; B b WHERE a.x > 1 OR b.x > 1", "(a ; b){a.x > 1 OR b.x > 1}"),
        # Lists are made of events first.
        ("A+ a[] ; B b WHERE a[i].x > a[i-1].x AND count(a) > 2", "(a(a[i].x > a[i-1].x, count(a) > 2) ; b)"),
        ("A+ a[] ; B b WHERE b.x > sum(a[..].x)", "(a ; b){b.x > sum(a.x)}"),
        # Equalities that a join can look up.
        ("A a ; B b WHERE a.x = b.x AND b.s = a.s", "(a ; b)[a.x = b.x, b.s = a.s]"),
        ("A a & B b WHERE a.x = b.x", "(a & b)[a.x = b.x]"),
        ("A a ; B b WHERE a.x = b.y", "(a ; b)[a.x = b.y]"),
        ("A a ; B b WHERE a.d = b.d", "(a ; b){a.d = b.d}"),
        ("A a ; B b WHERE a.x = b.x + 1", "(a ; b)[a.x = b.x + 1]"),
        ("A a ; B b WHERE a.x % 10 = b.x - b.y", "(a ; b)[a.x % 10 = b.x - b.y]"),
        ("A a ; B b WHERE a.x - b.x = 1", "(a ; b){a.x - b.x = 1}"),
        ("A a ; B b WHERE a.x - b.x = b.y", "(a ; b){a.x - b.x = b.y}"),
        ("A a ; B b ; C c WHERE a.x + b.x = c.x", "((a ; b) ; c)[a.x + b.x = c.x]"),
        # Each side of the equality must be on one side of the join.
        ("A a ; B b ; C c WHERE a.x = b.x + c.x", "((a ; b) ; c){a.x = b.x + c.x}"),
        ("A a ; B b WHERE a.x = b.x OR a.s = b.s", "(a ; b){a.x = b.x OR a.s = b.s}"),
        ("A+ a[] ; B b WHERE a[1].x = b.x", "(a ; b)[a[1].x = b.x]"),
        ("A+ a[] ; B b WHERE sum(a[..].x) = b.x", "(a ; b){sum(a.x) = b.x}"),
        ("(A a | B b) ; C c WHERE a.x = c.x", "((a | b) ; c){a.x = c.x}"),
        # In a branch both sides of a join are always there.
        ("((A a ; B b) | C c) ; D d WHERE a.x = b.x", "(((a ; b)[a.x = b.x] | c) ; d)"),
    ],
)
def test_a_condition_is_tested_at_the_lowest_node_that_binds_its_variables(query: str, tree: str) -> None:
    assert drawn(only_plan(query).root) == tree


@pytest.mark.parametrize(
    ("query", "tree"),
    [
        ("(A a | B b) ; C c WHERE a.x > 1", "((a{a.x > 1} | b) ; c)"),
        ("(A a | B b) ; C c WHERE a.x IS NULL", "((a{a.x IS NULL} | b) ; c)"),
        ("(A a | B b) ; C c WHERE a.x IS NOT NULL", "((a | b){a.x IS NOT NULL} ; c)"),
        ("(A a | B b) ; C c WHERE a.x + b.x > 1", "((a | b){a.x + b.x > 1} ; c)"),
        ("(A a | B b) ; C c WHERE a.x > c.x", "((a | b) ; c){a.x > c.x}"),
        ("(A+ a[] | B b) ; C c WHERE count(a) > 2", "((a | b){count(a) > 2} ; c)"),
        ("(A+ a[] | B b) ; C c WHERE sum(a[..].x) > 2", "((a(sum(a.x) > 2) | b) ; c)"),
        ("(A+ a[] | B b) ; C c WHERE a[i].x IS NOT NULL", "((a(a[i].x IS NOT NULL) | b) ; c)"),
        # Above the outermost disjunction, since each of its records may lack it.
        ("((A a ; (B b | C c)) | D d) ; E e WHERE b.x IS NOT NULL", "(((a ; (b | c)) | d){b.x IS NOT NULL} ; e)"),
        ("((A a ; (B b | C c)) | D d) ; E e WHERE b.x > a.x", "(((a ; (b | c)){b.x > a.x} | d) ; e)"),
    ],
)
def test_in_a_branch_is_tested_what_holds_in_the_others(query: str, tree: str) -> None:
    assert drawn(only_plan(query).root) == tree


@pytest.mark.parametrize(
    ("query", "tree"),
    [
        ("A a ; !(N n) ; B b", "(a ; >n b)"),
        ("A a ; !(N n) ; B b WHERE n.x = b.x AND n.x > 1", "(a ; >n(n.x = b.x, n.x > 1) b)"),
        ("A a ; !(N n) ; B b WHERE n.x = a.x", "(a ; <n(n.x = a.x) b)"),
        ("A a ; !(N n) ; B b WHERE n.x = a.x + b.x", "!n(n.x = a.x + b.x)((a ; b))"),
        ("A a ; !(M m | N n) ; B b WHERE n.x = a.x", "(a ; >m <n(n.x = a.x) b)"),
        ("A a ; !(N n) ; B b ; C c WHERE n.x = c.x AND a.x < b.x", "!n(n.x = c.x)(((a ; b){a.x < b.x} ; c))"),
        ("!(M m) ; A a ; !(N n)", "!n(!m(a))"),
        ("A a ; B+ ; C c WHERE B.x > a.x AND sum(B.x) > c.x", "+B(B.x > a.x)((a ; c)){sum(B.x) > c.x}"),
        ("A a ; B+ ; C c ; D d WHERE sum(B.x) > d.x", "(+B((a ; c)) ; d){sum(B.x) > d.x}"),
        ("A a ; B+ ; C c ; D d WHERE B.x > d.x", "+B(B.x > d.x)(((a ; c) ; d))"),
        ("A a ; B* ; !(N n) ; C c", "!n(+B((a ; c)))"),
        ("A a ; B* ; C c ; !(N n)", "!n(+B((a ; c)))"),
        ("A a ; B+", "+B(a)"),
        # Groups first, each kind in the order of the text.
        ("(!(N n) ; A a ; B+ ; C c ; !(M m))", "!m(!n(+B((a ; c))))"),
        ("(A a ; B+ b ; C c) & (D d ; B+ e ; E f)", "+e(+b(((a ; c) & (d ; f))))"),
        ("A a ; ((B b ; C+ ; D d) | E e) WHERE count(C) > 1", "(a ; (+C((b ; d)) | e){count(C) > 1})"),
        ("A a ; ((B b ; !(N n) ; D d) | E e) WHERE n.x = a.x", "!n(n.x = a.x)((a ; ((b ; d) | e)))"),
    ],
)
def test_negation_and_closures(query: str, tree: str) -> None:
    assert drawn(only_plan(query).root) == tree


def test_a_plan_holds_what_it_matches_and_the_gaps() -> None:
    query = bound("A a ; B* b ; !(N n) ; C c")
    (plan,) = default_trees(query)
    (option,) = options(query)
    assert plan.pattern is option.pattern
    assert [group.gap for group in plan.groups] == [Gap(("a",), ("c",), ("a", "c"))]
    assert [absence.gap for absence in plan.absences] == [Gap(("b", "a"), ("c",), ("a", "c"))]


def test_what_the_key_implies_is_not_tested() -> None:
    query = bound("A a ; !(N n) ; B+ b[] ; C+ ; D d WHERE [id] AND a.x < d.x")
    (option,) = options(query)
    keyed = check_tree(query, default_tree(query, option))
    assert keyed.key == ("id",)
    assert drawn(keyed.root) == "+C(((a ; >n b) ; d){a.x < d.x})"
    without = check_tree(query, default_tree(query, option, key=()))
    assert without.key == ()
    assert "id" in drawn(without.root)
    assert without.absences[0].conditions == query.conditions.negative["n"]


def test_an_equivalence_of_another_attribute_stays() -> None:
    assert drawn(only_plan("A a ; B b WHERE [id] AND a.id = b.x").root) == "(a ; b)[a.id = b.x]"


def test_a_type_may_lack_the_attribute_of_an_equality() -> None:
    schema = Schema(types={"A": {"x": "int"}, "B": {"x": "int"}, "C": {"y": "int"}})
    assert drawn(only_plan("A a ; B b WHERE a.x = b.x", schema).root) == "(a ; b)[a.x = b.x]"
    assert drawn(only_plan("A a ; ANY(B, C) b WHERE a.x = b.x", schema).root) == "(a ; b){a.x = b.x}"


def test_types_that_are_not_known_are_not_looked_up() -> None:
    assert drawn(only_plan("A a ; B b WHERE a.x = b.x", Schema()).root) == "(a ; b){a.x = b.x}"


def test_what_names_no_event_of_the_plan_is_tested_after() -> None:
    query = bound("A a ; B? b WHERE b.x IS NULL AND a.x > b.x AND a.x > 2")
    with_b, without = (check_tree(query, plan) for plan in default_trees(query))
    assert (drawn(with_b.root), with_b.after) == ("(a{a.x > 2} ; b{b.x IS NULL}){a.x > b.x}", ())
    # A mask is of one event; what names an absent one, too, is tested of the record.
    assert drawn(without.root) == "a{a.x > 2}"
    assert [print_clause(clause) for clause in without.after] == ["b.x IS NULL", "a.x > b.x"]


def test_a_mask_names_no_event_that_is_absent() -> None:
    query = bound("A a ; B? b ; C c ; !(N n) WHERE a.x > b.x OR a.x = 1")
    with_b, without = (check_tree(query, plan) for plan in default_trees(query))
    assert drawn(with_b.root) == "!n(((a ; b){a.x > b.x OR a.x = 1} ; c))"
    assert drawn(without.root) == "!n((a ; c){a.x > b.x OR a.x = 1})"
    alone = bound("A a ; B? b ; !(N n) WHERE a.x > b.x OR a.x = 1")
    _, only_a = (check_tree(alone, plan) for plan in default_trees(alone))
    assert (drawn(only_a.root), listed(only_a.after)) == ("!n(a)", "{a.x > b.x OR a.x = 1}")


def test_a_condition_that_is_said_twice_is_tested_once() -> None:
    assert drawn(only_plan("A a ; B b WHERE a.x < b.x AND a.x < b.x").root) == "(a ; b){a.x < b.x}"


def test_the_order_decides_where_tests_stand() -> None:
    query = bound("A a ; !(N n) ; B b ; C c WHERE a.x < b.x AND b.x < c.x AND n.x = c.x")
    plan = check_tree(query, tree(query, "SEQ(a, NSEQ(!n, SEQ(b, c)))"))
    assert drawn(plan.root) == "(a ; >n(n.x = c.x) (b ; c){b.x < c.x}){a.x < b.x}"


def test_aliases_are_the_rewrite_s() -> None:
    query = bound("A a ; B b")
    alias = Alias("z", "a", ("b",))
    (option,) = options(query)
    assert default_tree(query, replace(option, aliases=(alias,))).aliases == (alias,)


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("a.x > 1", True),
        ("-a.x + 1 > b.x", True),
        ("a.s CONTAINS 'u'", True),
        ("a.x IS NULL", True),
        ("a.x IS NOT NULL", False),
        ("a.x IS NOT NULL OR b.x = 1", True),
        ("count(k) > 1", False),
        ("k.LEN = 0", False),
        ("count(k.x) = 0", False),
        ("max(k.x) > 1", True),
        ("k[i].x IS NOT NULL", True),
    ],
)
def test_what_holds_of_nothing(condition: str, holds: bool) -> None:
    (clause,) = bound(f"(A a ; B b ; A+ k[]) | C WHERE {condition}").conditions.positive
    assert holds_when_absent(clause) is holds


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("PATTERN A a ; B b", None),
        ("PATTERN A & B OUTPUT NON_OVERLAP", None),
        ("PATTERN A a ; B b WHERE skip_till_next_match { a.x = 1 }", "skip_till_next_match"),
        ("PATTERN A a ; B b WITHIN 5 TIMEOUTS INTO Late", "TIMEOUTS"),
        ("PATTERN A a ; B b OUTPUT COMPRESSED", "COMPRESSED"),
        ("PATTERN " + " ; ".join(f"A a{number}" for number in range(61)), "more than 60"),
        ("PATTERN " + " | ".join(f"A a{number}" for number in range(61)), None),
    ],
)
def test_what_no_tree_runs(text: str, reason: str | None) -> None:
    found = why_not_trees(Query(text).bind(Schema()))
    assert found is None if reason is None else found is not None and reason in found


# Every tree -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("stratum", ["conjunction", "disjunction", "nested", "closure", "negation", "sequence"])
def test_every_tree_of_every_option_is_well_formed(stratum: str) -> None:
    plans = 0
    for number in range(60):
        case = random_case(Random(f"trees {stratum} {number}"), stratum)
        try:
            query = Query(case.query_text, params=case.params).bind(Schema(**schema_of(case)))
        except QueryError:
            continue
        assert why_not_trees(query) is None
        for plan in default_trees(query):
            check_tree(query, plan)
        for option in options(query):
            for key in {query.partition, ()}:
                for plan in islice(all_trees(query, option, key), 200):
                    check_tree(query, plan)
                    plans += 1
    assert plans > 60


# Ill-formed plans -------------------------------------------------------------------------------------------------

SPOILT = "A a ; !(N n) ; B b ; C+ ; D d WHERE a.x < b.x AND b.s = d.s AND n.y = b.y AND C.x = d.x AND sum(C.x) > 1"


@pytest.fixture
def query() -> BoundQuery:
    return bound(SPOILT)


@pytest.fixture
def plan(query: BoundQuery) -> TreePlan:
    (found,) = default_trees(query)
    return check_tree(query, found)


def test_the_plan_that_is_spoilt_below(plan: TreePlan) -> None:
    assert drawn(plan.root) == ("+C(C.x = d.x)(((a ; >n(n.y = b.y) b){a.x < b.x} ; d)[b.s = d.s]){sum(C.x) > 1}")


def group(plan: TreePlan) -> GroupNode:
    assert isinstance(plan.root, GroupNode)
    return plan.root


def upper(plan: TreePlan) -> JoinNode:
    node = group(plan).child
    assert isinstance(node, JoinNode)
    return node


def lower(plan: TreePlan) -> JoinNode:
    node = upper(plan).left
    assert isinstance(node, JoinNode)
    return node


def with_upper(plan: TreePlan, node: Node) -> TreePlan:
    return replace(plan, root=replace(group(plan), child=node))


def with_lower(plan: TreePlan, node: Node) -> TreePlan:
    return with_upper(plan, replace(upper(plan), left=node))


def moved_to(plan: TreePlan, side: Side) -> TreePlan:
    (_, absence), *_ = lower(plan).pushed
    return with_lower(plan, replace(lower(plan), pushed=((side, absence),)))


SPOILING: dict[str, tuple[str, Callable[[TreePlan], TreePlan]]] = {
    "a test is lost": ("tested 0 times", lambda plan: with_lower(plan, replace(lower(plan), tests=()))),
    "a test is repeated": ("tested 2 times", lambda plan: replace(plan, after=lower(plan).tests)),
    "a test is too low": (
        "not bound yet",
        lambda plan: with_lower(plan, replace(lower(plan), tests=(*lower(plan).tests, *upper(plan).equalities))),
    ),
    "an equality is of one side": (
        "one value on each side",
        lambda plan: with_upper(plan, replace(upper(plan), equalities=lower(plan).tests)),
    ),
    "NSEQ looks on the wrong side": ("not known there", lambda plan: moved_to(plan, Side.LEFT)),
    "a negation is lost": ("negated components", lambda plan: with_lower(plan, replace(lower(plan), pushed=()))),
    "a negation is repeated": (
        "negated components",
        lambda plan: with_lower(plan, NegNode(lower(plan), lower(plan).pushed[0][1])),
    ),
    "a negation stands elsewhere": (
        "between the sides",
        lambda plan: with_lower(
            plan,
            replace(lower(plan), pushed=((Side.RIGHT, replace(lower(plan).pushed[0][1], gap=Gap(("b",), ("d",)))),)),
        ),
    ),
    "a closure is lost": ("closed components", lambda plan: replace(plan, root=upper(plan))),
    "a closure's neighbour is not bound": (
        "neighbours are not bound",
        lambda plan: replace(plan, root=replace(upper(plan), left=replace(group(plan), child=lower(plan)))),
    ),
    "what chooses members is lost": ("of `C`", lambda plan: replace(plan, root=replace(group(plan), members=()))),
    "what forbids is lost": (
        "of `n`",
        lambda plan: with_lower(
            plan, replace(lower(plan), pushed=((Side.RIGHT, replace(lower(plan).pushed[0][1], conditions=())),))
        ),
    ),
    "a member is looked up by what it need not equal": (
        "no condition on it",
        lambda plan: replace(plan, root=replace(group(plan), equalities=upper(plan).equalities)),
    ),
    "both sides bind one variable": (
        "single and Kleene components",
        lambda plan: with_upper(plan, replace(upper(plan), right=lower(plan).right)),
    ),
    "the sides are exchanged": (
        "meet otherwise",
        lambda plan: with_lower(plan, replace(lower(plan), left=lower(plan).right, right=lower(plan).left)),
    ),
    "a sequence is joined in any order": (
        "meet otherwise",
        lambda plan: with_lower(plan, replace(lower(plan), kind=Join.CONJ)),
    ),
}


@pytest.mark.parametrize("how", SPOILING)
def test_an_ill_formed_plan_is_refused(query: BoundQuery, plan: TreePlan, how: str) -> None:
    said, spoil = SPOILING[how]
    with pytest.raises(IllFormedPlan, match=said):
        check_tree(query, spoil(plan))


def test_the_window_bounds_whole_records_only() -> None:
    query = bound("A a ; B b ; !(N n)")
    (plan,) = default_trees(query)
    assert isinstance(plan.root, NegNode)
    join = plan.root.child
    assert isinstance(join, JoinNode)
    early = replace(join, right=NegNode(join.right, plan.root.absence))
    with pytest.raises(IllFormedPlan, match="whole records"):
        check_tree(query, replace(plan, root=early))


def test_a_branch_cannot_test_what_the_others_must() -> None:
    query = bound("(A a | B b) ; C c WHERE a.x IS NOT NULL")
    (plan,) = default_trees(query)
    join = plan.root
    assert isinstance(join, JoinNode)
    union = join.left
    assert isinstance(union, UnionNode)
    leaf = union.parts[0]
    assert isinstance(leaf, LeafNode)
    lowered = UnionNode((replace(leaf, tests=union.tests), union.parts[1]))
    with pytest.raises(IllFormedPlan, match="another branch"):
        check_tree(query, replace(plan, root=replace(join, left=lowered)))
