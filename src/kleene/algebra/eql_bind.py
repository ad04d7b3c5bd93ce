"""From the pattern and the qualifications of EQL to nodes of the algebra (semantics §4 EQL).

Each conjunct stands at one operator. In FILTER it is φ, otherwise θ, of the `;` that binds the last of its aliases. One
that names only the first operand of a chain, or lies inside one branch of `|`, filters there; one that names only what
one iteration binds is that iteration's own. One that names an alias of an exception is a part of its λ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from kleene.algebra.detections import (
    Delay,
    Detection,
    DetectionFilter,
    DetectionSource,
    DetectionUnion,
    Expiry,
    Failing,
    Iteration,
    NextDetection,
    Unless,
    aliases,
    last_aliases,
)
from kleene.algebra.eql_names import EqlScopes
from kleene.errors import ExceptionCondition, ReservedName, Span, TooComplex, VariableUsedTwice
from kleene.lang import eql_tree, tree
from kleene.pattern.bind_pattern import MAX_COMPONENTS, RESULT_COLUMNS
from kleene.pattern.clock import bind_window
from kleene.pattern.expressions import Clause, variables
from kleene.pattern.nodes import Component, ComponentKind, EventClass
from kleene.pattern.normal_form import AllOf, clauses_of
from kleene.pattern.schema import Schema


@dataclass(frozen=True, slots=True)
class Conjunct:
    """A condition that is tested at one place, and the aliases that it names.

    filters   whether it stands in FILTER
    expiry    of OCCURS WITHIN by itself: the steps that its aliases may take together
    """

    clauses: tuple[Clause, ...]
    names: frozenset[str]
    filters: bool
    span: Span
    expiry: int | None = None


@dataclass(frozen=True, slots=True)
class AliasComponents:
    """The components of a pattern's aliases, and where each is written."""

    components: dict[str, Component]
    spans: dict[str, Span]
    # Those that only some detections bind: they stand in one branch of `|`.
    sometimes_absent: frozenset[str]


def bind_aliases(pattern: eql_tree.EventPattern, classes: Callable[[tree.TypeName], EventClass]) -> AliasComponents:
    """A component for each source: repeated ones are closures, those of exceptions must not occur."""
    components: dict[str, Component] = {}
    spans: dict[str, Span] = {}
    absent: set[str] = set()

    def add(node: eql_tree.EventPattern, kind: ComponentKind, *, negated: bool, branch: bool) -> None:
        match node:
            case eql_tree.EventSource():
                at = node.span if node.alias is None else node.alias_span
                _check_alias(node, at, spans)
                most = None if kind is ComponentKind.KLEENE else 1
                components[node.name] = Component(
                    node.name, (classes(node.type),), kind, 1, most, negated=negated, position=len(components)
                )
                spans[node.name] = at
                absent.update({node.name} if branch else ())
            case eql_tree.NextChain(parts):
                for part in parts:
                    add(part, kind, negated=negated, branch=branch)
            case eql_tree.EitherPattern(parts):
                for part in parts:
                    add(part, kind, negated=negated, branch=True)
            case eql_tree.Iterated(operand):
                add(operand, ComponentKind.KLEENE, negated=negated, branch=branch)
            case eql_tree.Excepted(operand, exception):
                add(operand, kind, negated=negated, branch=branch)
                # What an exception is made of is bound once for each time that it occurs.
                add(exception, ComponentKind.SINGLE, negated=True, branch=False)
            case eql_tree.Delayed(operand):
                add(operand, kind, negated=negated, branch=branch)

    add(pattern, ComponentKind.SINGLE, negated=False, branch=False)
    if len(components) > MAX_COMPONENTS:
        raise TooComplex(f"this pattern has more than {MAX_COMPONENTS} sources", pattern.span)
    return AliasComponents(components, spans, frozenset(absent))


def _check_alias(node: eql_tree.EventSource, at: Span, spans: dict[str, Span]) -> None:
    if node.name in spans:
        hint = "give each place its own name" if node.alias is not None else f"give each an alias: `{node.name} T1`"
        raise VariableUsedTwice(f"alias `{node.name}` is used twice", at, hint=hint)
    if node.name in RESULT_COLUMNS:
        raise ReservedName(f"`{node.name}` is a column of every result", at, hint=f"try `{node.name}_`")


