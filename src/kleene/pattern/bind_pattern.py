"""Bind the PATTERN clause: types, classes and variables resolved, shapes that have no meaning refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from kleene.errors import (
    MisplacedClosure,
    RepeatedGroup,
    ReservedName,
    Span,
    TooComplex,
    UnknownType,
    UnsupportedNegation,
    VariableUsedTwice,
    did_you_mean,
)
from kleene.lang import tree
from kleene.lang.format import format_pattern
from kleene.pattern.gaps import lifted
from kleene.pattern.nodes import Component, ComponentKind, Conjunction, Disjunction, EventClass, Leaf, Pattern, Sequence
from kleene.pattern.schema import Schema

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
    spans: dict[str, Span] = {}
    pending: list[tree.Pattern] = [pattern]
    while pending:
        node = pending.pop()
        match node:
            case tree.Component(variable=str() as name):
                if name in spans:
                    later = max(node.variable_span, spans[name], key=lambda span: span.start)
                    raise VariableUsedTwice(
                        f"variable `{name}` is used twice", later, hint="give each place its own name"
                    )
                if name in RESULT_COLUMNS:
                    raise ReservedName(
                        f"`{name}` is a column of every result", node.variable_span, hint=f"try `{name}_`"
                    )
                spans[name] = node.variable_span
            case tree.Negation(operand):
                pending.append(operand)
            case tree.Group():
                what = "a repetition" if node.repetition is not None else "a variable"
                raise RepeatedGroup(f"{what} cannot stand on parentheses", node.span, hint=_without_group(node))
            case tree.Sequence(parts) | tree.Conjunction(parts) | tree.Disjunction(parts):
                pending.extend(parts)
    return spans


def _without_group(group: tree.Group) -> str:
    """What to write instead of a repetition or a variable on parentheses."""
    inner, repetition = group.inner, group.repetition
    if isinstance(inner, tree.Component) and inner.repetition is None and repetition is not None:
        name = inner.variable or group.variable or inner.types[0].name.casefold()
        repeated = repetition.mark is not tree.Mark.OPTIONAL
        alone = replace(inner, repetition=repetition, variable=name, brackets=repeated)
        return f"repeat the component itself: `{format_pattern(alone)}`"
    if isinstance(inner, tree.Component) and repetition is not None:
        return "a component has one repetition: `C* c[]` may be empty, as may `B*` without brackets"
    if repetition is not None and repetition.mark is tree.Mark.OPTIONAL:
        return "make each part optional, `A? a ; B? b`, or ask two queries, one with the group and one without it"
    return "repeat one component, or use ANY(A, B)+ v[]"


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
                return Conjunction(tuple(lifted(self.bind(part) for part in parts)))
            case tree.Disjunction(parts):
                _refuse_negated_branch(parts)
                return Disjunction(tuple(self.bind(part) for part in parts))
            case tree.Group():
                raise AssertionError("groups were refused before")

    def negation(self, pattern: tree.Negation) -> Pattern:
        operand = pattern.operand
        options = operand.parts if isinstance(operand, tree.Disjunction) else (operand,)
        leaves: list[Leaf] = []
        for option in options:
            listed = option.parts if isinstance(option, tree.Sequence) else (option,)
            if len(listed) > 2 or not all(isinstance(part, tree.Component) and not part.repetition for part in listed):
                raise UnsupportedNegation(
                    "only an event type, ANY(…), two of them in sequence or a disjunction of these can be negated",
                    pattern.span,
                    hint=_instead_of_negating(option),
                )
            forbidden = [self.component(part, negated=True) for part in listed if isinstance(part, tree.Component)]
            if len(forbidden) == 2:
                self.components[-1] = forbidden[1] = replace(forbidden[1], preceded_by=forbidden[0])
            leaves.append(Leaf(forbidden[-1]))
            if len(options) == 1:
                self.spans[forbidden[-1].variable] = pattern.span
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


def _instead_of_negating(operand: tree.Pattern) -> str:
    """What to write instead of a negation that has no meaning."""
    match operand:
        case tree.Conjunction():
            return "neither: `!B & !C`; not both of them: one query with `!B` and one with `!C`"
        case tree.Component():
            return "one event is enough to forbid: `!B`"
        case tree.Sequence(parts) if len(parts) > 2:
            return (
                "a pair, `!(B ; C)`, or compose: a query that finds the sequence INTO a stream S, and `!S` in this one"
            )
    return "several forbidden types: `!(B | C)`; one after the other: `!(B ; C)`"


def _refuse_negated_branch(parts: tuple[tree.Pattern, ...]) -> None:
    for part in parts:
        if _only_forbids(part):
            raise UnsupportedNegation(
                "a branch of `|` that only forbids has no meaning",
                part.span,
                hint="let each branch take an event, `A | (B & !C)`, or ask two queries",
            )


def _only_forbids(pattern: tree.Pattern) -> bool:
    match pattern:
        case tree.Negation():
            return True
        case tree.Sequence(parts) | tree.Conjunction(parts) | tree.Disjunction(parts):
            return all(map(_only_forbids, parts))
    return False


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
        return replace(component, kind=ComponentKind.CLOSURE, minimum=repetition.minimum, maximum=repetition.maximum)
    optional = repetition.minimum == 0
    if not node.brackets:
        return replace(component, optional=True)
    minimum = max(1, repetition.minimum)
    return replace(component, kind=ComponentKind.KLEENE, minimum=minimum, maximum=repetition.maximum, optional=optional)


def type_test(name: tree.TypeName, schema: Schema) -> None:
    """Refuse a type that the schema does not know, when it knows its types."""
    if schema.closed and name.name not in schema.type_names:
        known = (*schema.type_names, *schema.classes)
        raise UnknownType(f"unknown event type `{name.name}`", name.span, hint=did_you_mean(name.name, known))
