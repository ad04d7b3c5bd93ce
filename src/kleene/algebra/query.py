"""A query of the stream algebra: parsed once, bound to as many schemas as there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from kleene.algebra.bind import StreamBinder
from kleene.algebra.names import DUR, LAST, show
from kleene.algebra.nodes import AttributeName, Node, StreamSource, sources
from kleene.errors import DuplicateColumn, QueryWarning, ReservedName, Span, UnknownSpelling
from kleene.lang import stream_tree, tree
from kleene.lang.eql_tree import EqlQuery as EqlQueryTree
from kleene.lang.format_streams import format_stream_query
from kleene.lang.stream_tree import StreamQuery as StreamQueryTree
from kleene.pattern.bind_pattern import RESULT_COLUMNS
from kleene.pattern.classes import ClassBinder
from kleene.pattern.schema import Schema, is_private
from kleene.pattern.sinks import columns_of_every_result
from kleene.pattern.types import ValueType
from kleene.pattern.written_query import WrittenQuery


@dataclass(frozen=True, slots=True)
class BoundStreamQuery:
    """A query on a schema: every name resolved and typed. Immutable; says what is meant, not how it runs."""

    name: str
    schema: Schema
    root: Node
    # The stream that others can read.
    publish: str | None
    digest: bytes
    warnings: tuple[QueryWarning, ...] = ()
    # Of a part of another query (`cutting`): the column of each attribute in the events that it makes.
    part_columns: tuple[tuple[AttributeName, str], ...] | None = None
    # What was parsed, for the places of errors that are known only when it is to run.
    written: StreamQuery | None = field(default=None, compare=False, repr=False)

    @property
    def types(self) -> tuple[str, ...]:
        """The event types that the query reads."""
        return tuple(dict.fromkeys(name for source in sources(self.root) for name in source.event_class.types))

    @property
    def output(self) -> tree.OutputMode:
        """Every result is shown."""
        return tree.OutputMode.ALL

    @property
    def into(self) -> str | None:
        """The stream that it makes of its results."""
        return self.publish

    @property
    def timeouts(self) -> str | None:
        """There are none: an instance that nothing can serve any more is gone."""
        return None

    @property
    def makes(self) -> tuple[str, ...]:
        return () if self.publish is None else (self.publish,)

    @property
    def made_types(self) -> dict[str, dict[str, ValueType]]:
        """The type of the events that it makes, and their attributes, which are called by their names alone."""
        types = dict(self.root.schema.attributes)
        return {name: {column: types[attribute] for attribute, column in self.made_columns} for name in self.makes}

    @property
    def made_columns(self) -> tuple[tuple[AttributeName, str], ...]:
        """The column of each attribute in the events that it makes."""
        if self.part_columns is not None:
            return self.part_columns
        return tuple((attribute, attribute[1]) for attribute in self.root.schema.names)

    @property
    def result_types(self) -> dict[str, ValueType]:
        """The columns of its result, and what they hold: those of a stream id are a struct."""
        types = dict(self.root.schema.attributes)
        columns = columns_of_every_result(self.schema.clock)
        for column, ((stream, name), *_) in self.result_columns.items():
            columns[column] = ValueType.OTHER if stream else types[stream, name]
        return columns

    @property
    def columns_read(self) -> tuple[str, ...]:
        """The columns that become attributes of a stream, and those that say when events are and of what type."""
        named = {column for source in sources(self.root) for _, column in source.columns}
        return tuple(sorted(named | set(self.schema.own_columns)))

    def columns_compared(self, columns: Iterable[str]) -> tuple[str, ...]:
        """The columns that tell events of a table apart: those that the query reads."""
        return tuple(name for name in self.columns_read if not is_private(name))

    def place_of(self, source: StreamSource) -> Span | None:
        """Where the text names a stream, or writes the part of the query that it is."""
        if self.written is None:
            return None
        parsed = self.written.tree
        if is_private(source.id):
            return self.written.place_of_part(source.id, self.schema)
        named = (node for node in tree.walk(parsed.stream) if isinstance(node, stream_tree.StreamSource))
        return next((node.span for node in named if source.id == (node.id or node.type.name)), parsed.stream.span)

    @property
    def result_columns(self) -> dict[str, list[AttributeName]]:
        """The columns of a result besides those that every result has: one for each stream id, with its attributes,
        and one for each attribute that was renamed or introduced."""
        columns: dict[str, list[AttributeName]] = {}
        for stream, name in self.root.schema.names:
            columns.setdefault(stream or name, []).append((stream, name))
        return columns


@dataclass(frozen=True)
class StreamQuery(WrittenQuery):
    """A parsed query of the stream algebra.

    >>> StreamQuery("σ{price > 100}(Stock)").bind(Schema()).types
    ('Stock',)
    """

    @cached_property
    def tree(self) -> StreamQueryTree:
        # A stream's name alone is an expression, too, and no text of any other spelling.
        parsed = self._parsed("cesar")
        if not isinstance(parsed, StreamQueryTree):
            is_eql = isinstance(parsed, EqlQueryTree)
            raise UnknownSpelling(
                "this is a query in EQL" if is_eql else "this is a pattern",
                hint="`kleene.query(text)` reads it, and expressions of streams",
            )
        return parsed

    @cached_property
    def canonical(self) -> str:
        """The expression on one line in CESAR's spelling, without declarations."""
        return format_stream_query(replace(self.tree, declarations=()), width=None)

    @cached_property
    def columns_named(self) -> tuple[str, ...]:
        """The names that the text reads and does not introduce: columns of its events, for all it says."""
        introduced: set[str] = set()
        names: dict[str, None] = {}
        for node in tree.walk(self.tree.stream):
            match node:
                case stream_tree.Renaming(name=name) | stream_tree.Assignment(attribute=tree.Name(name=name)):
                    introduced.add(name)
                case tree.Attribute(attribute=name) if name.casefold() != LAST:
                    names[name] = None
                case tree.Attribute(variable=name) | tree.Name(name=name):
                    names[name] = None
        return tuple(name for name in names if name not in introduced and name.casefold() != DUR)

    def bind(self, schema: Schema | None = None, *, checking: bool = False) -> BoundStreamQuery:
        """Resolve every name against a schema; the text's own declarations go first.

        A query that is only checked may leave its parameters without values.
        """
        return self._bound_to(schema or Schema(), checking, self._bound)

    def place_of_part(self, name: str, schema: Schema) -> Span:
        """Where the text writes a part that is a stream of its own (`cutting`): its name ends with its digest."""
        binder = StreamBinder(schema, ClassBinder(schema, self.params, True).named, self.params, True)
        binary = (node for node in tree.walk(self.tree.stream) if isinstance(node, stream_tree.Next | stream_tree.Fold))
        parts = (part for node in binary for part in _below(node.right))
        named = (part.span for part in parts if name.endswith(binder.bind(part).digest.hex()))
        return next(named, self.tree.stream.span)

    def _bound(self, schema: Schema, checking: bool) -> BoundStreamQuery:
        classes = ClassBinder(schema, self.params, checking)
        for declaration in self.tree.declarations:
            if isinstance(declaration, tree.ClassDeclaration):
                classes.bound(declaration)
        root = StreamBinder(schema, classes.named, self.params, checking).bind(self.tree.stream)
        _check_columns(root, self.tree, schema)
        digest = self.digest(schema, {source.event_class.name for source in sources(root)})
        name = self.name or self.tree.publish or f"q{digest.hex()[:8]}"
        return BoundStreamQuery(name, schema, root, self.tree.publish, digest, written=self)