def bind_conjuncts(qualifications: Iterable[eql_tree.Qualification], scopes: EqlScopes) -> list[Conjunct]:
    """`FILTER(p and q)` is two filters, and so is any other AND."""
    return [
        conjunct
        for each in qualifications
        for part in _operands_of_and(each.condition)
        for conjunct in _bound(part, scopes, filters=each.filters)
    ]


def _operands_of_and(node: tree.Expression) -> Iterator[tree.Expression]:
    if isinstance(node, tree.And):
        for operand in node.operands:
            yield from _operands_of_and(operand)
    else:
        yield node


def _bound(node: tree.Expression, scopes: EqlScopes, *, filters: bool) -> Iterator[Conjunct]:
    condition = scopes.condition(node)
    if isinstance(node, tree.OccursWithin):
        # One test of all its aliases: each pair of them by itself would be tested too early.
        clauses = clauses_of(condition, node.span)
        yield Conjunct(clauses, frozenset(each.name for each in node.names), filters, node.span, scopes.steps(node))
        return
    # A chain of equalities is one for each pair; anything else that is no AND is tested as a whole.
    is_chain = isinstance(node, tree.EqualityChain)
    for part in condition.parts if isinstance(condition, AllOf) and is_chain else (condition,):
        clauses = clauses_of(part, node.span)
        if clauses:
            named = frozenset(name for clause in clauses for name in variables(clause))
            yield Conjunct(clauses, named, filters, node.span)


@dataclass(frozen=True, slots=True)
class _Bound:
    """A node, and the conjuncts of its exceptions that name aliases which nothing below it has bound.

    carried   by number of the exception: the aliases of the runs whose events its failed detections have
    """

    node: Detection
    names: frozenset[str]
    waiting: dict[int, list[Conjunct]] = field(default_factory=dict)
    carried: dict[int, frozenset[str]] = field(default_factory=dict)


