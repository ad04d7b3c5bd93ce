"""Event types and classes: what a name in a pattern or of a stream stands for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kleene.errors import BadDeclaration, QueryError
from kleene.lang import tree
from kleene.pattern.bind_expression import Scopes
from kleene.pattern.bind_pattern import type_test
from kleene.pattern.nodes import Component, EventClass
from kleene.pattern.normal_form import clauses_of
from kleene.pattern.schema import Schema


@dataclass(slots=True)
class ClassBinder:
    """Resolves the names of event types and classes."""

    schema: Schema
    params: Mapping[str, object]
    checking: bool

    def named(self, name: tree.TypeName) -> EventClass:
        declared = self.schema.classes.get(name.name)
        if declared is None:
            type_test(name, self.schema)
            return EventClass(name.name, (name.name,))
        return self.bound(declared)

    def bound(self, declared: tree.ClassDeclaration) -> EventClass:
        try:
            return self._bound(declared)
        except QueryError as error:
            if declared.source is not None:
                error.locate(declared.source, f"class {declared.name}")
            raise

    def _bound(self, declared: tree.ClassDeclaration) -> EventClass:
        for part in declared.types:
            if part.name in self.schema.classes:
                raise BadDeclaration(f"`{part.name}` is a class, and a class is made of types", part.span)
            type_test(part, self.schema)
        types = tuple(part.name for part in declared.types)
        if declared.predicate is None:
            return EventClass(declared.name, types)
        component = Component("", (EventClass(declared.name, types),))
        scopes = Scopes(self.schema, {"": component}, params=self.params, open_parameters=self.checking)
        return EventClass(
            declared.name, types, clauses_of(scopes.condition(declared.predicate), declared.predicate.span)
        )
