"""Where ZStream's closures stand in a pattern (semantics §3 ZStream's closure): at its edges, or side by side."""

from __future__ import annotations

from collections.abc import Iterator

from kleene.pattern.nodes import Component, ComponentKind, Leaf, Pattern, Sequence, components


def is_closure(component: Component) -> bool:
    return component.kind is ComponentKind.CLOSURE and not component.negated


def takes_first(component: Component) -> bool:
    """Whether a component's events are chosen before any closure takes its group, or a negation forbids a match."""
    return not component.negated and component.kind is not ComponentKind.CLOSURE


def has_fixed(pattern: Pattern) -> bool:
    """Whether a pattern has a component that bounds the closures beside it."""
    return any(map(takes_first, components(pattern)))


def at_edge(pattern: Pattern, *, left: bool) -> tuple[Component, ...]:
    """The negated components and closures whose neighbour on one side, or their bound, is outside the pattern."""
    if isinstance(pattern, Leaf):
        return () if takes_first(pattern.component) else (pattern.component,)
    if not isinstance(pattern, Sequence):
        return tuple(component for part in pattern.parts for component in at_edge(part, left=left))
    edge: list[Component] = []
    for part in pattern.parts if left else reversed(pattern.parts):
        edge += at_edge(part, left=left)
        if has_fixed(part):
            break
    return tuple(edge)


def closures_at_edge(pattern: Pattern, *, left: bool) -> tuple[Component, ...]:
    return tuple(component for component in at_edge(pattern, left=left) if is_closure(component))


def side_by_side(pattern: Pattern) -> Iterator[tuple[Component, ...]]:
    """The closures of a pattern in the order of the text, those that share one gap together."""
    if isinstance(pattern, Leaf):
        if is_closure(pattern.component):
            yield (pattern.component,)
        return
    run: list[Component] = []
    for part in pattern.parts:
        if isinstance(pattern, Sequence) and isinstance(part, Leaf) and not takes_first(part.component):
            # A negation between two closures does not part them.
            run += [part.component] if is_closure(part.component) else []
            continue
        if run:
            yield tuple(run)
            run = []
        yield from side_by_side(part)
    if run:
        yield tuple(run)
