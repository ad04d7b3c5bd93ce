"""Refuse an ill-formed tree plan before it runs: every condition is tested once, where its events are known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from kleene.pattern.absence import holds_by_absence
from kleene.pattern.conditions import iterated
from kleene.pattern.expressions import (
    Aggregate,
    Agrees,
    Among,
    Arithmetic,
    Attribute,
    Clause,
    Comparison,
    Contains,
    IsNull,
    Literal,
    Negative,
    Truth,
    Value,
    equated,
    variables,
)
from kleene.pattern.gaps import negations
from kleene.pattern.nodes import ComponentKind, Conjunction, Disjunction, Leaf, Pattern, Sequence, components
from kleene.pattern.query import BoundQuery
from kleene.plan.implied import implied_by_key
from kleene.plan.physical import IllFormedPlan
from kleene.plan.trees import (
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
    children,
    tests_of,
    variables_bound,
    walk,
)


def check_tree(query: BoundQuery, plan: TreePlan) -> TreePlan:
    """The plan itself, or an error that names the rule it breaks."""
    _check_components(plan)
    _check_structure(plan)
    present = frozenset(variables_bound(plan.root))
    for node in walk(plan.root):
        _check_tests(node, present)
        _check_sides(node)
        _check_absences(node, present)
    _check_group_members(plan, present)
    _check_branches(plan.root, inside=False)
    _check_complete(query, plan)
    _check_looked_up(plan)
    return plan


# What is bound ----------------------------------------------------------------------------------------------------


def _check_components(plan: TreePlan) -> None:
    """Every component of the pattern stands in the tree once, as what it is."""
    expected = tuple(components(plan.pattern))
    leaves = [node.scan.component for node in walk(plan.root) if isinstance(node, LeafNode)]
    groups = [node.scan.component for node in plan.groups]
    negated = [absence.scan.component for absence in plan.absences]
    for what, in_tree, own in (
        ("single and Kleene", leaves, [c for c in expected if not c.negated and c.kind is not ComponentKind.CLOSURE]),
        ("closed", groups, [c for c in expected if not c.negated and c.kind is ComponentKind.CLOSURE]),
        ("negated", negated, [c for c, _ in negations(plan.pattern)]),
    ):
        if sorted(c.variable for c in in_tree) != sorted(c.variable for c in own) or set(in_tree) != set(own):
            names = ", ".join(sorted(component.variable for component in in_tree))
            raise IllFormedPlan(f"the {what} components of the pattern stand in the tree once each, not: {names}")


_MEANING = {Join.SEQ: Sequence, Join.CONJ: Conjunction}


def _check_structure(plan: TreePlan) -> None:
    """Two events are joined by what joins them in the pattern, and a sequence in its order."""
    paths = dict(_paths(plan.pattern, ()))
    for node in walk(plan.root):
        if not isinstance(node, JoinNode | UnionNode):
            continue
        expected = Disjunction if isinstance(node, UnionNode) else _MEANING[node.kind]
        sides = [variables_bound(child) for child in children(node)]
        for number, left in enumerate(sides):
            for right in chain.from_iterable(sides[number + 1 :]):
                for name in left:
                    kind, ordered = _meeting(paths[name], paths[right])
                    if kind is not expected or (kind is Sequence and not ordered):
                        raise IllFormedPlan(f"`{name}` and `{right}` meet otherwise in the pattern")


_Path = tuple[tuple[type, int], ...]


def _paths(pattern: Pattern, above: _Path) -> Iterator[tuple[str, _Path]]:
    if isinstance(pattern, Leaf):
        yield pattern.component.variable, above
        return
    for number, part in enumerate(pattern.parts):
        yield from _paths(part, (*above, (type(pattern), number)))


def _meeting(left: _Path, right: _Path) -> tuple[type, bool]:
    """The kind of node in which two components meet, and whether it names them in this order."""
    return next((kind, place < other) for (kind, place), (_, other) in zip(left, right, strict=False) if place != other)


# What is tested ---------------------------------------------------------------------------------------------------


def _check_tests(node: Node, present: frozenset[str]) -> None:
    known = frozenset(variables_bound(node))
    for clause in tests_of(node):
        if (variables(clause) & present) - known:
            raise IllFormedPlan(f"a test needs an event that is not bound yet: {clause}")
    if isinstance(node, LeafNode | GroupNode) and any(
        variables(clause) - {node.scan.component.variable, ""} for clause in node.scan.mask
    ):
        raise IllFormedPlan(f"the mask of `{node.scan.component.variable}` names another variable")


def _check_sides(node: Node) -> None:
    if isinstance(node, JoinNode):
        for clause in node.equalities:
            _check_equality(clause, variables_bound(node.left), variables_bound(node.right))


def _check_equality(clause: Clause, one: Iterable[str], other: Iterable[str]) -> None:
    """What is looked up is one value of each side."""
    named = [variables(value) for value in equated(clause) or ()]
    ways = ((one, other), (other, one))
    if (
        not named
        or not all(named)
        or not any(all(names <= {*side} for names, side in zip(named, way, strict=False)) for way in ways)
    ):
        raise IllFormedPlan(f"an equality is of one value on each side: {clause}")


def _check_looked_up(plan: TreePlan) -> None:
    """Events of a negated class or a closure are looked up by conditions on one of them and on what is bound."""
    bound = variables_bound(plan.root)
    groups = (site for group in plan.groups for site in (group.site, *group.leaves))
    for site in (*plan.absences, *groups):
        for clause in site.equalities:
            if clause not in site.conditions:
                raise IllFormedPlan(f"`{site.name}` is looked up by what is no condition on it: {clause}")
            _check_equality(clause, (site.scan.component.variable,), {*bound} - {site.scan.component.variable})


def _check_absences(node: Node, present: frozenset[str]) -> None:
    if isinstance(node, NegNode):
        _check_absence(node.absence, node.child, present)
        _check_bounds(node.absence.gap.before, node.absence.gap.after, node.child, present)
    if isinstance(node, JoinNode):
        for side, absence in node.pushed:
            _check_absence(absence, node.left if side is Side.LEFT else node.right, present)
            gap, left, right = absence.gap, variables_bound(node.left), variables_bound(node.right)
            if not gap.before or not gap.after or not {*gap.before} <= {*left} or not {*gap.after} <= {*right}:
                raise IllFormedPlan(f"`{absence.name}` does not stand between the sides of its join")
            if len(absence.scans) > 1:
                raise IllFormedPlan(f"`{absence.name}` is a pair, which is no bound beside one side of a join")


def _check_absence(absence: Site, side: Node, present: frozenset[str]) -> None:
    for clause in absence.conditions:
        if (variables(clause) & present) - {*variables_bound(side)}:
            raise IllFormedPlan(f"what forbids `{absence.name}` is not known there: {clause}")


def _check_group_members(plan: TreePlan, present: frozenset[str]) -> None:
    """Conditions on members may name the groups of earlier closures, which may be of another branch."""
    grouped = {group.scan.component.variable for group in plan.groups}
    for group in plan.groups:
        _check_bounds(group.gap.before, group.gap.after, group.child, present - grouped)
        for clause in (*group.members, *(clause for site in group.leaves for clause in site.conditions)):
            if (variables(clause) & present) - grouped - {*variables_bound(group.child)}:
                raise IllFormedPlan(f"a member is compared with an event that is not bound yet: {clause}")


def _check_bounds(before: tuple[str, ...], after: tuple[str, ...], child: Node, present: frozenset[str]) -> None:
    known = {*variables_bound(child)}
    if not {*before, *after} <= known:
        raise IllFormedPlan("the neighbours are not bound yet")
    if (not before or not after) and not present <= known:
        raise IllFormedPlan("the window bounds an end of whole records only")


def _check_branches(node: Node, *, inside: bool) -> None:
    """Records of another branch do not see a test, so that it must hold of them."""
    if inside:
        for clause in tests_of(node):
            if not holds_when_absent(clause):
                raise IllFormedPlan(f"another branch would have to test this: {clause}")
    for child in children(node):
        _check_branches(child, inside=inside or isinstance(node, UnionNode))


def _check_complete(query: BoundQuery, plan: TreePlan) -> None:
    """Each condition is tested once, unless the key implies it or every match lacks one of its variables.

    What a rewrite merged has the conditions it was given. A rewrite may drop what no match of its pattern can violate;
    whether it may is judged here by the pattern alone, and not by what the rewrite says of itself.
    """
    merged = {name for alias in plan.aliases for name in (alias.variable, alias.of)}

    def check_tested(clauses: Iterable[Clause], tested: tuple[Clause, ...], of: str | None = None) -> None:
        for clause in clauses:
            if implied_by_key(clause, plan.key) or variables(clause) & merged:
                continue
            times = tested.count(clause)
            if times > 1 or (not times and not holds_by_absence(clause, plan.pattern, of)):
                where = "" if of is None else f" of `{of}`"
                raise IllFormedPlan(f"tested {times} times{where}: {clause}")

    check_tested(query.conditions.positive, (*chain.from_iterable(map(tests_of, walk(plan.root))), *plan.after))
    for absence in plan.absences:
        name = absence.scan.component.variable
        check_tested(query.conditions.negative.get(name, ()), (*absence.scan.mask, *absence.conditions), name)
    for group in plan.groups:
        name = group.scan.component.variable
        check_tested(query.conditions.members.get(name, ()), (*group.scan.mask, *group.members), name)


# Absence ----------------------------------------------------------------------------------------------------------


def holds_when_absent(clause: Clause) -> bool:
    """Whether a clause is true of a match in which all its variables are absent (the semantics page §2, Missing)."""
    # What is said of each `a[i]` is true where there is none.
    return iterated(clause) is not None or any(map(_literal_holds, clause.literals))


def _literal_holds(literal: Literal) -> bool:
    match literal:
        case Comparison(_, left, right) | Contains(left, right, _):
            return _is_missing(left) or _is_missing(right)
        case Among(operand):
            return _is_missing(operand)
        case IsNull(operand, negated):
            return not negated and _is_missing(operand)
        case Truth(value):
            return value
        case Agrees():
            return True


def _is_missing(value: Value) -> bool:
    """Missing spreads through arithmetic; a count of nothing is 0."""
    match value:
        case Attribute():
            return True
        case Aggregate(function=function, attribute=attribute):
            return function != "count" and attribute is not None
        case Negative(operand):
            return _is_missing(operand)
        case Arithmetic(_, left, right):
            return _is_missing(left) or _is_missing(right)
        case _:
            return False
