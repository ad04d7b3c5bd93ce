"""Equivalence tests (SASE §2.2.1): `[id]` means that all components that have `id` agree on it.

Equality is transitive, so where the first component always has the attribute it serves as the anchor of all others:
`[symbol]` becomes `a[i].symbol = a[1].symbol`, `b.symbol = a[1].symbol` (SASE+ §3.2 step 2). Where a component may be
absent or may lack the attribute, a comparison with it is true, and only the comparison of all pairs says enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import TYPE_CHECKING

from kleene.errors import ClosureCondition, UnknownAttribute, did_you_mean
from kleene.lang import tree
from kleene.pattern.closures import is_closure, takes_first
from kleene.pattern.expressions import INVERSE, Agrees, Attribute, Comparison, Literal, Scope, Which
from kleene.pattern.nodes import Component, ComponentKind, components

if TYPE_CHECKING:
    from kleene.pattern.bind_expression import Scopes


def expand(scopes: Scopes, item: tree.EquivalenceItem, *, negate: bool = False) -> Iterator[Literal]:
    """The comparisons that an equivalence test stands for; negated, their inverses."""
    owners = [c for c in scopes.components.values() if scopes.attribute_type(c, item.attribute) is not None]
    if not owners:
        known = {name for c in scopes.components.values() for name in scopes.known_attributes(c)}
        raise UnknownAttribute(
            f"no component has an attribute `{item.attribute}`", item.span, hint=did_you_mean(item.attribute, known)
        )
    # Negated, equality is not transitive, so that one component must speak for all.
    unanchored = negate and _anchor(scopes, owners, item.attribute) is None
    lonely = (
        c for c in owners if is_closure(c) and (unanchored or not _has_company(scopes, c, owners, item.attribute))
    )
    closure = next(lonely, None)
    if closure is not None:
        raise ClosureCondition(
            f"some match has no component that tells the members of `{closure.variable}` their `{item.attribute}`",
            item.span,
            hint=f"write `{closure.variable.casefold()}[]`, or compare with a component that is there whenever it is",
        )
    for literal in _pairs(scopes, owners, item.attribute):
        if isinstance(literal, Comparison):
            scopes.check_comparable("=", literal.left, literal.right, item.span)
        yield scopes.placed(_inverted(literal) if negate else literal, item.span)
    if item.value is not None:
        value = scopes.value(item.value)
        for component in owners:
            for attribute in _identifiers(scopes, component, item.attribute):
                scopes.check_comparable("=", attribute, value, item.span)
                literal = Comparison("!=" if negate else "=", attribute, value)
                yield scopes.placed(literal, item.span)


def _inverted(literal: Literal) -> Literal:
    if isinstance(literal, Comparison):
        return Comparison(INVERSE[literal.operator], literal.left, literal.right)
    raise ClosureCondition("NOT […] cannot be tested on a closure whose types lack the attribute")


def _identifiers(scopes: Scopes, component: Component, attribute: str) -> list[Attribute]:
    """The identifiers of a component in a comparison: `x`; `a[1]` and `a[i]`; each member of a closure."""
    kind = scopes.attribute_type(component, attribute)
    assert kind is not None
    which = {
        ComponentKind.SINGLE: [Which.SINGLE],
        ComponentKind.KLEENE: [Which.FIRST, Which.CURRENT],
        ComponentKind.CLOSURE: [Which.MEMBER],
    }[component.kind]
    return [Attribute(component.variable, place, attribute, kind) for place in which]


def _pairs(scopes: Scopes, owners: list[Component], attribute: str) -> Iterator[Literal]:
    for component in owners:
        if component.kind is ComponentKind.KLEENE:
            yield _within(scopes, component, attribute)
    anchor = _anchor(scopes, owners, attribute)
    for earlier, later in combinations(owners, 2):
        if earlier.negated and later.negated and later.preceded_by is not earlier:
            continue
        if anchor not in (None, earlier, later) and not _before(earlier, later, anchor):
            continue
        if (is_closure(earlier) or is_closure(later)) and not (takes_first(earlier) or takes_first(later)):
            continue  # a closure's members agree with its company, and that with other closures and negated events
        yield from _across(scopes, earlier, later, attribute)


def _before(earlier: Component, later: Component, anchor: Component | None) -> bool:
    """Whether two components come before their anchor, so that a run has to compare them with each other."""
    if anchor is None or earlier.negated or later.negated:
        return False
    return max(earlier.position, later.position) < anchor.position


def _anchor(scopes: Scopes, owners: list[Component], attribute: str) -> Component | None:
    return next((c for c in owners if _always_there(scopes, c, attribute)), None)


def _has_company(scopes: Scopes, closure: Component, owners: list[Component], attribute: str) -> bool:
    """Whether each alternative with a closure has another component that surely has the attribute."""
    certain = {c for c in owners if takes_first(c) and scopes.always_has(c, attribute)}
    together = [set(components(pattern)) for pattern in scopes.alternatives]
    return all(certain & present for present in together if closure in present)


def _always_there(scopes: Scopes, component: Component, attribute: str) -> bool:
    present = not component.negated and component.variable not in scopes.sometimes_absent
    return present and component.kind is not ComponentKind.CLOSURE and scopes.always_has(component, attribute)


def _within(scopes: Scopes, component: Component, attribute: str) -> Literal:
    """Every event of a Kleene variable agrees with those before it."""
    first, current = _identifiers(scopes, component, attribute)
    if scopes.always_has(component, attribute):
        return Comparison("=", current, first)
    return Agrees(current, component.variable, Scope.SO_FAR, attribute)


def _across(scopes: Scopes, earlier: Component, later: Component, attribute: str) -> Iterator[Literal]:
    """Two components agree. Where `a[1]` always has the attribute it speaks for all of `a`.

    A negated event is looked at when all positive ones are known, so it counts as the later of the two; so does a
    closure's member where the other is of a list.
    """
    if earlier.negated or (is_closure(earlier) and later.kind is ComponentKind.KLEENE):
        earlier, later = later, earlier
    rights = _identifiers(scopes, later, attribute)
    if later.kind is ComponentKind.KLEENE and scopes.always_has(later, attribute):
        rights = rights[:1]
    for right in rights:
        if earlier.kind is ComponentKind.KLEENE and not scopes.always_has(earlier, attribute):
            yield Agrees(right, earlier.variable, Scope.ALL, attribute)
        else:
            yield Comparison("=", right, _identifiers(scopes, earlier, attribute)[0])
