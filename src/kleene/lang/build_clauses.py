"""Clauses and declarations: one method a rule of the grammar; each gets its children, already built."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lark import Token

from kleene.errors import BadDeclaration, Span, SyntaxProblem, UnknownOutput, UnknownStrategy, did_you_mean
from kleene.lang import tree
from kleene.lang.building import place_of, quantity_of, span_of, text_of, word


class Clauses:
    def start(self, items: list[Any]) -> tree.Query:
        *declarations, query = items
        assert isinstance(query, tree.Query)
        return replace(query, declarations=tuple(declarations))

    def declarations(self, items: list[Any]) -> tuple[tree.Declaration, ...]:
        return tuple(items)

    def class_body(self, items: list[Any]) -> tuple[tuple[tree.TypeName, ...], tree.Expression | None]:
        return items[0], items[1]

    # Declarations

    def stream_column(self, items: list[Any]) -> tuple[Token, Any, Token | None]:
        return items[0], items[1], items[2]

    def stream_constant(self, items: list[Any]) -> tuple[Token, Any, None]:
        return items[0], items[1], None

    stream_tick = stream_constant

    def declare_stream(self, items: list[Any]) -> tree.StreamDeclaration:
        fields: dict[str, Any] = {}
        for role, value, extra in items:
            known = {"type": "type_column", "time": "time", "start": "start", "tie": "tie_breaker", "tick": "tick"}
            name = known.get(role.casefold())
            if name is None:
                raise BadDeclaration(
                    f"a stream has no `{role}`", span_of(role), hint=did_you_mean(str(role), known) or "see the manual"
                )
            if isinstance(value, tree.Duration) != (name == "tick"):
                raise BadDeclaration(f"`{role}` cannot be this", span_of(value), hint="for example `tick 1 second`")
            if isinstance(value, Token) and value.type == "STRING":
                if name != "type_column":
                    raise BadDeclaration("only a type can be constant", span_of(value), hint="name a column")
                name, value = "constant_type", text_of(value)
            elif isinstance(value, Token):
                value = word(value)
            if extra is not None:
                if name != "time":
                    raise BadDeclaration("only time has a type here", span_of(extra), hint="`time ts timestamp`")
                fields["time_type"] = word(extra)
            if name in fields or {name, *fields} >= {"type_column", "constant_type"}:
                raise BadDeclaration(f"`{role}` is declared twice", span_of(role))
            fields[name] = value
        return tree.StreamDeclaration(**fields, span=place_of(*(item[0] for item in items)))

    def attribute_type(self, items: list[Any]) -> tuple[str, str | None]:
        return word(items[0]), word(items[1]) if len(items) > 1 else None

    def declare_type(self, items: list[Any]) -> tree.TypeDeclaration:
        name, *attributes = items
        return tree.TypeDeclaration(name.name, tuple(a for a in attributes if a is not None), span=name.span)

    def declare_source(self, items: list[Any]) -> tree.SourceDeclaration:
        name, *attributes = items
        return tree.SourceDeclaration(name.name, tuple(a for a in attributes if a is not None), span=name.span)

    def declare_sink(self, items: list[Any]) -> tree.SinkDeclaration:
        name, *attributes = items
        return tree.SinkDeclaration(name.name, tuple(a for a in attributes if a is not None), span=name.span)

    def class_types(self, items: list[Any]) -> tuple[tree.TypeName, ...]:
        return tuple(item for item in items if isinstance(item, tree.TypeName))

    def declare_class(self, items: list[Any]) -> tree.ClassDeclaration:
        name, types, predicate = items
        return tree.ClassDeclaration(name.name, types, predicate, span=name.span)

    # Clauses

    def query(self, items: list[Any]) -> tree.Query:
        pattern, *clauses = items
        parts: dict[str, Any] = {}
        for clause in clauses:
            parts.update(clause)
        return tree.Query(pattern, **parts, span=pattern.span)

    def where(self, items: list[Any]) -> dict[str, Any]:
        return {"where": items[0]}

    def where_strategy(self, items: list[Any]) -> dict[str, Any]:
        head, condition = items
        return {"strategy": _strategy(head), "where": condition}

    def within(self, items: list[Any]) -> dict[str, Any]:
        duration, inclusive = items
        return {"within": tree.Within(duration, inclusive is not None, span=duration.span)}

    def duration(self, items: list[Any]) -> tree.Duration:
        return tree.Duration(tuple(items), span=place_of(*items))

    def quantity(self, items: list[Any]) -> tree.Quantity:
        return quantity_of(items[0], items[1])

    def output(self, items: list[Any]) -> dict[str, Any]:
        name = "_".join(str(part) for part in items if part is not None).upper()
        span = place_of(*items)
        if name not in tree.OutputMode.__members__:
            modes = ["ALL", "NON_OVERLAP", "COMPRESSED"]
            raise UnknownOutput(f"unknown output mode `{name}`", span, hint=did_you_mean(name, modes))
        return {"output": tree.Output(tree.OutputMode[name], span=span)}

    def timeouts(self, items: list[Any]) -> dict[str, Any]:
        keyword, stream = items
        return {"timeouts": stream.name, "timeouts_span": place_of(keyword, stream)}

    def returns(self, items: list[Any]) -> dict[str, Any]:
        *values, into = items
        span = place_of(*values)
        return {"returns": tree.Return(tuple(values), into.name if into else None, span=span)}

    def return_item(self, items: list[Any]) -> tree.ReturnItem:
        value, alias = items
        return tree.ReturnItem(value, word(alias) if alias else None, span=place_of(value, alias))


def _strategy(head: tree.Expression) -> tree.Strategy:
    """The part of WHERE before the brace: `skip_till_next_match(a, b[])`, or the name alone."""
    name = head.name if isinstance(head, tree.Name) else head.function if isinstance(head, tree.Call) else None
    known = [strategy.value for strategy in tree.SelectionStrategy]
    if name is None:
        raise UnknownStrategy(
            "a selection strategy is expected before `{`", head.span, hint="one of " + ", ".join(known)
        )
    if name.casefold() not in known:
        raise UnknownStrategy(
            f"unknown selection strategy `{name}`",
            Span(head.span.start, head.span.start + len(name)),
            hint=did_you_mean(name, known) or "one of " + ", ".join(known),
        )
    kind = tree.SelectionStrategy(name.casefold())
    if isinstance(head, tree.Name):
        return tree.Strategy(kind, span=head.span)
    assert isinstance(head, tree.Call)
    return tree.Strategy(kind, tuple(_strategy_variable(item) for item in head.arguments), span=head.span)


def _strategy_variable(item: tree.Expression) -> tree.StrategyVariable:
    if isinstance(item, tree.Name):
        return tree.StrategyVariable(item.name, False, span=item.span)
    if isinstance(item, tree.Events) and item.index is None:
        return tree.StrategyVariable(item.variable, True, span=item.span)
    raise SyntaxProblem("a strategy lists variables", item.span, hint="write `a` or `b[]`")
