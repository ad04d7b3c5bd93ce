"""Templates: queries that differ in constants alone, read once for all of them.

The constants of a text are lifted out of it by one regular expression; what remains is looked up, and only a text
whose shape is new is parsed. A parameter takes the place of each constant.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

from kleene.errors import BadParameter
from kleene.lang import tree
from kleene.lang.format import format_expression
from kleene.lang.literals import Liftable, Plain, liftable, lifted, value_of
from kleene.pattern.expressions import OpenParameter
from kleene.pattern.types import ValueType
from kleene.queries.any_query import AnyQuery, read_query

# Names of parameters that stand for literals.
_LITERAL = "_literal"
_OF_LITERAL = re.compile(rf":({_LITERAL}\d+)")
_TYPES = {int: ValueType.INT, float: ValueType.FLOAT, str: ValueType.STRING, bool: ValueType.BOOL}


@dataclass(frozen=True, eq=False)
class Template:
    """A query whose constants are open parameters of known types; the reader makes each once.

    query        with these parameters
    parameters   their names and types, in the order of a query's constants
    """

    query: AnyQuery
    parameters: tuple[tuple[str, ValueType], ...]

    def text_of(self, constants: Sequence[Plain]) -> tuple[str, dict[str, Plain]]:
        """A query of the template as one would write it by itself, on one line, and the values of its parameters."""
        values = dict(zip((name for name, _ in self.parameters), constants, strict=True))
        text = "".join(
            _written(values[part]) if place % 2 else part for place, part in enumerate(_OF_LITERAL.split(self._printed))
        )
        return text, {name: value for name, value in values.items() if not name.startswith(_LITERAL)}

    def digest_of(self, constants: Sequence[Plain], classes: bytes) -> bytes:
        """What identifies a query of the template in match ids: the same as of the query written by itself.

        classes   what the digest says of the classes of the schema
        """
        text, named = self.text_of(constants)
        hasher = blake2b(text.encode(), digest_size=16)
        for name, value in sorted(named.items()):
            hasher.update(f"\0{name}={value!r}".encode())
        hasher.update(classes)
        return hasher.digest()

    @cached_property
    def _printed(self) -> str:
        return self.query.canonical


class TemplateReader:
    """Reads queries, and knows the shapes that it has read."""

    def __init__(self) -> None:
        # By the text without its literals: which of them are constants.
        self._liftable: dict[tuple[str, str | None], tuple[Liftable, ...]] = {}
        self._templates: dict[object, Template] = {}

    def read(
        self, text: str, params: Mapping[str, object] | None = None, spelling: str | None = None
    ) -> tuple[Template, tuple[Plain, ...]]:
        """The template of a query, and its constants. A wrong text raises the error that it has by itself."""
        shape, literals = lifted(text)
        places = self._liftable.get((shape, spelling))
        if places is None:
            places = tuple(liftable(text, read_query(text, spelling=spelling).tree))
            self._liftable[shape, spelling] = places
        constants = [value_of(literals[each.place], negative=each.negative) for each in places]
        if any(isinstance(value, int) and not -(2**63) <= value < 2**63 for value in constants):
            return self.whole(text, params, spelling), ()
        named = plain_values(params or {})
        open_names = [(f"{_LITERAL}{number}", _TYPES[type(value)]) for number, value in enumerate(constants)]
        parameters = (*open_names, *((name, _TYPES[type(value)]) for name, value in named.items()))
        fixed = {name: value for name, value in (params or {}).items() if name not in named}
        others = tuple(literal for place, literal in enumerate(literals) if place not in {e.place for e in places})
        key = shape, spelling, others, parameters, repr(sorted(fixed.items())) if fixed else None
        template = self._templates.get(key)
        if template is None:
            template = _template(_with_parameters(text, places), parameters, fixed, spelling)
            self._templates[key] = template
        return template, (*constants, *named.values())

    def whole(self, text: str, params: Mapping[str, object] | None = None, spelling: str | None = None) -> Template:
        """A query that is a template by itself: nothing of it is lifted."""
        key = text, spelling, repr(sorted((params or {}).items()))
        known = self._templates.get(key)
        if known is None:
            known = self._templates[key] = Template(read_query(text, params=params, spelling=spelling), ())
        return known

    def forget(self, text: str, params: Mapping[str, object] | None = None, spelling: str | None = None) -> None:
        """Forget a query that was wrong: there may be very many of them, each with another text."""
        self._templates.pop((text, spelling, repr(sorted((params or {}).items()))), None)

    def of_columns(self, text: str, types: Mapping[str, ValueType]) -> Template:
        """The template of a text whose parameters have values of these types."""
        query = read_query(text)
        missing = sorted(query.parameters - set(types))
        if missing:
            raise BadParameter(
                f"parameter `:{missing[0]}` has no column",
                hint=f"the table has {', '.join(f'`{name}`' for name in types)}",
            )
        parameters = tuple((name, kind) for name, kind in types.items() if name in query.parameters)
        key = text, parameters
        known = self._templates.get(key)
        if known is None:
            known = self._templates[key] = _template(text, parameters, {}, None)
        return known


def plain_values(params: Mapping[str, object]) -> dict[str, Plain]:
    """The parameters whose values can be told apart when the query is planned already: numbers, strings, booleans."""
    return {
        name: value
        for name, value in params.items()
        if isinstance(value, int | float | str) and not (type(value) is int and not -(2**63) <= value < 2**63)
    }


def _template(
    text: str, parameters: tuple[tuple[str, ValueType], ...], fixed: Mapping[str, object], spelling: str | None
) -> Template:
    values: dict[str, object] = {name: OpenParameter(name, kind) for name, kind in parameters}
    return Template(read_query(text, params={**values, **fixed}, spelling=spelling), parameters)


def _with_parameters(text: str, places: Sequence[Liftable]) -> str:
    parts, at = [], 0
    for number, each in enumerate(places):
        parts += [text[at : each.start], f":{_LITERAL}{number}"]
        at = each.end
    return "".join([*parts, text[at:]])


def _written(value: Plain) -> str:
    """A literal as the printer writes it."""
    if isinstance(value, int | float) and value < 0:
        return format_expression(tree.Negative(tree.Literal(-value)))
    return format_expression(tree.Literal(value))
