"""Bind the PATTERN clause: types, classes and variables resolved, shapes that have no meaning refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from kleene.errors import (
    EmptyPattern,
    MisplacedClosure,
    NegationAlone,
    NegationWithoutWindow,
    RepeatedGroup,
    ReservedName,
    Span,
    StrategyNeedsLine,
    TooComplex,
    UnknownType,
    UnsupportedNegation,
    VariableUsedTwice,
    did_you_mean,
)
from kleene.lang import tree
from kleene.pattern.nodes import Component, Conjunction, Disjunction, EventClass, Kind, Leaf, Pattern, Sequence, is_line
from kleene.pattern.schema import Schema

MAX_ALTERNATIVES = 512
MAX_COMPONENTS = 1_000
RESULT_COLUMNS = ("match_id", "query", "start", "end", "key")


@dataclass(frozen=True, slots=True)
class BoundPattern:
    pattern: Pattern
    components: tuple[Component, ...]
    spans: dict[str, Span]
    # Bare types that stand at several places, by the name that a condition would use for them.
    ambiguous: frozenset[str]


def bind_pattern(
    pattern: tree.Pattern, schema: Schema, class_named: Callable[[tree.TypeName], EventClass]
) -> BoundPattern:
    """The algebra of a pattern; every component gets a unique variable."""
    binder = _PatternBinder(schema, class_named, _explicit_variables(pattern))
    bound = binder.bind(pattern)
    return BoundPattern(bound, tuple(binder.components), binder.spans, frozenset(binder.ambiguous))


def _explicit_variables(pattern: tree.Pattern) -> dict[str, Span]:
    """Every variable written in the pattern, each used once."""
    found: dict[str, Span] = {}
    pending: list[tree.Pattern] = [pattern]
    while pending:
        node = pending.pop()
        match node:
            case tree.Component(variable=str() as name):
                if name in found:
                    later = max(node.variable_span, found[name], key=lambda span: span.start)
                    raise VariableUsedTwice(
                        f"variable `{name}` is used twice", later, hint="give each place its own name"
                    )
                if name in RESULT_COLUMNS:
                    raise ReservedName(
                        f"`{name}` is a column of every result", node.variable_span, hint=f"try `{name}_`"
                    )
                found[name] = node.variable_span
            case tree.Negation(operand):
                pending.append(operand)
            case tree.Group():
                what = "a repetition" if node.repetition is not None else "a variable"
                raise RepeatedGroup(
                    f"{what} cannot stand on parentheses", node.span, hint="repeat one component, or use ANY(A, B)+ v[]"
                )
            case tree.Sequence(parts) | tree.Conjunction(parts) | tree.Disjunction(parts):
                pending.extend(parts)
    return found


class _PatternBinder:
    def __init__(
        self, schema: Schema, class_named: Callable[[tree.TypeName], EventClass], explicit: dict[str, Span]
    ) -> None:
        self.schema = schema
        self.class_named = class_named
        self.taken = set(explicit) | set(RESULT_COLUMNS)
        self.components: list[Component] = []
        self.spans: dict[str, Span] = {}
        self.bare: set[str] = set()
        self.ambiguous: set[str] = set()

    def bind(self, pattern: tree.Pattern) -> Pattern:
        match pattern:
            case tree.Component():
                return Leaf(self.component(pattern))
            case tree.Negation():
                return self.negation(pattern)
            case tree.Sequence(parts):
                return Sequence(tuple(self.bind(part) for part in parts))
            case tree.Conjunction(parts) if all(isinstance(part, tree.Negation) for part in parts):
                return Sequence(tuple(self.bind(part) for part in parts))
            case tree.Conjunction(parts):
                self.refuse_negation(parts, "&")
                for part in parts:
                    if isinstance(part, tree.Component) and _is_closure(part):
                        raise MisplacedClosure(
                            "a closure without brackets cannot stand under `&`", part.span, hint="write `B+ b[]`"
                        )
                return Conjunction(tuple(self.bind(part) for part in parts))
            case tree.Disjunction(parts):
                self.refuse_negation(parts, "|")
                return Disjunction(tuple(self.bind(part) for part in parts))
            case tree.Group():
                raise AssertionError("groups were refused before")

    def refuse_negation(self, parts: tuple[tree.Pattern, ...], operator: str) -> None:
        for part in parts:
            if isinstance(part, tree.Negation):
                raise UnsupportedNegation(
                    f"a negation beside `{operator}` has no meaning yet",
                    part.span,
                    hint="put it between the parts of a sequence: `A ; !B ; C`",
                )

    def negation(self, pattern: tree.Negation) -> Pattern:
        operand = pattern.operand
        options = operand.parts if isinstance(operand, tree.Disjunction) else (operand,)
        leaves: list[Leaf] = []
        for option in options:
            if not isinstance(option, tree.Component) or option.repetition is not None:
                raise UnsupportedNegation(
                    "only an event type, ANY(…) or a disjunction of them can be negated",
                    pattern.span,
                    hint="several forbidden types: `!(B | C)`",
                )
            leaves.append(Leaf(self.component(option, negated=True)))
            if len(options) == 1:
                self.spans[leaves[0].component.variable] = pattern.span
        return leaves[0] if len(leaves) == 1 else Sequence(tuple(leaves))

    def component(self, node: tree.Component, *, negated: bool = False) -> Component:
        classes = tuple(self.class_named(name) for name in node.types)
        variable = node.variable or self.implicit_variable(node)
        component = Component(variable, classes, negated=negated, position=len(self.components))
        component = _with_repetition(component, node)
        self.components.append(component)
        self.spans[variable] = node.span
        if len(self.components) > MAX_COMPONENTS:
            raise TooComplex(f"this pattern has more than {MAX_COMPONENTS} components", node.span)
        return component

    def implicit_variable(self, node: tree.Component) -> str:
        """A bare type is its own variable; a second one of the same type gets a number."""
        name = "ANY" if node.any else node.types[0].name
        if name in self.bare:
            self.ambiguous.add(name)
        self.bare.add(name)
        variable, number = name, 2
        while variable in self.taken:
            variable, number = f"{name}_{number}", number + 1
        self.taken.add(variable)
        return variable


def _is_closure(node: tree.Component) -> bool:
    repeated = node.repetition is not None and node.repetition.mark is not tree.Mark.OPTIONAL
    return repeated and not node.brackets


def _with_repetition(component: Component, node: tree.Component) -> Component:
    repetition = node.repetition
    if repetition is None:
        if node.brackets:
            raise MisplacedClosure(
                f"`{component.variable}[]` names a closure, but nothing repeats",
                node.span,
                hint="write `A+ a[]` or `A a`",
            )
        return component
    if _is_closure(node):
        if repetition.mark is tree.Mark.BRACES:
            raise MisplacedClosure(
                "a closure with `{m,n}` needs brackets", node.span, hint=f"name it: `{component.variable.casefold()}[]`"
            )
        return replace(component, kind=Kind.CLOSURE, minimum=repetition.minimum, maximum=repetition.maximum)
    optional = repetition.minimum == 0
    if not node.brackets:
        return replace(component, optional=True)
    minimum = max(1, repetition.minimum)
    return replace(component, kind=Kind.KLEENE, minimum=minimum, maximum=repetition.maximum, optional=optional)


def type_test(name: tree.TypeName, schema: Schema) -> None:
    """Refuse a type that the schema does not know, when it knows its types."""
    if schema.closed and name.name not in schema.type_names:
        known = (*schema.type_names, *schema.classes)
        raise UnknownType(f"unknown event type `{name.name}`", name.span, hint=did_you_mean(name.name, known))


# Alternatives ------------------------------------------------------------------------------------------------------


def alternatives(bound: BoundPattern, span: Span) -> tuple[Pattern, ...]:
    """The pattern as a union of patterns without disjunction and without optional components."""
    found = dict.fromkeys(_alternatives(bound.pattern, span))
    flat = tuple(dict.fromkeys(_flattened(option) for option in found if option is not None))
    if None in found:
        raise EmptyPattern("this pattern could match no event at all", span, hint="make one component obligatory")
    return flat


def _alternatives(pattern: Pattern, span: Span) -> list[Pattern | None]:
    """None stands for the alternative that takes nothing."""
    if isinstance(pattern, Leaf):
        return [pattern, None] if pattern.component.optional else [pattern]
    if isinstance(pattern, Disjunction):
        return _limited([option for part in pattern.parts for option in _alternatives(part, span)], span)
    combined: list[tuple[Pattern, ...]] = [()]
    for part in pattern.parts:
        options = _alternatives(part, span)
        combined = _limited(
            [(*left, option) if option is not None else left for left in combined for option in options], span
        )
    make = type(pattern)
    return [None if not parts else parts[0] if len(parts) == 1 else make(parts) for parts in combined]


def _limited(options: list[Any], span: Span) -> list[Any]:
    if len(options) > MAX_ALTERNATIVES:
        raise TooComplex(
            f"this pattern stands for more than {MAX_ALTERNATIVES} alternatives",
            span,
            hint="split it into several queries",
        )
    return options


def _flattened(pattern: Pattern) -> Pattern:
    """Sequence and conjunction are associative: nested ones of the same kind are one list."""
    if isinstance(pattern, Leaf | Disjunction):
        return pattern
    parts: list[Pattern] = []
    for part in map(_flattened, pattern.parts):
        parts.extend(part.parts if isinstance(part, type(pattern)) and not isinstance(part, Leaf) else [part])
    return type(pattern)(tuple(parts)) if len(parts) > 1 else parts[0]


# Shapes ------------------------------------------------------------------------------------------------------------


def check_shape(pattern: Pattern, bound: BoundPattern, *, windowed: bool, whole: Span) -> None:
    """Refuse an alternative whose negations or closures have no bounds."""
    positives = [leaf for leaf in _leaves(pattern) if not leaf.component.negated]
    if not positives:
        raise NegationAlone(
            "a pattern needs something that occurs", whole, hint="put an event before or after: `A ; !B`"
        )
    if all(leaf.component.kind is Kind.CLOSURE for leaf in positives):
        raise MisplacedClosure(
            "a closure without brackets needs a neighbour",
            bound.spans[positives[0].component.variable],
            hint="write `B+ b[]`",
        )
    _check_part(pattern, bound, windowed=windowed, outermost=True)


def _check_part(pattern: Pattern, bound: BoundPattern, *, windowed: bool, outermost: bool) -> None:
    if isinstance(pattern, Leaf):
        return
    if isinstance(pattern, Sequence):
        _check_sequence(pattern, bound, windowed=windowed, outermost=outermost)
    for part in pattern.parts:
        _check_part(part, bound, windowed=windowed, outermost=False)


def _check_sequence(sequence: Sequence, bound: BoundPattern, *, windowed: bool, outermost: bool) -> None:
    places = [place for place, part in enumerate(sequence.parts) if not _is_negated(part)]
    closed = [_closure_of(sequence.parts[place]) for place in places]
    if not places:
        part = sequence.parts[0]
        assert isinstance(part, Leaf)
        raise NegationAlone("this part of the pattern only forbids", bound.spans[part.component.variable])
    for left, right in pairwise(closed):
        if left is not None and right is not None:
            raise MisplacedClosure(
                "two closures stand side by side", bound.spans[right.variable], hint="write `B+ b[]`"
            )
    ends = [closure for closure in (closed[0], closed[-1]) if closure is not None]
    if len(places) > 1 and len(ends) == 2:
        raise MisplacedClosure("a closure at each end leaves no bound", bound.spans[ends[1].variable], hint="use one")
    for closure in ends:
        _check_end(bound.spans[closure.variable], MisplacedClosure, "closure", windowed=windowed, outermost=outermost)
    for place, part in enumerate(sequence.parts):
        if isinstance(part, Leaf) and part.component.negated and not places[0] < place < places[-1]:
            span = bound.spans[part.component.variable]
            if not outermost:
                raise UnsupportedNegation("a negation at the end of a nested part has no meaning yet", span)
            if not windowed:
                raise NegationWithoutWindow(
                    "a negation at the start or the end needs a window", span, hint="add `WITHIN …`"
                )


def _check_end(span: Span, error: type[MisplacedClosure], what: str, *, windowed: bool, outermost: bool) -> None:
    if not outermost:
        raise error(f"a {what} at the end of a nested part has no bound", span, hint="put it between two components")
    if not windowed:
        raise error(f"a {what} at the start or the end needs a window", span, hint="add `WITHIN …`")


def _is_negated(part: Pattern) -> bool:
    return isinstance(part, Leaf) and part.component.negated


def _closure_of(part: Pattern) -> Component | None:
    return part.component if isinstance(part, Leaf) and part.component.kind is Kind.CLOSURE else None


def _leaves(pattern: Pattern) -> list[Leaf]:
    return [pattern] if isinstance(pattern, Leaf) else [leaf for part in pattern.parts for leaf in _leaves(part)]


def check_strategy(strategy: tree.Strategy, bound: BoundPattern, options: tuple[Pattern, ...]) -> None:
    """Only lines have strategies other than skip till any match."""
    if strategy.kind is tree.SelectionStrategy.SKIP_TILL_ANY_MATCH:
        return
    for component in bound.components:
        if component.kind is Kind.CLOSURE:
            raise MisplacedClosure(
                f"a closure without brackets has no meaning under {strategy.kind.value}",
                bound.spans[component.variable],
                hint=f"name it with brackets: `{component.variable.casefold()}[]`",
            )
    if has_disjunction(bound.pattern) or not all(map(is_line, options)):
        raise StrategyNeedsLine(
            f"{strategy.kind.value} needs a sequence; other shapes have skip_till_any_match only",
            strategy.span,
            hint="use skip_till_any_match, or ANY(A, B) for a choice of types",
        )


def has_disjunction(pattern: Pattern) -> bool:
    if isinstance(pattern, Leaf):
        return False
    return isinstance(pattern, Disjunction) or any(map(has_disjunction, pattern.parts))
