"""Conditions and values: one method a rule of the grammar; each gets its children, already built."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from lark import Token

from kleene.errors import BadChain, BadLiteral, Span, SyntaxProblem
from kleene.lang import tree
from kleene.lang.advice import in_braces
from kleene.lang.building import build, place_of, quantity_of, span_of, text_of, word

# One more than fits, since `-9223372036854775808` is written with a sign; binding refuses it alone.
_MAX_INTEGER = 2**63
_STRATEGIES = frozenset(strategy.value for strategy in tree.SelectionStrategy)
_PLAIN_ITEM = re.compile(r"(-?)(\d+(?:\.\d+)?)|'([^']*(?:''[^']*)*)'")
_OPERATORS = {"==": "=", "<>": "!=", "≠": "!=", "≤": "<=", "≥": ">="}


class Expressions:
    def expression(self, operands: list[Any]) -> tree.Expression:
        return _flat(tree.Or, operands)

    def conjoined(self, operands: list[Any]) -> tree.Expression:
        return _flat(tree.And, operands)

    def inverted(self, items: list[Any]) -> tree.Not:
        mark, operand = items
        return build(tree.Not, operand, at=place_of(mark, operand), below=(operand,))

    def compared(self, items: list[Any]) -> tree.Expression:
        operands = tuple(items[0::2])
        operators = [_OPERATORS.get(str(token), str(token)) for token in items[1::2]]
        span = place_of(*operands)
        if len(operators) == 1:
            return build(tree.Comparison, operators[0], *operands, at=span, below=operands)
        for operator, token in zip(operators, items[1::2], strict=True):
            if operator != "=":
                raise BadChain(
                    f"`{token}` cannot be chained", span_of(token), hint="join two comparisons with AND instead"
                )
        return build(tree.EqualityChain, operands, at=span, below=operands)

    def contains(self, items: list[Any]) -> tree.Expression:
        left, negated, right = items
        at = place_of(left, right)
        node = build(tree.Contains, left, right, at=at, below=(left, right))
        return node if negated is None else build(tree.Not, node, at=at, below=(node,))

    def in_list(self, items: list[Any]) -> tree.In:
        operand, negated, *values, closing = items
        below = (operand, *values)
        return build(tree.In, operand, tuple(values), negated is not None, at=place_of(*below, closing), below=below)

    def in_plain_list(self, items: list[Any]) -> tree.In:
        operand, negated, token = items
        values = tuple(self._plain_items(token))
        at = place_of(operand, token)
        return build(tree.In, operand, values, negated is not None, at=at, below=(operand, *values))

    def _plain_items(self, listed: Token) -> Iterator[tree.Expression]:
        begin = listed.start_pos or 0
        for match in _PLAIN_ITEM.finditer(listed):
            sign, number, text = match.groups()
            start, end = begin + match.start(), begin + match.end()
            if text is not None:
                yield tree.Literal(text.replace("''", "'"), span=Span(start, end))
            elif sign or len(number) > 15 or "." in number:
                # As everywhere else, with its checks.
                place = start + len(sign)
                kind = "FLOAT" if "." in number else "INT"
                value = (self.real if "." in number else self.integer)([Token(kind, number, start_pos=place)])
                yield self.negative([Token("MINUS", "-", start_pos=start), value]) if sign else value
            else:
                yield tree.Literal(int(number), span=Span(start, end))

    def in_parameter(self, items: list[Any]) -> tree.In:
        operand, negated, token = items
        listed = self.parameter([token])
        return build(tree.In, operand, (listed,), negated is not None, at=place_of(operand, token), below=(operand,))

    def between(self, items: list[Any]) -> tree.Between:
        operand, negated, low, high = items
        below = (operand, low, high)
        return build(tree.Between, *below, negated is not None, at=place_of(*below), below=below)

    def is_null(self, items: list[Any]) -> tree.IsNull:
        operand, negated, null = items
        return build(tree.IsNull, operand, negated is not None, at=place_of(operand, null), below=(operand,))

    def sum(self, items: list[Any]) -> tree.Expression:
        result = items[0]
        for operator, right in zip(items[1::2], items[2::2], strict=True):
            below = (result, right)
            result = build(tree.Arithmetic, str(operator), result, right, at=place_of(*below), below=below)
        return result  # type: ignore[no-any-return]

    product = sum

    def negative(self, items: list[Any]) -> tree.Expression:
        mark, operand = items
        return build(tree.Negative, operand, at=place_of(mark, operand), below=(operand,))

    def percent(self, items: list[Any]) -> tree.Percent:
        operand, mark = items
        return build(tree.Percent, operand, at=place_of(operand, mark), below=(operand,))

    def parenthesised(self, items: list[Any]) -> tree.Expression:
        return items[0]  # type: ignore[no-any-return]

    def integer(self, items: list[Any]) -> tree.Literal:
        if len(items[0]) > 30 or int(items[0]) > _MAX_INTEGER:
            raise BadLiteral(
                "this integer does not fit 64 bits", span_of(items[0]), hint="write it as a decimal: `1e20`"
            )
        return tree.Literal(int(items[0]), span=span_of(items[0]))

    def real(self, items: list[Any]) -> tree.Literal:
        value = float(items[0])
        if value == float("inf"):
            raise BadLiteral("this number is too large", span_of(items[0]))
        return tree.Literal(value, span=span_of(items[0]))

    def string(self, items: list[Any]) -> tree.Literal:
        return tree.Literal(text_of(items[0]), span=span_of(items[0]))

    def true(self, items: list[Any]) -> tree.Literal:
        return tree.Literal(True, span=span_of(items[0]))

    def false(self, items: list[Any]) -> tree.Literal:
        return tree.Literal(False, span=span_of(items[0]))

    def null(self, items: list[Any]) -> tree.Literal:
        return tree.Literal(None, span=span_of(items[0]))

    def parameter(self, items: list[Any]) -> tree.Parameter:
        return tree.Parameter(str(items[0])[1:], span=span_of(items[0]))

    def duration_literal(self, items: list[Any]) -> tree.Duration:
        quantity = quantity_of(items[0], items[1])
        return tree.Duration((quantity,), span=quantity.span)

    def typed_literal(self, items: list[Any]) -> tree.Timestamp:
        name, text = items
        if name.casefold() != "timestamp":
            raise BadLiteral(f"there is no literal `{name} '…'`", place_of(name, text), hint="`TIMESTAMP '…'` is one")
        return tree.Timestamp(text_of(text), span=place_of(name, text))

    def name(self, items: list[Any]) -> tree.Name:
        return tree.Name(word(items[0]), span=span_of(items[0]))

    def attribute(self, items: list[Any]) -> tree.Attribute:
        variable, attribute = items
        return tree.Attribute(
            word(variable),
            None,
            word(attribute),
            span=place_of(variable, attribute),
            variable_span=span_of(variable),
            attribute_span=span_of(attribute),
        )

    def indexed_attribute(self, items: list[Any]) -> tree.Attribute:
        variable, index, attribute = items
        return tree.Attribute(
            word(variable),
            _index(variable, index),
            word(attribute),
            span=place_of(variable, attribute),
            variable_span=span_of(variable),
            attribute_span=span_of(attribute),
        )

    def events(self, items: list[Any]) -> tree.Events:
        variable, index = items
        return tree.Events(word(variable), _index(variable, index), span=place_of(variable, *index[1]))

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
        function, *arguments, closing = items
        at = place_of(function, closing)
        return build(tree.Call, word(function), tuple(arguments), at=at, below=tuple(arguments))

    def equivalence(self, items: list[Any]) -> tree.Equivalence:
        tests = tuple(items[1:-1])
        return build(tree.Equivalence, tests, at=place_of(*items), below=tests)

    def equivalence_item(self, items: list[Any]) -> tree.EquivalenceItem:
        attribute, operator, value = items
        if operator is not None and operator not in ("=", "=="):
            raise SyntaxProblem(
                f"unexpected `{operator}`", span_of(operator), hint="`[id = 1]` tests for equality only"
            )
        below = () if value is None else (value,)
        return build(tree.EquivalenceItem, word(attribute), value, at=place_of(attribute, value), below=below)


def _flat(node: Callable[..., tree.And | tree.Or], operands: list[Any]) -> tree.Expression:
    """Nested ANDs (ORs) written with parentheses are one list."""
    flat: list[Any] = []
    for operand in operands:
        flat.extend(operand.operands if type(operand) is node else [operand])
    return build(node, tuple(flat), at=place_of(*operands), below=tuple(flat))


def _index(variable: Token, index: tuple[str, list[Token]]) -> tree.Index | tree.Nth | None:
    kind, tokens = index
    span = place_of(variable, *tokens)
    hint = "an index is a number from 1 on, `i`, `i-1`, `a.LEN`, `..` or `..i-1`"
    if kind == "brackets":
        return None
    if kind == "all":
        return tree.Index.ALL
    if kind == "number" and len(tokens[0]) < 10 and int(tokens[0]):
        position = int(tokens[0])
        return tree.Index.FIRST if position == 1 else tree.Nth(position)
    if kind == "name" and tokens[0] in ("i", "I"):
        return tree.Index.CURRENT
    if kind in ("previous", "so far") and tokens[0] in ("i", "I") and tokens[2] == "1":
        return tree.Index.PREVIOUS if kind == "previous" else tree.Index.SO_FAR
    if kind == "last" and word(tokens[0]) == word(variable) and tokens[1].casefold() == "len":
        return tree.Index.LAST
    if variable.casefold() in _STRATEGIES:
        body = "".join(tokens[:-1])
        raise SyntaxProblem("a strategy has no index", span, hint=in_braces(str(variable), f"[{body}]"))
    raise SyntaxProblem("this index has no meaning", span, hint=hint)
