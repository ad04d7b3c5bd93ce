"""The main spelling: `PATTERN … WHERE … WITHIN … RETURN …` to the syntax tree.

`kleene.lark` is the grammar; this file turns its reductions into nodes of `tree` while the parser runs, so that no
second walk over a parse tree is needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from lark import Lark, Token, Transformer
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from kleene.errors import (
    BadChain,
    BadDeclaration,
    BadDuration,
    BadLiteral,
    BadRepetition,
    QueryError,
    Span,
    SyntaxProblem,
    TooDeep,
    UnknownFunction,
    UnknownOutput,
    UnknownStrategy,
    did_you_mean,
)
from kleene.lang import tree
from kleene.lang.durations import TICKS, all_units, unit_named
from kleene.lang.expected import describe_expected

MAX_DEPTH = 150
_MAX_INTEGER = 2**63 - 1

AGGREGATES = ("count", "sum", "avg", "min", "max", "first", "last")
_OPERATORS = {"==": "=", "<>": "!=", "≠": "!=", "≤": "<=", "≥": ">="}
_FIRST_WORD = re.compile(r"(?:\s|/\*.*?\*/|--[^\n]*)*([^\W\d]\w*)", re.DOTALL)

N = TypeVar("N", bound=tree.Node)


def recognises(text: str) -> bool:
    """The main spelling opens with PATTERN, EVENT or a declaration."""
    word = _FIRST_WORD.match(text)
    return word is not None and word[1].casefold() in {"pattern", "event", "declare"}


def parse(text: str) -> tree.Query:
    """The tree of a query, or one error with its place."""
    return _run(text, "start")


def parse_declarations(text: str) -> tuple[tree.Declaration, ...]:
    """The declarations of a schema file: `DECLARE …` and no query."""
    return _run(text, "declarations")


def parse_duration(text: str) -> tree.Duration:
    """`12 hours`, `1 hour 30 minutes`, `200`."""
    return _run(text, "duration")


def parse_class(text: str) -> tuple[tuple[tree.TypeName, ...], tree.Expression | None]:
    """The right side of a class declaration: `Stock WHERE name = 'Google'`."""
    return _run(text, "class_body")


def _run(text: str, start: str) -> Any:
    try:
        return _parser().parse(text, start=start)
    except QueryError as error:
        error.locate(text)
        raise
    except UnexpectedInput as problem:
        error = _syntax_problem(text, problem)
        error.locate(text)
        raise error from None


@cache
def _parser() -> Lark:
    grammar = Path(__file__).with_name("kleene.lark").read_text(encoding="utf-8")
    return Lark(
        grammar,
        parser="lalr",
        start=["start", "declarations", "duration", "class_body"],
        transformer=_Builder(),
        maybe_placeholders=True,
    )


def _syntax_problem(text: str, problem: UnexpectedInput) -> QueryError:
    if isinstance(problem, UnexpectedToken):
        expected = describe_expected(problem.accepts or problem.expected)
        if problem.token.type == "$END":
            end = len(text.rstrip())
            return SyntaxProblem("the query ends too early", Span(max(0, end - 1), end), hint=f"expected {expected}")
        start = problem.token.start_pos or 0
        span = Span(start, start + len(problem.token))
        return SyntaxProblem(f"unexpected `{_clip(str(problem.token))}`", span, hint=f"expected {expected}")
    assert isinstance(problem, UnexpectedCharacters)
    start = problem.pos_in_stream
    rest = text[start:]
    span = Span(start, start + 1)
    if rest.startswith("/*"):
        return SyntaxProblem("this comment is never closed", Span(start, start + 2), hint="end it with `*/`")
    if rest[0] in "'\"‘“`":
        return SyntaxProblem("this quotation is never closed", span, hint="write the same quote again at its end")
    return SyntaxProblem(
        f"unexpected `{_clip(rest[0])}`", span, hint=f"expected {describe_expected(problem.allowed or set())}"
    )


def _clip(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "…"


def _span(*parts: Any) -> Span:
    """The place from the first to the last of some tokens and nodes."""
    spans = [_span_of(part) for part in parts if part is not None]
    return Span(min(s.start for s in spans), max(s.end for s in spans))


def _span_of(part: Any) -> Span:
    if isinstance(part, Token):
        start = part.start_pos or 0
        return Span(start, start + len(part))
    assert isinstance(part.span, Span)
    return part.span


def _word(token: Token) -> str:
    return str(token)[1:-1] if token.type == "QUOTED" else str(token)


def _build(node: Callable[..., N], *values: Any, at: Span, below: tuple[Any, ...] = (), **named: Any) -> N:
    depth = 1 + max((child.depth for child in below), default=0)
    if depth > MAX_DEPTH:
        raise TooDeep(f"nested more than {MAX_DEPTH} deep", at, hint="split the query, or write the condition flatter")
    return node(*values, span=at, depth=depth, **named)


class _Builder(Transformer[Token, Any]):
    """One method a rule of the grammar; each gets its children, already built."""

    def start(self, items: list[Any]) -> tree.Query:
        *declarations, query = items
        return tree.Query(
            query.pattern,
            query.strategy,
            query.where,
            query.within,
            query.output,
            query.timeouts,
            query.returns,
            tuple(declarations),
            span=query.span,
        )

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
                    f"a stream has no `{role}`", _span_of(role), hint=did_you_mean(str(role), known) or "see the manual"
                )
            if isinstance(value, tree.Duration) != (name == "tick"):
                raise BadDeclaration(f"`{role}` cannot be this", _span_of(value), hint="for example `tick 1 second`")
            if isinstance(value, Token) and value.type == "STRING":
                if name != "type_column":
                    raise BadDeclaration("only a type can be constant", _span_of(value), hint="name a column")
                name, value = "constant_type", _text(value)
            elif isinstance(value, Token):
                value = _word(value)
            if extra is not None:
                if name != "time":
                    raise BadDeclaration("only time has a type here", _span_of(extra), hint="`time ts timestamp`")
                fields["time_type"] = _word(extra)
            if name in fields:
                raise BadDeclaration(f"`{role}` is declared twice", _span_of(role))
            fields[name] = value
        return tree.StreamDeclaration(**fields, span=_span(*(item[0] for item in items)))

    def attribute_type(self, items: list[Any]) -> tuple[str, str | None]:
        return _word(items[0]), _word(items[1]) if len(items) > 1 else None

    def declare_type(self, items: list[Any]) -> tree.TypeDeclaration:
        name, *attributes = items
        return tree.TypeDeclaration(name.name, tuple(a for a in attributes if a is not None), span=name.span)

    def class_types(self, items: list[Any]) -> tuple[tree.TypeName, ...]:
        return tuple(items)

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
        return tree.Duration(tuple(items), span=_span(*items))

    def quantity(self, items: list[Any]) -> tree.Quantity:
        return _quantity(items[0], items[1])

    def output(self, items: list[Any]) -> dict[str, Any]:
        name = "_".join(str(part) for part in items if part is not None).upper()
        span = _span(*items)
        if name not in tree.OutputMode.__members__:
            modes = ["ALL", "NON_OVERLAP", "COMPRESSED"]
            raise UnknownOutput(f"unknown output mode `{name}`", span, hint=did_you_mean(name, modes))
        return {"output": tree.Output(tree.OutputMode[name], span=span)}

    def timeouts(self, items: list[Any]) -> dict[str, Any]:
        return {"timeouts": items[0].name}

    def returns(self, items: list[Any]) -> dict[str, Any]:
        *values, into = items
        span = _span(*values)
        return {"returns": tree.Return(tuple(values), into.name if into else None, span=span)}

    def return_item(self, items: list[Any]) -> tree.ReturnItem:
        value, alias = items
        return tree.ReturnItem(value, _word(alias) if alias else None, span=_span(value, alias))

    # Patterns

    def pattern(self, parts: list[Any]) -> tree.Pattern:
        return _build(tree.Sequence, tuple(parts), at=_span(*parts), below=tuple(parts))

    def disjunction(self, parts: list[Any]) -> tree.Pattern:
        return _build(tree.Disjunction, tuple(parts), at=_span(*parts), below=tuple(parts))

    def conjunction(self, parts: list[Any]) -> tree.Pattern:
        return _build(tree.Conjunction, tuple(parts), at=_span(*parts), below=tuple(parts))

    def negate(self, items: list[Any]) -> tree.Negation:
        mark, operand = items
        return _build(tree.Negation, operand, at=_span(mark, operand), below=(operand,))

    def plain(self, items: list[Any]) -> tree.Component:
        return _component((items[0],), items[1:], any_of=False)

    def any_of(self, items: list[Any]) -> tree.Component:
        types = tuple(item for item in items if isinstance(item, tree.TypeName))
        return _component(types, items[len(types) :], any_of=True)

    def group(self, items: list[Any]) -> tree.Pattern:
        parts = tuple(item for item in items if not isinstance(item, tree.Repetition | tuple))
        repetition, variable, brackets, span = _suffix(items[len(parts) :], _span(*parts))
        inner = parts[0]
        if len(parts) > 1:
            inner = _build(tree.Sequence, parts, at=_span(*parts), below=parts)
        if repetition is None and variable is None:
            return inner
        return _build(tree.Group, inner, repetition, variable, brackets, at=span, below=(inner,))

    def plus(self, items: list[Any]) -> tree.Repetition:
        return tree.Repetition(tree.Mark.PLUS, 1, None, span=_span(*items))

    def star(self, items: list[Any]) -> tree.Repetition:
        return tree.Repetition(tree.Mark.STAR, 0, None, span=_span(*items))

    def optional(self, items: list[Any]) -> tree.Repetition:
        return tree.Repetition(tree.Mark.OPTIONAL, 0, 1, span=_span(*items))

    def power(self, items: list[Any]) -> tree.Repetition:
        return _repetition(tree.Mark.POWER, items[0], items[0], _span(*items))

    def exactly(self, items: list[Any]) -> tree.Repetition:
        return _repetition(tree.Mark.BRACES, items[0], items[0], _span(*items))

    def between_counts(self, items: list[Any]) -> tree.Repetition:
        return _repetition(tree.Mark.BRACES, items[0], items[2], _span(*items))

    def variable(self, items: list[Any]) -> tuple[Token, Token | None]:
        return items[0], items[1]

    def type_name(self, items: list[Any]) -> tree.TypeName:
        return tree.TypeName(_word(items[0]), span=_span_of(items[0]))

    # Conditions

    def expression(self, operands: list[Any]) -> tree.Expression:
        return _flat(tree.Or, operands)

    def conjoined(self, operands: list[Any]) -> tree.Expression:
        return _flat(tree.And, operands)

    def inverted(self, items: list[Any]) -> tree.Not:
        mark, operand = items
        return _build(tree.Not, operand, at=_span(mark, operand), below=(operand,))

    def compared(self, items: list[Any]) -> tree.Expression:
        operands = tuple(items[0::2])
        operators = [_OPERATORS.get(str(token), str(token)) for token in items[1::2]]
        span = _span(*operands)
        if len(operators) == 1:
            return _build(tree.Comparison, operators[0], *operands, at=span, below=operands)
        for operator, token in zip(operators, items[1::2], strict=True):
            if operator != "=":
                raise BadChain(
                    f"`{token}` cannot be chained", _span_of(token), hint="join two comparisons with AND instead"
                )
        return _build(tree.EqualityChain, operands, at=span, below=operands)

    def contains(self, items: list[Any]) -> tree.Contains:
        return _build(tree.Contains, *items, at=_span(*items), below=tuple(items))

    def in_list(self, items: list[Any]) -> tree.In:
        operand, negated, *values = items
        below = (operand, *values)
        return _build(tree.In, operand, tuple(values), negated is not None, at=_span(*below), below=below)

    def between(self, items: list[Any]) -> tree.Between:
        operand, negated, low, high = items
        below = (operand, low, high)
        return _build(tree.Between, *below, negated is not None, at=_span(*below), below=below)

    def is_null(self, items: list[Any]) -> tree.IsNull:
        operand, negated, null = items
        return _build(tree.IsNull, operand, negated is not None, at=_span(operand, null), below=(operand,))

    def sum(self, items: list[Any]) -> tree.Expression:
        result = items[0]
        for operator, right in zip(items[1::2], items[2::2], strict=True):
            below = (result, right)
            result = _build(tree.Arithmetic, str(operator), result, right, at=_span(*below), below=below)
        return result  # type: ignore[no-any-return]

    product = sum

    def negative(self, items: list[Any]) -> tree.Expression:
        mark, operand = items
        return _build(tree.Negative, operand, at=_span(mark, operand), below=(operand,))

    def percent(self, items: list[Any]) -> tree.Percent:
        operand, mark = items
        return _build(tree.Percent, operand, at=_span(operand, mark), below=(operand,))

    def parenthesised(self, items: list[Any]) -> tree.Expression:
        return items[0]  # type: ignore[no-any-return]

    def integer(self, items: list[Any]) -> tree.Literal:
        if len(items[0]) > 19 or int(items[0]) > _MAX_INTEGER:
            raise BadLiteral(
                "this integer does not fit 64 bits", _span_of(items[0]), hint="write it as a decimal: `1e20`"
            )
        return tree.Literal(int(items[0]), span=_span_of(items[0]))

    def real(self, items: list[Any]) -> tree.Literal:
        value = float(items[0])
        if value == float("inf"):
            raise BadLiteral("this number is too large", _span_of(items[0]))
        return tree.Literal(value, span=_span_of(items[0]))

    def string(self, items: list[Any]) -> tree.Literal:
        return tree.Literal(_text(items[0]), span=_span_of(items[0]))

    def true(self, items: list[Any]) -> tree.Literal:
        return tree.Literal(True, span=_span_of(items[0]))

    def false(self, items: list[Any]) -> tree.Literal:
        return tree.Literal(False, span=_span_of(items[0]))

    def null(self, items: list[Any]) -> tree.Literal:
        return tree.Literal(None, span=_span_of(items[0]))

    def parameter(self, items: list[Any]) -> tree.Parameter:
        return tree.Parameter(str(items[0])[1:], span=_span_of(items[0]))

    def duration_literal(self, items: list[Any]) -> tree.Duration:
        quantity = _quantity(items[0], items[1])
        return tree.Duration((quantity,), span=quantity.span)

    def typed_literal(self, items: list[Any]) -> tree.Timestamp:
        name, text = items
        if name.casefold() != "timestamp":
            raise BadLiteral(f"there is no literal `{name} '…'`", _span(name, text), hint="`TIMESTAMP '…'` is one")
        return tree.Timestamp(_text(text), span=_span(name, text))

    def name(self, items: list[Any]) -> tree.Name:
        return tree.Name(_word(items[0]), span=_span_of(items[0]))

    def attribute(self, items: list[Any]) -> tree.Attribute:
        variable, attribute = items
        span = _span(variable, attribute)
        return tree.Attribute(_word(variable), None, _word(attribute), span=span, variable_span=_span_of(variable))

    def indexed_attribute(self, items: list[Any]) -> tree.Attribute:
        variable, index, attribute = items
        return tree.Attribute(
            _word(variable),
            _index(variable, index),
            _word(attribute),
            span=_span(variable, attribute),
            variable_span=_span_of(variable),
        )

    def events(self, items: list[Any]) -> tree.Events:
        variable, index = items
        return tree.Events(_word(variable), _index(variable, index), span=_span(variable, *index[1]))

    def index_number(self, items: list[Any]) -> tuple[str, list[Token]]:
        return "number", items

    def index_name(self, items: list[Any]) -> tuple[str, list[Token]]:
        return "name", items

    def index_previous(self, items: list[Any]) -> tuple[str, list[Token]]:
        return "previous", items

    def index_last(self, items: list[Any]) -> tuple[str, list[Token]]:
        return "last", items

    def index_all(self, items: list[Any]) -> tuple[str, list[Token]]:
        return "all", items

    def index_so_far(self, items: list[Any]) -> tuple[str, list[Token]]:
        return "so far", items

    def index_brackets(self, items: list[Any]) -> tuple[str, list[Token]]:
        return "brackets", items

    def call(self, items: list[Any]) -> tree.Call:
        function, *arguments = items
        span = _span(function, *arguments)
        return _build(tree.Call, _word(function), tuple(arguments), at=span, below=tuple(arguments))

    def equivalence(self, items: list[Any]) -> tree.Equivalence:
        return _build(tree.Equivalence, tuple(items), at=_span(*items), below=tuple(items))

    def equivalence_item(self, items: list[Any]) -> tree.EquivalenceItem:
        attribute, operator, value = items
        if operator is not None and operator not in ("=", "=="):
            raise SyntaxProblem(
                f"unexpected `{operator}`", _span_of(operator), hint="`[id = 1]` tests for equality only"
            )
        below = () if value is None else (value,)
        return _build(tree.EquivalenceItem, _word(attribute), value, at=_span(attribute, value), below=below)


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


def _component(types: tuple[tree.TypeName, ...], rest: list[Any], *, any_of: bool) -> tree.Component:
    repetition, variable, brackets, span = _suffix(rest, _span(*types))
    return tree.Component(types, any_of, repetition, variable, brackets, span=span)


def _suffix(rest: list[Any], span: Span) -> tuple[tree.Repetition | None, str | None, bool, Span]:
    repetition, variable, brackets = None, None, False
    for item in rest:
        if isinstance(item, tree.Repetition):
            repetition, span = item, span.to(item.span)
        elif item is not None:
            name, marks = item
            variable, brackets = _word(name), marks is not None
            span = span.to(_span(name, marks))
    return repetition, variable, brackets, span


def _repetition(mark: tree.Mark, low: Token | None, high: Token | None, span: Span) -> tree.Repetition:
    minimum = int(low) if low is not None else 0
    maximum = int(high) if high is not None else None
    if minimum > 2**31 or (maximum is not None and (maximum > 2**31 or maximum < max(1, minimum))):
        raise BadRepetition("no number of events satisfies this", span, hint="write `{m,n}` with 0 ≤ m ≤ n and n ≥ 1")
    return tree.Repetition(mark, minimum, maximum, span=span)


def _quantity(amount: Token, unit: Token | None) -> tree.Quantity:
    name = TICKS if unit is None else unit_named(unit)
    if name is None:
        raise BadDuration(
            f"`{unit}` is not a unit",
            _span(unit),
            hint=did_you_mean(str(unit), all_units()) or "for example `12 hours`",
        )
    span = _span(amount, unit)
    if amount.type == "PARAMETER":
        return tree.Quantity(tree.Parameter(str(amount)[1:], span=_span_of(amount)), name, span=span)
    if len(amount) > 40:
        raise BadDuration("this amount is too large", span)
    return tree.Quantity(Fraction(str(amount)), name, span=span)


def _text(token: Token) -> str:
    quote, body = token[0], str(token)[1:-1]
    return body.replace(quote * 2, quote) if quote in "'\"" else body


def _flat(node: type[tree.And] | type[tree.Or], operands: list[Any]) -> tree.Expression:
    """Nested ANDs (ORs) written with parentheses are one list."""
    flat: list[Any] = []
    for operand in operands:
        flat.extend(operand.operands if isinstance(operand, node) else [operand])
    return _build(node, tuple(flat), at=_span(*operands), below=tuple(flat))


def _index(variable: Token, index: tuple[str, list[Token]]) -> tree.Index | None:
    kind, tokens = index
    span = _span(variable, *tokens)
    hint = "an index is `1`, `i`, `i-1`, `a.LEN`, `..` or `..i-1`"
    if kind == "brackets":
        return None
    if kind == "all":
        return tree.Index.ALL
    if kind == "number" and tokens[0] == "1":
        return tree.Index.FIRST
    if kind == "name" and tokens[0] in ("i", "I"):
        return tree.Index.CURRENT
    if kind in ("previous", "so far") and tokens[0] in ("i", "I") and tokens[2] == "1":
        return tree.Index.PREVIOUS if kind == "previous" else tree.Index.SO_FAR
    if kind == "last" and _word(tokens[0]) == _word(variable) and tokens[1].casefold() == "len":
        return tree.Index.LAST
    raise SyntaxProblem("this index has no meaning", span, hint=hint)


def aggregate_named(call: tree.Call) -> str:
    """The aggregate that a call names, in lower case."""
    name = call.function.casefold()
    if name not in AGGREGATES:
        span = Span(call.span.start, call.span.start + len(call.function))
        raise UnknownFunction(f"unknown function `{call.function}`", span, hint=did_you_mean(name, AGGREGATES))
    return name