@dataclass(slots=True)
class PatternBinder:
    """Binds the pattern of one query, with its conjuncts."""

    schema: Schema
    components: dict[str, Component]
    params: dict[str, object]
    checking: bool
    _exceptions: int = 0

    def bind(self, pattern: eql_tree.EventPattern, conjuncts: Sequence[Conjunct]) -> Detection:
        bound = self._bound(pattern, list(conjuncts))
        for waiting in bound.waiting.values():
            for conjunct in waiting:
                raise ExceptionCondition(
                    "an exception can only be compared with what was bound before it",
                    conjunct.span,
                    hint="name an alias that stands before it in a `;`, or one of what it is an exception to",
                )
        return bound.node

    def _bound(self, pattern: eql_tree.EventPattern, conjuncts: list[Conjunct]) -> _Bound:
        """A pattern with conjuncts that name an alias of it, or none."""
        match pattern:
            case eql_tree.EventSource():
                source = DetectionSource(self.components[pattern.name])
                return _Bound(_filtered(source, conjuncts), frozenset({pattern.name}))
            case eql_tree.NextChain(parts):
                return self._chain(parts, conjuncts)
            case eql_tree.EitherPattern(parts):
                return self._either(parts, conjuncts)
            case eql_tree.Iterated(operand):
                return self._iterated(operand, conjuncts)
            case eql_tree.Excepted():
                return self._excepted(pattern, conjuncts)
            case eql_tree.Delayed(operand, delay):
                bound = self._bound(operand, conjuncts)
                return replace(bound, node=Delay(bound.node, self._steps(delay)))

    def _steps(self, delay: tree.Duration) -> int:
        within = tree.Within(delay, True, span=delay.span)
        return bind_window(within, self.schema.clock, self.params).size

    def _chain(self, parts: tuple[eql_tree.EventPattern, ...], conjuncts: list[Conjunct]) -> _Bound:
        inside: list[list[Conjunct]] = [[] for _ in parts]
        own: list[list[Conjunct]] = [[] for _ in parts]
        names = [_names(part) for part in parts]
        for conjunct in conjuncts:
            excepted = _excepting(parts, conjunct)
            if excepted is not None:
                inside[excepted].append(conjunct)
                continue
            last = max((place for place, known in enumerate(names) if known & conjunct.names), default=0)
            is_within = last == 0 or _is_own(parts[last], conjunct.names)
            (inside if is_within else own)[last].append(conjunct)
        bound = self._bound(parts[0], inside[0])
        bound = replace(bound, node=_expiring(bound.node, [each for later in own for each in later]))
        for place, (part, below, here) in enumerate(zip(parts[1:], inside[1:], own[1:], strict=True), 1):
            later = [each for conjuncts in own[place + 1 :] for each in conjuncts]
            right = self._bound(part, below)
            right = replace(right, node=_expiring(right.node, later))
            bound = _next(bound, right, here, later)
        return bound

    def _either(self, parts: tuple[eql_tree.EventPattern, ...], conjuncts: list[Conjunct]) -> _Bound:
        inside: list[list[Conjunct]] = [[] for _ in parts]
        own = []
        for conjunct in conjuncts:
            excepted = _excepting(parts, conjunct)
            places = [place for place, part in enumerate(parts) if _names(part) & conjunct.names]
            if excepted is not None or len(places) == 1:
                inside[places[0] if excepted is None else excepted].append(conjunct)
            else:
                own.append(conjunct)
        bound = [self._bound(part, below) for part, below in zip(parts, inside, strict=True)]
        union = DetectionUnion(tuple(each.node for each in bound))
        return _Bound(
            _filtered(union, own),
            frozenset().union(*(each.names for each in bound)),
            {number: known for each in bound for number, known in each.waiting.items()},
            {number: known for each in bound for number, known in each.carried.items()},
        )

    def _iterated(self, operand: eql_tree.EventPattern, conjuncts: list[Conjunct]) -> _Bound:
        inside = [each for each in conjuncts if _excepting([operand], each) is not None or _is_inner(operand, each)]
        own = [each for each in conjuncts if each not in inside]
        bound = self._bound(operand, inside)
        first_of, condition = _split(own)
        known = tuple(number for number, waiting in bound.waiting.items() if not waiting)
        expiry = _expiries(own, bound.names, bound.node)
        return replace(bound, node=Iteration(bound.node, first_of, condition, known, expiry))

    def _excepted(self, pattern: eql_tree.Excepted, conjuncts: list[Conjunct]) -> _Bound:
        of_exception = _names(pattern.exception)
        of_operand = _names(pattern.operand)
        inner = [each for each in conjuncts if each.names & of_exception and each.names <= of_exception]
        both = [each for each in conjuncts if each.names & of_exception and not each.names <= of_exception]
        others = [each for each in conjuncts if not each.names & of_exception]
        operand = self._bound(pattern.operand, others)
        exception = self._bound(pattern.exception, inner)
        for untested in exception.waiting.values():
            for conjunct in untested:
                raise ExceptionCondition(
                    "this names an alias that is not bound where the exception occurs", conjunct.span
                )
        number, self._exceptions = self._exceptions, self._exceptions + 1
        here = [each for each in both if each.names <= of_exception | of_operand]
        before = [each for each in both if not each.names & of_operand]
        mixed = [each for each in both if each not in here and each not in before]
        if mixed or (here and before):
            raise ExceptionCondition(
                "an exception is compared either with what it is an exception to, or with what was bound before",
                (mixed or before)[0].span,
                hint="compare it with one of the two",
            )
        clauses = tuple(clause for each in here for clause in each.clauses)
        node = Unless(operand.node, exception.node, number, clauses, bool(before))
        waiting = operand.waiting if here else {**operand.waiting, number: before}
        carried = operand.carried if here else {**operand.carried, number: frozenset(aliases(exception.node))}
        return _Bound(node, operand.names | of_exception, waiting, carried)