def _below(stream: stream_tree.Stream) -> Iterator[stream_tree.Stream]:
    """A stream, and what each of its unary operations is applied to."""
    yield stream
    while isinstance(stream, stream_tree.Unary):
        stream = stream.operand
        yield stream


def _check_columns(root: Node, parsed: StreamQueryTree, schema: Schema) -> None:
    """A result has a column for each stream id and for each attribute without one: none may share its name.

    The attributes of a stream that others read are called by their names alone.
    """
    ids = {stream for stream, _ in root.schema.names if stream}
    for stream, name in root.schema.names:
        column = stream or name
        if column in RESULT_COLUMNS:
            at = _place_of(column, parsed)
            raise ReservedName(f"`{column}` is a column of every result", at, hint="call it otherwise")
        if not stream and name in ids:
            at = _place_of(name, parsed)
            raise DuplicateColumn(
                f"`{show((stream, name))}` is an attribute and the id of a stream", at, hint="rename one"
            )
    if parsed.publish is not None:
        _check_published(parsed.publish, root, parsed, schema)


def _check_published(publish: str, root: Node, parsed: StreamQueryTree, schema: Schema) -> None:
    for attribute, times in Counter(name for _, name in root.schema.names).items():
        if attribute in schema.own_columns:
            raise ReservedName(
                f"`{attribute}` is a column of every event, those of `{publish}` too",
                _place_of(attribute, parsed),
                hint=f"call the attribute otherwise: `ρ{{{attribute} ↦ {attribute}_}}(…)`",
            )
        if times > 1:
            listed = ", ".join(f"`{show(each)}`" for each in root.schema.names if each[1] == attribute)
            raise DuplicateColumn(
                f"several attributes of `{publish}` would be called `{attribute}`: {listed}",
                parsed.publish_span,
                hint="rename them before: ρ{… ↦ …}, or leave some out: π{…}",
            )


def _place_of(column: str, parsed: StreamQueryTree) -> Span:
    """Where the text gives this name to an attribute or a stream; the whole text, if it does not."""
    for node in tree.walk(parsed.stream):
        match node:
            case stream_tree.Rename(renamings=renamings) if any(each.name == column for each in renamings):
                return node.span
            case stream_tree.Compute(assignments=assignments) if any(
                isinstance(each.attribute, tree.Name) and each.attribute.name == column for each in assignments
            ):
                return node.span
            case stream_tree.StreamSource(id=name) if name == column:
                return node.id_span
    return parsed.span
