"""Merges two components of different branches into one: the conditions after that, and the names in a match.

A match takes one of the two branches. So every condition must say of the one component what it said of the two: where
it names one of them, it was true by absence (the semantics page §2, Missing) of the other branch's matches, and must
stay true of them now that the component is there. It does when it names a variable that is still absent there, or when
the other component has the same condition anyway.

What becomes of a clause of P₊ when `a` of one branch and `b` of the other become one, where `p` stands beside `a` only,
`q` beside `b` only, and `d` around both:

- `d.x > 1`, `p.x IS NOT NULL`: it stays.
- `p.x = q.x`, `p.x > 1 OR q.x > 1`, `a.x = q.x`, `a.x = b.x`, `p.x + q.x = d.x`: it goes. Every match lacks what one of
  the branches has, and either absence makes it true; a match that takes neither branch lacks both, and what is true by
  absence stays true where more is absent.
- `a.x = p.x`: it stays, since `p` is absent where `a` stands for `b`. `b.x = q.x` becomes `a.x = q.x`.
- `a.x > 1` and `b.x > 1`, `a.x = d.x` and `b.x = d.x`: one of the two stays, since both components have it.
- `a.x > 1` alone, `a.x = d.x` alone: there is no merge, since it would be tested on the other branch's matches as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from kleene.optimize.rewrites.renaming import meaning, meanings, renamed
from kleene.optimize.trees.logical import Logical
from kleene.pattern.absence import presences, truth
from kleene.pattern.expressions import Clause, variables
from kleene.pattern.nodes import Pattern, components
from kleene.plan.trees import Alias


@dataclass(frozen=True)
class Merging:
    """Two variables, the first of which stays, and the rest of the branch of each."""

    kept: str
    merged: str
    beside_kept: Pattern
    beside_merged: Pattern

    @cached_property
    def only_kept(self) -> frozenset[str]:
        """The variables that only the kept component's branch has after the merge."""
        return _names(self.beside_kept)

    @cached_property
    def only_merged(self) -> frozenset[str]:
        return _names(self.beside_merged)


class _Differs(Exception):
    """A condition that one component cannot satisfy for both."""


def merged(logical: Logical, merging: Merging) -> Logical | None:
    """The same conditions about one component instead of two, in the same pattern; None if that is impossible."""
    try:
        return replace(
            logical,
            positive=_of_both(logical.positive, merging),
            negative=_by_variable(logical.negative, merging),
            members=_by_variable(logical.members, merging),
            aliases=_aliases(logical.aliases, merging),
        )
    except _Differs:
        return None


def _names(pattern: Pattern) -> frozenset[str]:
    return frozenset(component.variable for component in components(pattern))


# Conditions --------------------------------------------------------------------------------------------------------


def _of_both(clauses: Iterable[Clause], merging: Merging) -> tuple[Clause, ...]:
    """Conditions on the matches of either branch."""
    left: list[Clause] = []
    of_kept: list[Clause] = []
    of_merged: list[Clause] = []
    without_kept = merging.only_kept | {merging.kept}
    without_merged = merging.only_merged | {merging.merged}
    either = without_kept | without_merged
    for clause in clauses:
        tested = variables(clause)
        if tested.isdisjoint(either):
            left.append(clause)
            continue
        named = tested & {merging.kept, merging.merged}
        if truth(clause, without_kept) and truth(clause, without_merged):
            continue  # it compares the branches with each other, and no match has both
        if not named:
            left.append(clause)
        elif named == {merging.kept} and truth(clause, without_kept):
            left.append(clause)
            of_kept.append(clause)
        elif named == {merging.merged} and truth(clause, without_merged):
            of_merged.append(renamed(clause, {merging.merged: merging.kept}))
        else:
            raise _Differs
    _check_holds_for_both(of_kept, of_merged, merging.only_kept)
    _check_holds_for_both(of_merged, of_kept, merging.only_merged)
    known = meanings(of_kept)
    return (*left, *(clause for clause in of_merged if meaning(clause) not in known))


def _check_holds_for_both(clauses: Iterable[Clause], others: Iterable[Clause], absent: frozenset[str]) -> None:
    """Checks that each clause holds in the other branch too: true where `absent` are absent, or one of `others`."""
    other_meanings = meanings(others)
    if not all(truth(clause, absent) or meaning(clause) in other_meanings for clause in clauses):
        raise _Differs


def _by_variable(groups: Mapping[str, tuple[Clause, ...]], merging: Merging) -> dict[str, tuple[Clause, ...]]:
    """Conditions on negated events or members, by their variable, which may belong to one branch only."""
    conditions: dict[str, tuple[Clause, ...]] = {}
    for name, clauses in groups.items():
        if name in merging.only_kept:
            conditions[name] = _unnamed(clauses, merging.merged, merging.only_merged)
        elif name in merging.only_merged:
            left = _unnamed(clauses, merging.kept, merging.only_kept)
            conditions[name] = tuple(renamed(clause, {merging.merged: merging.kept}) for clause in left)
        else:
            conditions[name] = _of_both(clauses, merging)
    return conditions


def _unnamed(clauses: Iterable[Clause], other: str, beside: frozenset[str]) -> tuple[Clause, ...]:
    """The conditions of one branch, without those that name the other's component and so are true by absence."""
    naming = [clause for clause in clauses if other in variables(clause)]
    if not all(truth(clause, beside | {other}) for clause in naming):
        raise _Differs
    return tuple(clause for clause in clauses if clause not in naming)


# Names -------------------------------------------------------------------------------------------------------------


def _aliases(aliases: Iterable[Alias], merging: Merging) -> tuple[Alias, ...]:
    """The aliases by which a match shows the right name: each lists variables that only matches with that name bind."""
    earlier = [_after(alias, merging) for alias in aliases]
    own = [alias for alias in earlier if alias.of == merging.merged]
    all_aliases = [replace(alias, of=merging.kept) if alias in own else alias for alias in earlier]
    all_aliases.append(Alias(merging.merged, merging.kept, _identifying(merging.beside_merged, own)))
    if not all(alias.when for alias in all_aliases):
        raise _Differs
    return tuple(all_aliases)


def _after(alias: Alias, merging: Merging) -> Alias:
    """An alias after the merge: the kept component still identifies it only if both components did."""
    both = {merging.kept, merging.merged}
    names_both = both <= {*alias.when}
    when = (name for name in alias.when if name not in both or (names_both and name == merging.kept))
    return replace(alias, when=tuple(when))


def _identifying(part: Pattern, aliases: Iterable[Alias]) -> tuple[str, ...]:
    """The variables of a part that are present only where a component beside it is shown under its own name."""
    elsewhere = {name for alias in aliases for name in alias.when}
    present = presences(part, [c.variable for c in components(part) if not c.negated])
    otherwise = {name for names in present if not elsewhere.isdisjoint(names) for name in names}
    identifying = [c.variable for c in components(part) if not c.negated and c.variable not in otherwise]
    if not all(set(identifying) & names for names in present if elsewhere.isdisjoint(names)):
        raise _Differs
    return tuple(identifying)
