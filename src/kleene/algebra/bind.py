"""Bind an expression of the stream algebra: every name resolved, the schema of every sub-expression computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from kleene.algebra.names import Overwritten, StreamScopes, show
from kleene.algebra.nodes import (
    AttributeName,
    Carried,
    Compute,
    Filter,
    Fold,
    Next,
    Node,
    Project,
    Rename,
    StreamSchema,
    StreamSource,
    StreamUnion,
    chain,
    walk,
)
from kleene.errors import (
    AmbiguousAttribute,
    DuplicateColumn,
    IncompleteStep,
    NoInitialValue,
    NotUnionCompatible,
    Span,
    TypeMismatch,
    UnknownAttribute,
    UnknownVariable,
)
from kleene.lang import stream_tree, tree
from kleene.pattern.expressions import Attribute, Clause, Value, Which, references
from kleene.pattern.nodes import EventClass
from kleene.pattern.normal_form import clauses_of
from kleene.pattern.schema import Schema, is_private
from kleene.pattern.types import NUMERIC, ValueType, comparable

Attributes = Mapping[AttributeName, ValueType]


@dataclass(frozen=True, slots=True)
class StreamBinder:
    """Binds the expressions of one query.

    classes   the class that a name of a type or class stands for
    """

    schema: Schema
    classes: Callable[[tree.TypeName], EventClass]
    params: Mapping[str, object]
    # A query that is only checked may leave parameters open.
    checking: bool = False

    def bind(self, stream: stream_tree.Stream) -> Node:
        match stream:
            case stream_tree.StreamSource():
                return self._source(stream)
            case stream_tree.StreamUnion(parts):
                return self._union(parts, [self.bind(part) for part in parts])
            case stream_tree.Next():
                return self._next(stream)
            case stream_tree.Fold():
                return self._fold(stream)
            case stream_tree.Carried():
                raise TypeError("only the step of a fold has an operand that is carried")
        operand = self.bind(stream.operand)
        return self._unary(stream, operand, overwritten(operand) if isinstance(stream, stream_tree.Select) else None)

    def _scopes(self, below: Iterable[Node], schema: StreamSchema, last: Overwritten | None = None) -> StreamScopes:
        return StreamScopes(
            self.schema,
            {},
            params=self.params,
            open_parameters=self.checking,
            stream=schema,
            overwritten=last or Overwritten(),
            dropped=frozenset(name for node in below for name in dropped(node)),
        )

    # Leaves

    def _source(self, stream: stream_tree.StreamSource) -> StreamSource:
        event_class = self.classes(stream.type)
        name = stream.id or stream.type.name
        attributes: dict[AttributeName, ValueType] = {}
        own = set(self.schema.own_columns)
        for each in event_class.types:
            known = self.schema.attributes_of(each)
            if known is None:
                return StreamSource(event_class, name, StreamSchema((), (name,)))
            for attribute, kind in known.items():
                if attribute not in own and not is_private(attribute):
                    _add(attributes, {(name, attribute): kind}, stream.span)
        columns = tuple((attribute, attribute[1]) for attribute in attributes)
        return StreamSource(event_class, name, _schema(attributes), columns)

    # Unary operations

    def _unary(
        self, stream: stream_tree.Unary, operand: Node, last: Overwritten | None
    ) -> Filter | Project | Rename | Compute:
        """A unary operation on what is bound; `last` are the attributes whose `.last` it may name."""
        scopes = self._scopes([operand], operand.schema, last)
        match stream:
            case stream_tree.Select(_, condition):
                return Filter(operand, _clauses(scopes, condition), operand.schema)
            case stream_tree.Project(_, attributes):
                return Project(operand, self._projected(attributes, scopes))
            case stream_tree.Rename(_, renamings):
                return self._renamed(renamings, operand, scopes)
            case stream_tree.Compute(_, assignments):
                return self._computed(assignments, operand, scopes)

    def _projected(self, attributes: Iterable[stream_tree.AttributeName], scopes: StreamScopes) -> StreamSchema:
        types: dict[AttributeName, ValueType] = {}
        for node in attributes:
            name = scopes.resolve(node)
            if name in types:
                raise DuplicateColumn(f"`{show(name)}` is named twice", node.span, hint="name each attribute once")
            types[name] = _known(scopes.stream.type_of(name))
        return _schema(types)

    def _renamed(self, renamings: Iterable[stream_tree.Renaming], operand: Node, scopes: StreamScopes) -> Rename:
        names: dict[AttributeName, AttributeName] = {}
        for node in renamings:
            name = scopes.resolve(node.attribute)
            if name in names:
                raise DuplicateColumn(f"`{show(name)}` is renamed twice", node.span, hint="rename each attribute once")
            names[name] = "", node.name
        attributes: dict[AttributeName, ValueType] = {}
        listed = [*operand.schema.attributes]
        known = {name for name, _ in listed}
        # Of an open stream an attribute is known when it is named.
        listed += [(name, ValueType.UNKNOWN) for name in names if name not in known]
        for name, kind in listed:
            new = names.get(name, name)
            if new in attributes:
                at = next(node.span for node in renamings if ("", node.name) == new)
                raise DuplicateColumn(f"two attributes are called `{show(new)}`", at, hint="choose another name")
            attributes[new] = kind
        return Rename(operand, tuple(names.items()), _schema(attributes, operand.schema.open))

    def _computed(self, assignments: Iterable[stream_tree.Assignment], operand: Node, scopes: StreamScopes) -> Compute:
        values: dict[AttributeName, Value] = {}
        for node in assignments:
            name = self._assigned(node.attribute, scopes)
            if name in values:
                raise DuplicateColumn(f"`{show(name)}` is assigned twice", node.span, hint="assign each attribute once")
            values[name] = scopes.value(node.value)
        attributes = dict(operand.schema.attributes) | {name: value.type for name, value in values.items()}
        return Compute(operand, tuple(values.items()), _schema(attributes, operand.schema.open))

    def _assigned(self, node: stream_tree.AttributeName, scopes: StreamScopes) -> AttributeName:
        """The attribute that is overwritten, or a new one without a stream; where columns are not known, a new one."""
        if isinstance(node, tree.Name) and not scopes.known(node.name):
            return "", node.name
        return scopes.resolve(node)

    # Binary operations

    def _union(self, trees: tuple[stream_tree.Stream, ...], parts: list[Node]) -> StreamUnion:
        """Attributes of all parts must be the same, whatever their order; numbers may be of several types."""
        first = parts[0]
        attributes = dict(first.schema.attributes)
        for node, part in zip(trees[1:], parts[1:], strict=True):
            if first.schema.open or part.schema.open:
                continue
            mine, other = set(first.schema.names), set(part.schema.names)
            for names, more in ((mine - other, "the first stream of this union"), (other - mine, "this stream")):
                if names:
                    shown = ", ".join(f"`{show(name)}`" for name in sorted(names))
                    raise NotUnionCompatible(
                        f"{more} has {shown}, and the other has not",
                        node.span,
                        hint="give both the same attributes: π drops some, ρ calls them alike",
                    )
            _add(attributes, dict(part.schema.attributes), node.span)
        open_ids = tuple(dict.fromkeys(name for part in parts for name in part.schema.open))
        return StreamUnion(tuple(parts), _schema(attributes, open_ids))

    def _next(self, stream: stream_tree.Next) -> Next:
        left, right = self.bind(stream.left), self.bind(stream.right)
        schema = _composite(left.schema, right.schema)
        scopes = self._scopes([left, right], schema, _shared(left.schema, right.schema))
        condition = () if stream.condition is None else _clauses(scopes, stream.condition)
        return Next(left, right, condition, schema)

    def _fold(self, stream: stream_tree.Fold) -> Fold:
        left, right = self.bind(stream.left), self.bind(stream.right)
        init = self._init(stream, left, right)
        attributes = dict(left.schema.attributes)
        for name, value in init.items():
            _add(attributes, {name: value.type}, stream.span)
        _add(attributes, dict(right.schema.attributes), stream.span)
        open_ids = tuple(dict.fromkeys((*left.schema.open, *right.schema.open)))
        while True:
            schema = _schema(attributes, open_ids)
            last = _folded(right.schema, (*init, *self._changed(stream.step, schema)))
            scopes = self._scopes([left, right], schema, last)
            condition = () if stream.condition is None else _clauses(scopes, stream.condition)
            step = self._step(stream.step, Carried(schema), last)
            missing = [name for name in schema.names if step.schema.type_of(name) is None]
            if missing:
                raise IncompleteStep(
                    f"after the step of this fold there is no `{show(missing[0])}`, which the next round begins with",
                    stream.step.span,
                    hint="a step may overwrite attributes (α), but not drop or rename them",
                )
            wider = dict(attributes)
            for name, kind in step.schema.attributes:
                if name in wider:
                    _add(wider, {name: kind}, stream.step.span)
            if wider == attributes:
                break
            # A step that computes reals makes a real of what began as an integer.
            attributes = wider
        if step.schema is not schema:
            step = Project(step, schema)
        entry = tuple(clause for clause in condition if not reads_last(clause))
        return Fold(left, right, tuple(init.items()), entry, condition, step, schema)

    def _changed(self, step: stream_tree.Stream, schema: StreamSchema) -> Iterator[AttributeName]:
        """The attributes of a fold that its step assigns to: each round overwrites them, too."""
        scopes = self._scopes([], schema)
        while isinstance(step, stream_tree.Unary):
            if isinstance(step, stream_tree.Compute):
                for node in step.assignments:
                    with suppress(UnknownAttribute, UnknownVariable, AmbiguousAttribute):
                        yield scopes.resolve(node.attribute)
            step = step.operand

    def _step(self, stream: stream_tree.Stream, carried: Carried, last: Overwritten) -> Node:
        if isinstance(stream, stream_tree.Carried):
            return carried
        assert isinstance(stream, stream_tree.Unary), "the grammar has chains of unary operations"
        return self._unary(stream, self._step(stream.operand, carried, last), last)

    def _init(self, stream: stream_tree.Fold, left: Node, right: Node) -> dict[AttributeName, Value]:
        """What the attributes of the right begin with (CESAR §2.3): what was declared, or what namesakes have."""
        scopes = self._scopes([left], left.schema)
        targets = self._scopes([right], right.schema)
        init: dict[AttributeName, Value] = {}
        for node in stream.init:
            name = targets.resolve(node.attribute)
            if name in init:
                raise DuplicateColumn(f"`{show(name)}` has two first values", node.span, hint="give it one")
            init[name] = scopes.value(node.value)
        for name in right.schema.names:
            if name in init or left.schema.type_of(name) is not None:
                continue
            namesakes = [other for other in left.schema.names if other[1] == name[1]]
            if not namesakes and left.schema.open:
                # Nothing is known of the columns yet, and one of them may be the namesake.
                namesakes = [(left.schema.open[0], name[1])]
            if len(namesakes) != 1:
                why = "several attributes of the left are" if namesakes else "no attribute of the left is"
                raise NoInitialValue(
                    f"`{show(name)}` has no value before the first round: {why} called `{name[1]}`",
                    stream.span,
                    hint=f"say what it begins with: `init {show(name)} ↦ …`",
                )
            stream_id, attribute = namesakes[0]
            init[name] = Attribute(stream_id, Which.SINGLE, attribute, _known(left.schema.type_of(namesakes[0])))
        return init


def overwritten(node: Node) -> Overwritten:
    """The attributes whose `.last` a selection right above a node may name."""
    if isinstance(node, Filter):
        return overwritten(node.operand)
    if isinstance(node, Next):
        return _shared(node.left.schema, node.right.schema)
    if isinstance(node, Fold):
        assigned = (name for each in chain(node.step)[0] if isinstance(each, Compute) for name, _ in each.assignments)
        changed = (name for name in assigned if node.schema.type_of(name) is not None)
        return _folded(node.right.schema, (*dict(node.init), *changed))
    return Overwritten()


def dropped(node: Node) -> set[AttributeName]:
    """What the projections below a node, and its own, have dropped."""
    gone = {
        name
        for each in walk(node)
        if isinstance(each, Project)
        for name in set(each.operand.schema.names) - set(each.schema.names)
    }
    return gone - set(node.schema.names)


def reads_last(clause: Clause) -> bool:
    """Whether a clause names what was overwritten."""
    return any(isinstance(each, Attribute) and each.which is Which.OVERWRITTEN for each in references(clause))


def _clauses(scopes: StreamScopes, condition: tree.Expression) -> tuple[Clause, ...]:
    return clauses_of(scopes.condition(condition), condition.span)


def _composite(left: StreamSchema, right: StreamSchema) -> StreamSchema:
    """The attributes of both; of namesakes those of the right, which overwrite."""
    open_ids = tuple(dict.fromkeys((*left.open, *right.open)))
    return _schema({**dict(left.attributes), **dict(right.attributes)}, open_ids)


def _shared(left: StreamSchema, right: StreamSchema) -> Overwritten:
    """What `;` overwrites: the namesakes of both sides."""
    names = set(left.names) & set(right.names)
    names |= {name for name in left.names if name[0] in right.open} | {
        name for name in right.names if name[0] in left.open
    }
    return Overwritten(frozenset(names), frozenset(left.open) & frozenset(right.open), left.attributes)


def _folded(right: StreamSchema, more: Iterable[AttributeName]) -> Overwritten:
    """What each round of a fold overwrites: the attributes of the right, and those that its step assigns to."""
    return Overwritten(frozenset((*right.names, *more)), frozenset(right.open))


def _schema(attributes: Attributes, open_ids: tuple[str, ...] = ()) -> StreamSchema:
    return StreamSchema(tuple(attributes.items()), open_ids)


def _known(kind: ValueType | None) -> ValueType:
    return ValueType.UNKNOWN if kind is None else kind


def _add(attributes: dict[AttributeName, ValueType], more: Attributes, span: Span) -> None:
    """Add attributes; one that is there already gets a type that holds the values of both."""
    for name, kind in more.items():
        known = attributes.get(name, kind)
        if known is kind or ValueType.UNKNOWN in (known, kind):
            attributes[name] = kind if known is kind else ValueType.UNKNOWN
        elif ValueType.NULL in (known, kind):
            attributes[name] = kind if known is ValueType.NULL else known
        elif {known, kind} <= NUMERIC:
            attributes[name] = ValueType.FLOAT if ValueType.FLOAT in (known, kind) else ValueType.DECIMAL
        else:
            assert not comparable(known, kind, "="), "what is comparable has a common type"
            raise TypeMismatch(
                f"`{show(name)}` is {known.value} here and {kind.value} there",
                span,
                hint="call one of them otherwise: ρ{… ↦ …}",
            )
