"""What queries have in common: patterns (`pattern.query`) and streams (`algebra.query`)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Any, ClassVar, Protocol, TypeVar

from kleene.errors import QueryError, SyntaxProblem
from kleene.lang import format_query, parse, recognise, tree
from kleene.lang.characters import half_character
from kleene.lang.format import format_declaration
from kleene.lang.spellings import ParsedQuery
from kleene.pattern.schema import Schema
from kleene.pattern.sinks import check_sinks
from kleene.pattern.types import ValueType

T = TypeVar("T")


class HasResult(Protocol):
    """A bound query."""

    @property
    def result_types(self) -> Mapping[str, ValueType]:
        """The columns of its result, and what they hold."""


B = TypeVar("B", bound=HasResult)


@dataclass(frozen=True)
class WrittenQuery:
    """A parsed query: its text, its name and the values of its parameters."""

    text: str
    name: str | None = None
    params: Mapping[str, object] = field(default_factory=dict)
    spelling: str | None = None
    origin: str = "query"
    # The last schema that it was bound to, and what came of it.
    _last_bound: ClassVar[tuple[tuple[Schema, bool], Any] | None] = None

    def __post_init__(self) -> None:
        half = None if self.name is None else half_character(self.name)
        if half is not None:
            raise SyntaxProblem(
                f"the name of a query holds half a character at place {half}",
                hint="it was cut from a pair, or read with the wrong encoding; give the whole character",
            )
        # A set has another order in every process, and what names the query must be the same in all of them.
        ordered = {name: _in_order(value) for name, value in self.params.items()}
        object.__setattr__(self, "params", ordered)

    @property
    @abstractmethod
    def tree(self) -> ParsedQuery:
        """The syntax tree, parsed when it is first asked for."""

    @property
    @abstractmethod
    def canonical(self) -> str:
        """The query without its declarations and without what does not change its matches, in one spelling."""

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """The event types and classes that the text names: the streams that the query reads."""
        names = dict.fromkeys(node.name for node in tree.walk(self.tree.body) if isinstance(node, tree.TypeName))
        for declaration in self.tree.declarations:
            if isinstance(declaration, tree.ClassDeclaration) and declaration.name in names:
                names.update(dict.fromkeys(item.name for item in declaration.types))
        return tuple(names)

    @cached_property
    def parameters(self) -> frozenset[str]:
        """The names of the parameters that the text uses."""
        return frozenset(node.name for node in tree.walk(self.tree) if isinstance(node, tree.Parameter))

    @cached_property
    def declared(self) -> Schema:
        """The schema that the text itself declares, on top of the defaults."""
        return self._located(lambda: Schema().declaring(self.tree.declarations))

    def format(self) -> str:
        """The query in its own spelling, laid out."""
        return format_query(self.tree)

    def digest(self, schema: Schema, classes: Collection[str]) -> bytes:
        """The hash that identifies the query in match ids: of its canonical text, its parameters and its classes.

        classes   the names of the classes of its events; those that the schema declares count
        """
        hasher = blake2b(self.canonical.encode(), digest_size=16)
        for name, value in sorted((name, value) for name, value in self.params.items() if name in self.parameters):
            hasher.update(f"\0{name}={value!r}".encode())
        for name in sorted(classes):
            if name in schema.classes:
                hasher.update(b"\0" + format_declaration(schema.classes[name]).encode())
        return hasher.digest()

    def _parsed(self, usual: str | None = None) -> ParsedQuery:
        """The tree; `usual` is the spelling of a text that does not say which one it is in."""
        try:
            return parse(self.text, self.spelling or (recognise(self.text) or usual))
        except QueryError as error:
            error.origin = self.origin
            raise

    def _bound_to(self, schema: Schema, checking: bool, bind: Callable[[Schema, bool], B]) -> B:
        """The query bound to a schema, which its own declarations precede; bound again to an equal one it is the same.

        Runs over events of the same columns are many, and binding takes longer than a small one of them.
        """
        known = self._last_bound
        if known is None or known[0] != (schema, checking):
            bound = self._located(lambda: self._checked(bind(schema.declaring(self.tree.declarations), checking)))
            object.__setattr__(self, "_last_bound", ((schema, checking), bound))
            return bound
        same: B = known[1]
        return same

    def _checked(self, bound: B) -> B:
        check_sinks(self.tree.declarations, bound.result_types)
        return bound

    def _located(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except QueryError as error:
            error.locate(self.text, self.origin)
            raise


def _in_order(value: object) -> object:
    if not isinstance(value, set | frozenset):
        return value
    return sorted(value, key=lambda item: (type(item).__name__, repr(item)))
