"""Bound expressions, changed part by part."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar, cast

from kleene.pattern.expressions import Node
from kleene.pattern.interning import Interned, field_names

N = TypeVar("N", bound=Node)


def rewritten(node: N, change: Callable[[Node], Node | None]) -> N:
    """The same expression with some of its parts changed; None leaves a part as it is, but for what is below it."""
    changed = change(node)
    if changed is not None:
        return cast(N, changed)
    kind: type[Interned] = type(node)
    fields = {name: getattr(node, name) for name in field_names(kind)}
    new = {name: _rewritten(value, change) for name, value in fields.items()}
    return node if new == fields else replace(node, **new)


def _rewritten(value: Any, change: Callable[[Node], Node | None]) -> Any:
    if isinstance(value, tuple):
        return tuple(_rewritten(child, change) for child in value)
    return rewritten(cast(Node, value), change) if isinstance(value, Interned) else value


def parts(node: Node) -> Iterator[Node]:
    """An expression and everything below it."""
    yield node
    for name in field_names(type(node)):
        value = getattr(node, name)
        for child in value if isinstance(value, tuple) else (value,):
            if isinstance(child, Interned):
                yield from parts(cast(Node, child))
