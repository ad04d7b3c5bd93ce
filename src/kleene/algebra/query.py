"""A query of the stream algebra: parsed once, bound to as many schemas as there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b

from kleene.algebra.bind import StreamBinder
from kleene.algebra.names import show
from kleene.algebra.nodes import Node, sources
from kleene.errors import DuplicateColumn, QueryError, ReservedName
from kleene.lang import tree
from kleene.lang.cesar_spelling import parse
from kleene.lang.format import format_declaration
from kleene.lang.format_streams import format_stream_query
from kleene.lang.stream_tree import StreamQuery as StreamQueryTree
from kleene.pattern.bind_pattern import RESULT_COLUMNS
from kleene.pattern.classes import ClassBinder
from kleene.pattern.schema import Schema


@dataclass(frozen=True, slots=True)
class BoundStreamQuery:
    """A query on a schema: every name resolved and typed. Immutable; says what is meant, not how it runs."""

    name: str
    schema: Schema
    root: Node
    # The stream that others can read.
    publish: str | None
    digest: bytes

    @property
    def types(self) -> tuple[str, ...]:
        """The event types that the query reads."""
        return tuple(dict.fromkeys(name for source in sources(self.root) for name in source.event_class.types))


@dataclass(frozen=True)
class StreamQuery:
    """A parsed query of the stream algebra.

    >>> StreamQuery("σ{price > 100}(Stock)").bind(Schema()).types
    ('Stock',)
    """

    text: str
    name: str | None = None
    params: Mapping[str, object] = field(default_factory=dict)

    @cached_property
    def tree(self) -> StreamQueryTree:
        return parse(self.text)

    def bind(self, schema: Schema | None = None, *, checking: bool = False) -> BoundStreamQuery:
        """Resolve every name against a schema; the text's own declarations go first.

        A query that is only checked may leave its parameters without values.
        """
        try:
            return self._bound((schema or Schema()).declaring(self.tree.declarations), checking)
        except QueryError as error:
            error.locate(self.text)
            raise

    def format(self) -> str:
        """The query in CESAR's spelling, laid out."""
        return format_stream_query(self.tree)

    def _bound(self, schema: Schema, checking: bool) -> BoundStreamQuery:
        classes = ClassBinder(schema, self.params, checking)
        for declaration in self.tree.declarations:
            if isinstance(declaration, tree.ClassDeclaration):
                classes.bound(declaration)
        root = StreamBinder(schema, classes.named, self.params, checking).bind(self.tree.stream)
        _check_columns(root, self.tree)
        digest = self._digest(schema, root)
        name = self.name or self.tree.publish or f"q{digest.hex()[:8]}"
        return BoundStreamQuery(name, schema, root, self.tree.publish, digest)

    def _digest(self, schema: Schema, root: Node) -> bytes:
        """What names the query in match ids: its canonical text, its parameters, and the classes that it uses."""
        hashed = blake2b(format_stream_query(self.tree).encode(), digest_size=16)
        used = {node.name for node in tree.walk(self.tree) if isinstance(node, tree.Parameter)}
        for name in sorted(used & self.params.keys()):
            hashed.update(f"\0{name}={self.params[name]!r}".encode())
        for name in sorted({source.event_class.name for source in sources(root)}):
            if name in schema.classes:
                hashed.update(b"\0" + format_declaration(schema.classes[name]).encode())
        return hashed.digest()


def _check_columns(root: Node, parsed: StreamQueryTree) -> None:
    """A result has a column for each stream id and for each attribute without one: none may share its name."""
    ids = {stream for stream, _ in root.schema.names if stream}
    for stream, name in root.schema.names:
        column = stream or name
        if column in RESULT_COLUMNS:
            raise ReservedName(f"`{column}` is a column of every result", parsed.span, hint="call it otherwise")
        if not stream and name in ids:
            raise DuplicateColumn(
                f"`{show((stream, name))}` is an attribute and the id of a stream", parsed.span, hint="rename one"
            )