def _next(left: _Bound, right: _Bound, conjuncts: Sequence[Conjunct], later: Sequence[Conjunct]) -> _Bound:
    """`E1 ; E2` with the conjuncts that stand there; `later`: those of what follows in the chain."""
    failing, waiting, carried = [], dict(left.waiting), dict(left.carried)
    bound_here = frozenset(aliases(left.node))
    for number, conditions in right.waiting.items():
        known = bound_here | right.carried[number]
        here = [each for each in conditions if each.names <= known]
        rest = [each for each in conditions if each not in here]
        clauses = tuple(clause for each in here for clause in each.clauses)
        failing.append(Failing(number, clauses, not rest))
        waiting[number] = rest
        carried[number] = known
    first_of, condition = _split(conjuncts)
    expiry = _expiries(conjuncts, bound_here, right.node) + _doomed(later, bound_here)
    node = NextDetection(left.node, right.node, first_of, condition, tuple(failing), expiry)
    return _Bound(node, left.names | right.names, waiting, carried)


def _split(conjuncts: Iterable[Conjunct]) -> tuple[tuple[Clause, ...], tuple[Clause, ...]]:
    """φ and θ."""
    first_of = tuple(clause for each in conjuncts if each.filters for clause in each.clauses)
    return first_of, tuple(clause for each in conjuncts if not each.filters for clause in each.clauses)


def _filtered(node: Detection, conjuncts: Iterable[Conjunct]) -> Detection:
    clauses = tuple(clause for each in conjuncts for clause in each.clauses)
    return DetectionFilter(node, clauses) if clauses else node


def _expiries(conjuncts: Iterable[Conjunct], bound: frozenset[str], awaited: Detection) -> tuple[Expiry, ...]:
    """When OCCURS WITHIN can no longer hold: an alias that ends what is awaited has not occurred yet."""
    lasts = last_aliases(awaited)
    expiries = []
    for each in conjuncts:
        later = [lasts[name] for name in each.names if name in lasts]
        begun = tuple(sorted(each.names & bound))
        if each.expiry is not None and later and begun:
            expiries.append(Expiry(begun, each.expiry + max(later)))
    return tuple(expiries)


def _doomed(later: Iterable[Conjunct], bound: frozenset[str]) -> tuple[Expiry, ...]:
    """When an OCCURS WITHIN further on in the chain can no longer hold: what it awaits ends after what comes next."""
    known = ((tuple(sorted(each.names & bound)), each.expiry) for each in later)
    return tuple(Expiry(begun, most) for begun, most in known if begun and most is not None)


def _expiring(node: Detection, later: Sequence[Conjunct]) -> Detection:
    """An iteration whose runs an OCCURS WITHIN further on in the chain bounds, too."""
    if isinstance(node, Iteration):
        return replace(node, expiry=node.expiry + _doomed(later, frozenset(aliases(node))))
    if isinstance(node, Delay | DetectionFilter | Unless):
        return replace(node, operand=_expiring(node.operand, later))
    return node


def _names(pattern: eql_tree.EventPattern) -> frozenset[str]:
    """All aliases below a pattern, those of exceptions too."""
    return frozenset(node.name for node in tree.walk(pattern) if isinstance(node, eql_tree.EventSource))


def _is_own(part: eql_tree.EventPattern, names: frozenset[str]) -> bool:
    """Whether conjuncts that name these aliases belong inside an operand that is not the first of its chain: they lie
    in one branch of `|`, in one iteration, or in a chain under `\\` or `@`."""
    while isinstance(part, eql_tree.Delayed | eql_tree.Excepted):
        part = part.operand
    if isinstance(part, eql_tree.EitherPattern):
        return bool(names) and any(names <= _names(branch) for branch in part.parts)
    if isinstance(part, eql_tree.Iterated | eql_tree.NextChain):
        return bool(names) and names <= _names(part)
    return False


def _is_inner(operand: eql_tree.EventPattern, conjunct: Conjunct) -> bool:
    """Whether a conjunct names only what an iteration inside an iterated operand binds."""
    inner = (node for node in tree.walk(operand) if isinstance(node, eql_tree.Iterated))
    return bool(conjunct.names) and any(conjunct.names <= _names(node) for node in inner)


def _excepting(parts: Sequence[eql_tree.EventPattern], conjunct: Conjunct) -> int | None:
    """The part with the exception that a conjunct names an alias of; None when it names none."""
    for place, part in enumerate(parts):
        exceptions = (node for node in tree.walk(part) if isinstance(node, eql_tree.Excepted))
        if any(conjunct.names & _names(node.exception) for node in exceptions):
            return place
    return None
