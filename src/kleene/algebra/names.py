"""What names mean above a stream: attributes with and without the id of a stream, `x.last`, and DUR."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction

from kleene.algebra.nodes import AttributeName, StreamSchema
from kleene.errors import (
    AggregateMisuse,
    AmbiguousAttribute,
    BadDuration,
    BadParameter,
    NothingOverwritten,
    NoTick,
    NotKleene,
    QueryError,
    Span,
    SyntaxProblem,
    TypeMismatch,
    UnknownAttribute,
    UnknownVariable,
    WindowMismatch,
    did_you_mean,
)
from kleene.lang import parse_duration, stream_tree, tree
from kleene.lang.format import format_duration, format_expression
from kleene.pattern.bind_expression import Scopes, with_value
from kleene.pattern.clock import ClockKind, in_ticks, tick_length
from kleene.pattern.expressions import Attribute, Constant, Elapsed, Literal, Value, Which
from kleene.pattern.normal_form import Condition
from kleene.pattern.secrets import is_secret
from kleene.pattern.types import ValueType

DUR = "dur"
LAST = "last"
_DECLARE_TICK = "`DECLARE STREAM (tick 1 second)` or Schema(tick='1 second')"


@dataclass(frozen=True, slots=True)
class Overwritten:
    """The attributes that a newer event may have overwritten; of an open stream, all.

    types   those of the values before, where the newer ones may be of another type
    """

    names: frozenset[AttributeName] = frozenset()
    open: frozenset[str] = frozenset()
    types: tuple[tuple[AttributeName, ValueType], ...] = ()

    def __contains__(self, name: AttributeName) -> bool:
        return name in self.names or name[0] in self.open


@dataclass(slots=True)
class StreamScopes(Scopes):
    """All that an expression above a stream is bound with.

    stream        the attributes that it may name
    overwritten   those that the newest event may have overwritten: `.last` can be asked of them
    dropped       those that a projection below has dropped, for better errors
    """

    stream: StreamSchema = field(default_factory=lambda: StreamSchema(()))
    overwritten: Overwritten = field(default_factory=Overwritten)
    dropped: frozenset[AttributeName] = frozenset()

    def value(self, node: tree.Expression | Constant) -> Value:
        if isinstance(node, tree.LastValue):
            return self.last(node.attribute, node.span)
        return Scopes.value(self, node)

    def unqualified(self, node: tree.Name) -> Value:
        if node.name.casefold() == DUR and not self.known(node.name):
            return self.elapsed(node.span)
        return self._read(self.resolve(node), node.span)

    def attribute(self, node: tree.Attribute) -> Value:
        if node.index is not None:
            raise NotKleene(
                f"`{node.variable}` is a stream, and its events have no numbers",
                node.span,
                hint=f"`{node.variable}.{node.attribute}` is the value of the newest one,"
                f" `{node.variable}.{node.attribute}.last` that of the one before",
            )
        if node.attribute.casefold() == LAST and self.stream.type_of((node.variable, node.attribute)) is None:
            return self.last(tree.Name(node.variable, span=node.variable_span), node.span)
        return self._read(self.resolve(node), node.span)

    def last(self, node: stream_tree.AttributeName, span: Span) -> Value:
        """`x.last`: x before the newest event overwrote it."""
        name = self.resolve(node)
        if name not in self.overwritten:
            shown = format_expression(node)
            raise NothingOverwritten(
                f"no newer event overwrites `{shown}` here",
                span,
                hint=f"`.last` stands in a condition of `;` or μ, in the step of μ, or in a σ right above them;"
                f" the value itself is `{shown}`",
            )
        kind = dict(self.overwritten.types).get(name) or self._type(name)
        return self.placed(Attribute(name[0], Which.OVERWRITTEN, name[1], kind), span)

    def elapsed(self, span: Span) -> Value:
        clock = self.clock
        if clock.kind is not ClockKind.TIMESTAMP:
            return self.placed(Elapsed(ValueType.INT, 1, 1), span)
        if self.schema.tick is None:
            raise NoTick(
                "DUR counts the last tick of an event, and timestamps have none",
                span,
                hint=f"declare one: {_DECLARE_TICK}",
            )
        step = 1 if clock.nanoseconds is None else int(clock.nanoseconds)
        return self.placed(Elapsed(ValueType.DURATION, step, int(tick_length(self.schema.tick))), span)

    # Lengths of time beside DUR

    def compare(
        self, operator: str, left: tree.Expression, right: tree.Expression | Constant, span: Span, *, negate: bool
    ) -> Literal:
        if self._is_elapsed(left) and not isinstance(right, Constant):
            right = self._duration(right)
        elif self._is_elapsed(right):
            left = self._duration(left)
        return Scopes.compare(self, operator, left, right, span, negate=negate)

    def compared_in_one_unit(self, left: Value, right: Value, span: Span) -> tuple[Value, Value]:
        """A number beside DUR counts ticks, on timestamps too; a length of time beside integer times counts them."""
        if isinstance(left, Elapsed) and isinstance(right, Constant):
            return left, self._beside(left, right, span)
        if isinstance(right, Elapsed) and isinstance(left, Constant):
            return self._beside(right, left, span), right
        return Scopes.in_one_unit(self, left, right, span)

    def _beside(self, elapsed: Elapsed, constant: Constant, span: Span) -> Constant:
        """A constant in the unit of DUR: ticks, or nanoseconds on timestamps."""
        if elapsed.type is ValueType.DURATION and constant.type in (ValueType.INT, ValueType.FLOAT):
            length = Fraction(constant.value) * elapsed.tick
            if length.denominator != 1 or abs(length) >= 2**63:
                raise BadDuration("this is no whole number of nanoseconds that fits 64 bits", span)
            return with_value(constant, length.numerator, ValueType.DURATION)
        if elapsed.type is not ValueType.INT or constant.type is not ValueType.DURATION:
            return constant
        try:
            return with_value(constant, in_ticks(constant.value, self.clock, span), ValueType.INT)
        except WindowMismatch as error:
            error.hint = f"write ticks (`DUR <= 200`), or declare how long one is: {_DECLARE_TICK}"
            raise
        except BadDuration as error:
            error.hint = f"a tick is {self._tick}; name a multiple of it"
            raise

    @property
    def _tick(self) -> str:
        tick = self.schema.tick
        return format_duration(tick) if isinstance(tick, tree.Duration) else str(tick)

    def _is_elapsed(self, node: tree.Expression | Constant) -> bool:
        return isinstance(node, tree.Name) and node.name.casefold() == DUR and not self.known(node.name)

    def _duration(self, node: tree.Expression) -> tree.Expression:
        """What stands beside DUR: the text of a parameter is a length of time, as in WITHIN; any other is a mistake."""
        if isinstance(node, tree.Literal) and isinstance(node.value, str):
            raise TypeMismatch(
                "a length of time is no string", node.span, hint=f"it has no quotes: `DUR <= {node.value or '5 min'}`"
            )
        text = self.params.get(node.name) if isinstance(node, tree.Parameter) else None
        if not isinstance(node, tree.Parameter) or not isinstance(text, str) or is_secret(node.name):
            return node
        try:
            return replace(parse_duration(text), span=node.span)
        except QueryError:
            raise BadParameter(
                f"parameter `:{node.name}` is no length of time", node.span, hint="a number of ticks, or `30 min`"
            ) from None

    def aggregate(self, call: tree.Call) -> Value:
        hint = "in a stream it is computed as it goes: `μ{α{total ↦ total + price}, …}(α{total ↦ price}(S1), S2)`"
        if call.function.casefold() in (LAST, "prev", "previous", "lag"):
            hint = "the value before the newest event is `x.last`"
        raise AggregateMisuse(f"`{call.function}` aggregates the events of a pattern", call.span, hint=hint)

    def equivalence(self, node: tree.Equivalence, *, negate: bool) -> Condition:
        raise SyntaxProblem(
            "`[…]` compares the components of a pattern", node.span, hint="compare attributes: `S1.id = S2.id`"
        )

    # Names

    def resolve(self, node: stream_tree.AttributeName) -> AttributeName:
        """The attribute that is meant: by its stream and its name, or by a name that only one attribute has."""
        if isinstance(node, tree.Attribute):
            return self._qualified(node)
        if self.stream.type_of(("", node.name)) is not None:
            return "", node.name
        named = self._named(node.name)
        if len(named) > 1:
            shown = ", ".join(f"`{show(name)}`" for name in named[:4])
            raise AmbiguousAttribute(f"`{node.name}` could be {shown}", node.span, hint="say which stream is meant")
        if not named:
            raise UnknownAttribute(f"there is no attribute `{node.name}` here", node.span, hint=self._meant(node.name))
        return named[0]

    def _qualified(self, node: tree.Attribute) -> AttributeName:
        name = node.variable, node.attribute
        if self.stream.type_of(name) is not None:
            return name
        ids = {stream for stream, _ in self.stream.names} | set(self.stream.open)
        gone = {stream for stream, _ in self.dropped}
        if node.attribute.casefold() == LAST and self._named(node.variable):
            raise NothingOverwritten(
                f"`{node.variable}.last.last` would be two events back",
                node.span,
                hint=f"`{node.variable}.last` is one event back; carry older values along: `α{{older ↦ x.last}}`",
            )
        if node.variable not in ids | gone:
            raise UnknownVariable(
                f"there is no stream `{node.variable}` here",
                node.variable_span,
                hint=did_you_mean(node.variable, sorted(ids - {""})),
            )
        raise UnknownAttribute(
            f"`{node.variable}` has no attribute `{node.attribute}` here",
            node.attribute_span,
            hint=self._meant(node.attribute, node.variable),
        )

    def _named(self, name: str) -> list[AttributeName]:
        return self.known(name) or [(stream, name) for stream in self.stream.open]

    def known(self, name: str) -> list[AttributeName]:
        """The attributes with this name that are known to be there; of an open stream there may be more."""
        return [attribute for attribute in self.stream.names if attribute[1] == name]

    def _meant(self, name: str, stream: str | None = None) -> str | None:
        dropped = [each for each in self.dropped if each[1] == name and stream in (None, each[0])]
        if dropped:
            return f"π has dropped `{show(dropped[0])}`: keep it there, or test it below"
        known = [each[1] for each in self.stream.names if stream in (None, each[0])]
        return did_you_mean(name, known)

    def _type(self, name: AttributeName) -> ValueType:
        kind = self.stream.type_of(name)
        assert kind is not None, "a name that was resolved has a type"
        return kind

    def _read(self, name: AttributeName, span: Span) -> Value:
        return self.placed(Attribute(name[0], Which.SINGLE, name[1], self._type(name)), span)


def show(name: AttributeName) -> str:
    """An attribute as a query names it."""
    return f"{name[0]}.{name[1]}" if name[0] else name[1]
