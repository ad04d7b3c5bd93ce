"""A query in EQL: parsed once, bound to as many schemas as there are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from kleene.algebra.detections import (
    FIRST_MOMENT,
    LAST_MOMENT,
    Detection,
    DetectionFilter,
    DetectionSource,
    DetectionUnion,
    Iteration,
    NextDetection,
    Unless,
    aliases,
    operands,
    walk_detections,
)
from kleene.algebra.eql_bind import AliasComponents, PatternBinder, bind_aliases, bind_conjuncts
from kleene.algebra.eql_names import EqlScopes, SelectScopes
from kleene.errors import AbsentBranch, QueryWarning, Span, UnknownSpelling
from kleene.lang import format_query, tree
from kleene.lang.eql_tree import EqlQuery as EqlQueryTree
from kleene.pattern.classes import ClassBinder
from kleene.pattern.conditions import Conditions
from kleene.pattern.expressions import Aggregate, Attribute, Clause, IsNull, Literal, Which, Whole, references
from kleene.pattern.nodes import Leaf, Sequence
from kleene.pattern.query import BoundQuery
from kleene.pattern.returns import ReturnColumn, bind_returns
from kleene.pattern.schema import Schema
from kleene.pattern.written_query import WrittenQuery


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundEqlQuery(BoundQuery):
    """A query in EQL on a schema. Its results are matches: events by alias, lists of them where one is repeated."""

    root: Detection

    @property
    def sources(self) -> tuple[DetectionSource, ...]:
        """The streams that it reads, those of exceptions too."""
        return tuple(node for node in walk_detections(self.root) if isinstance(node, DetectionSource))

    def _clauses(self) -> list[Clause]:
        groups = [event_class.predicate for component in self.components for event_class in component.classes]
        return [clause for group in groups for clause in group] + list(clauses_of_detection(self.root))

    @property
    def columns_tested(self) -> tuple[str, ...]:
        """The columns that conditions read."""
        every = (each for clause in self._clauses() for each in references(clause))
        named = (each.attribute for each in every if isinstance(each, Attribute))
        return tuple(dict.fromkeys(name for name in named if name not in (FIRST_MOMENT, LAST_MOMENT)))


def clauses_of_detection(root: Detection) -> Iterator[Clause]:
    """All conditions of a node and of those below."""
    for node in walk_detections(root):
        match node:
            case DetectionFilter(condition=condition) | Unless(condition=condition):
                yield from condition
            case NextDetection():
                yield from (*node.first_of, *node.condition)
                for failing in node.failing:
                    yield from failing.condition
            case Iteration():
                yield from (*node.first_of, *node.condition)


@dataclass(frozen=True)
class EqlQuery(WrittenQuery):
    """A parsed query in EQL.

    >>> EqlQuery("SELECT * FROM t A ; t B WHERE FILTER(A.acc = B.acc)").bind(Schema()).types
    ('t',)
    """

    @cached_property
    def tree(self) -> EqlQueryTree:
        parsed = self._parsed("eql")
        if not isinstance(parsed, EqlQueryTree):
            raise UnknownSpelling("this is no query in EQL", hint="`kleene.query(text)` reads it")
        return parsed

    @cached_property
    def canonical(self) -> str:
        """The query without its declarations, in one spelling."""
        return format_query(replace(self.tree, declarations=()))

    def bind(self, schema: Schema | None = None, *, checking: bool = False) -> BoundEqlQuery:
        """Resolve every name against a schema; the text's own declarations go first.

        A query that is only checked may leave its parameters without values.
        """
        return self._bound_to(schema or Schema(), checking, self._bound)

    def _bound(self, schema: Schema, checking: bool) -> BoundEqlQuery:
        parsed, params = self.tree, dict(self.params)
        classes = ClassBinder(schema, params, checking)
        for declaration in parsed.declarations:
            if isinstance(declaration, tree.ClassDeclaration):
                classes.bound(declaration)
        named = bind_aliases(parsed.pattern, classes.named)
        scopes = EqlScopes(schema, named.components, params=params, open_parameters=checking)
        conjuncts = bind_conjuncts(parsed.qualifications, scopes)
        root = PatternBinder(schema, named.components, params, checking).bind(parsed.pattern, conjuncts)
        select = SelectScopes(schema, named.components, params=params, open_parameters=checking)
        returns = None if parsed.returns is None else bind_returns(parsed.returns, select)
        components = tuple(named.components.values())
        digest = self.digest(schema, {each.name for component in components for each in component.classes})
        into = None if parsed.returns is None else parsed.returns.into
        pattern = Sequence(tuple(Leaf(component) for component in components if not component.negated))
        return BoundEqlQuery(
            name=self.name or into or f"q{digest.hex()[:8]}",
            schema=schema,
            pattern=pattern,
            components=components,
            alternatives=(),
            strategy=tree.SelectionStrategy.SKIP_TILL_NEXT_MATCH,
            conditions=Conditions(),
            partition=(),
            window=None,
            output=tree.OutputMode.ALL,
            timeouts=None,
            returns=returns,
            into=into,
            digest=digest,
            warnings=self._warnings(root, returns or (), named, scopes, select),
            root=root,
        )

    def _warnings(
        self,
        root: Detection,
        returns: Iterable[ReturnColumn],
        named: AliasComponents,
        scopes: EqlScopes,
        select: SelectScopes,
    ) -> tuple[QueryWarning, ...]:
        warnings = [*_absent_in_conditions(root, scopes), *_absent_in_select(returns, named, select)]
        once = {(warning.span, warning.message): warning for warning in warnings}
        for warning in once.values():
            warning.locate(self.text, self.origin)
        return tuple(once.values())


def _absent_in_conditions(root: Detection, scopes: EqlScopes) -> Iterator[QueryWarning]:
    """A condition on an alias of one branch is false of every other branch."""
    for node in walk_detections(root):
        if not isinstance(node, NextDetection | DetectionFilter | Iteration):
            continue
        optional = frozenset().union(*map(_sometimes_absent, operands(node)))
        clauses = node.condition if isinstance(node, DetectionFilter) else (*node.first_of, *node.condition)
        for clause in clauses:
            lacking = sorted(optional.intersection(*map(_needed, clause.literals)))
            if lacking:
                yield AbsentBranch(
                    f"only one branch of `|` binds `{lacking[0]}`: of the others this condition is false",
                    _place(clause.literals, scopes),
                    hint="write a query for each branch, or test it inside the branch alone",
                )


def _needed(literal: Literal) -> set[str]:
    """The aliases without which a literal is false."""
    if isinstance(literal, IsNull):
        return set()
    named = (each for each in references(literal) if isinstance(each, Attribute))
    return {each.variable for each in named if each.which not in (Which.PREVIOUS, Which.MEMBER)}


def _absent_in_select(
    returns: Iterable[ReturnColumn], named: AliasComponents, select: SelectScopes
) -> Iterator[QueryWarning]:
    for column in returns:
        lacking = [each for each in references(column.value) if _is_absent(each, named)]
        if lacking and not isinstance(column.value, Whole):
            name = lacking[0].variable
            at = next((select.places[each] for each in lacking if each in select.places), named.spans[name])
            yield AbsentBranch(
                f"only one branch of `|` binds `{name}`: of the others this column is NULL",
                at,
                hint=f"`{name}` by itself shows whether it is there",
            )


def _is_absent(reference: object, named: AliasComponents) -> bool:
    """Whether a reference may have no value; the number of events has one."""
    counts = isinstance(reference, Aggregate) and reference.function == "count"
    return getattr(reference, "variable", None) in named.sometimes_absent and not counts


def _sometimes_absent(node: Detection) -> frozenset[str]:
    """The aliases that some detections of a node do not bind."""
    if isinstance(node, DetectionUnion):
        return frozenset(aliases(node)) if len(node.parts) > 1 else frozenset()
    if isinstance(node, Unless):
        return _sometimes_absent(node.operand)
    return frozenset().union(*map(_sometimes_absent, operands(node)))


def _place(literals: Iterable[Literal], scopes: EqlScopes) -> Span | None:
    return next((scopes.places[each] for each in literals if each in scopes.places), None)
