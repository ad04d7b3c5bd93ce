"""Streams: one method a rule of `cesar.lark`; each gets its children, already built."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lark import Token

from kleene.errors import Span, SyntaxProblem
from kleene.lang import stream_tree as streams
from kleene.lang import tree
from kleene.lang.building import build, place_of, span_of, word
from kleene.lang.stream_advice import CLAUSES

# A unary operation that waits for its operand and its place, and where it begins.
Operation = tuple[Token, Callable[[streams.Stream, Span], streams.Stream]]


class Streams:
    def stream_query(self, items: list[Any]) -> streams.StreamQuery:
        stream, publish = items
        name = None if publish is None else publish.name
        at = {} if publish is None else {"publish_span": publish.span}
        return streams.StreamQuery(stream, name, span=place_of(stream, publish), **at)

    def source(self, items: list[Any]) -> streams.StreamSource:
        kind, name = items
        _check_word(kind.name, kind.span)
        if name is not None:
            _check_word(str(name), span_of(name))
        if name is None:
            return streams.StreamSource(kind, span=kind.span)
        return streams.StreamSource(kind, word(name), id_span=span_of(name), span=place_of(kind, name))

    def parenthesised_stream(self, items: list[Any]) -> streams.Stream:
        return items[0]  # type: ignore[no-any-return]

    def union(self, items: list[Any]) -> streams.StreamUnion:
        """Unions of unions are one, whatever the parentheses."""
        parts: list[Any] = []
        for item in items:
            parts.extend(item.parts if isinstance(item, streams.StreamUnion) else [item])
        return build(streams.StreamUnion, tuple(parts), at=place_of(*items), below=tuple(parts))

    def next_mark(self, items: list[Any]) -> tree.Expression | None:
        return items[1]  # type: ignore[no-any-return]

    def next(self, items: list[Any]) -> streams.Next:
        left, condition, right = items
        below = (left, right) if condition is None else (left, right, condition)
        return build(streams.Next, left, right, condition, at=place_of(left, right), below=below)

    # Unary operations

    def select(self, items: list[Any]) -> Operation:
        mark, condition = items
        return mark, lambda operand, at: build(streams.Select, operand, condition, at=at, below=(operand, condition))

    def project(self, items: list[Any]) -> Operation:
        mark, *attributes = items
        return mark, lambda operand, at: build(streams.Project, operand, tuple(attributes), at=at, below=(operand,))

    def rename(self, items: list[Any]) -> Operation:
        mark, *listed = items
        renamings = tuple(renaming for item in listed for renaming in item)
        return mark, lambda operand, at: build(streams.Rename, operand, renamings, at=at, below=(operand,))

    def compute(self, items: list[Any]) -> Operation:
        mark, *assignments = items
        values = tuple(each.value for each in assignments)
        return mark, lambda operand, at: build(
            streams.Compute, operand, tuple(assignments), at=at, below=(operand, *values)
        )

    def renaming(self, items: list[Any]) -> list[streams.Renaming]:
        attribute, name = items
        return [streams.Renaming(attribute, word(name), span=place_of(attribute, name))]

    def renamings(self, items: list[Any]) -> list[streams.Renaming]:
        """`(name, price) ↦ (company, maxP)`, as the paper has it."""
        attributes = [item for item in items if not isinstance(item, Token)]
        names = [item for item in items if isinstance(item, Token)]
        if len(attributes) != len(names):
            raise SyntaxProblem(
                f"{len(attributes)} attributes have {len(names)} new names",
                place_of(*items),
                hint="name each once: `(name, price) ↦ (company, maxP)`",
            )
        return [renaming for pair in zip(attributes, names, strict=True) for renaming in self.renaming(list(pair))]

    def assignment(self, items: list[Any]) -> streams.Assignment:
        attribute, value = items
        return build(streams.Assignment, attribute, value, at=place_of(attribute, value), below=(value,))

    def applied(self, items: list[Any]) -> streams.Stream:
        operation, operand, closing = items
        return _apply(operation, operand, closing)

    def composed(self, items: list[Any]) -> streams.Stream:
        """`σ{…} ∘ π{…}(E)`: the operation that is written last is applied first."""
        operation, operand = items
        return _apply(operation, operand, operand)

    # Iteration

    def fold_mark(self, items: list[Any]) -> tuple[Token, dict[str, Any]]:
        mark, *parts = items
        clauses: dict[str, Any] = {"init": ()}
        for kind, part, at in parts:
            if kind == "init":
                clauses["init"] = (*clauses["init"], part)
            elif kind in clauses:
                raise SyntaxProblem(f"a fold has one {kind}", at, hint="`μ{step, condition, init x ↦ y}`")
            else:
                clauses[kind] = part
        return mark, clauses

    def fold_step(self, items: list[Any]) -> tuple[str, streams.Stream, Span]:
        at = span_of(items[0][0])
        step: streams.Stream = streams.Carried(span=at)
        for mark, apply in reversed(items):
            step = apply(step, span_of(mark))
        return "step", step, at

    def fold_identity(self, items: list[Any]) -> tuple[str, streams.Stream, Span]:
        return "step", streams.Carried(span=span_of(items[0])), span_of(items[0])

    def fold_condition(self, items: list[Any]) -> tuple[str, tree.Expression, Span]:
        return "condition", items[0], items[0].span

    def fold_init(self, items: list[Any]) -> tuple[str, streams.Assignment, Span]:
        return "init", items[0], items[0].span

    def fold(self, items: list[Any]) -> streams.Fold:
        (mark, clauses), left, right, closing = items
        step = clauses.get("step", streams.Carried(span=span_of(mark)))
        condition = clauses.get("condition")
        at = place_of(mark, closing)
        below = tuple(each for each in (left, right, step, condition) if each is not None)
        return build(streams.Fold, left, right, step, condition, clauses["init"], at=at, below=below)

    # Names

    def last_attribute(self, items: list[Any]) -> tree.LastValue:
        stream, name, last = items
        if last.casefold() != "last":
            raise SyntaxProblem(
                f"unexpected `.{last}`",
                span_of(last),
                hint="`S1.price` is an attribute, `S1.price.last` its last value",
            )
        attribute = tree.Attribute(
            word(stream),
            None,
            word(name),
            span=place_of(stream, name),
            variable_span=span_of(stream),
            attribute_span=span_of(name),
        )
        return tree.LastValue(attribute, span=place_of(stream, last))


def _check_word(name: str, at: Span) -> None:
    """Refuse a word of a pattern's clauses where a stream or its id stands; one in backquotes is a name."""
    if name.casefold() in CLAUSES and at.end - at.start == len(name):
        raise SyntaxProblem(f"unexpected `{name}`", at, hint=CLAUSES[name.casefold()])


def _apply(operation: Operation, operand: streams.Stream, last: Any) -> streams.Stream:
    mark, apply = operation
    return apply(operand, place_of(mark, last))
