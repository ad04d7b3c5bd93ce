"""What the columns of a stream mean: type, time, tie-breaker, attributes of each type, event classes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any

from kleene.errors import BadDeclaration, BadTimeColumn, MissingColumn, QueryError, did_you_mean
from kleene.lang import parse_class, parse_declarations, tree
from kleene.lang.format import format_duration
from kleene.pattern.clock import Clock, ClockKind, tick_length
from kleene.pattern.types import TYPE_NAMES, ValueType, comparable

ColumnTypes = Mapping[str, ValueType | str] | Iterable[str]

# Private columns, which no user can name. In tables with composite events: START, TYPE where other events have a
# constant type, and IDENTITY, the match id of a composite event. In tables of several streams: STREAM, the name of each
# event's stream, NULL where the stream has types of its own. In tables of events for many queries of one template:
# OWNER, the number of the query that an event is for, OWNER_DIGEST, what identifies that in match ids, and EVENT_HASH,
# what identifies the event. In results: EVENTS, the events of each match in a list, FIRST_TIE and LAST_TIE, the
# tie-breakers of the first and of the last of them, and SHARED_ID, the id of a match that queries of a template share.
_PRIVATE = "\x1f"


def private(name: str) -> str:
    """A name that no user can write."""
    return f"{_PRIVATE}{name}"


START, TYPE, IDENTITY, STREAM, EVENTS, FIRST_TIE, LAST_TIE, SHARED_ID = map(
    private, ("start", "type", "identity", "stream", "events", "first_tie", "last_tie", "shared_id")
)
OWNER, OWNER_DIGEST, EVENT_HASH = map(private, ("owner", "owner_digest", "event_hash"))


@dataclass(frozen=True, slots=True, init=False, eq=False)
class Schema:
    """The description of a stream of events.

    type           the column that holds an event's type, unless `constant_type` names the type of all events
    time           the column that holds an event's time (its end, for events that last)
    tie_breaker    the column that orders events of equal time
    start          the column that holds the start of events that last
    types          the attributes of each type; none declared means that every type has every column
    classes        names for a type test and a predicate: {"Google": "Stock WHERE name = 'Google'"}
    columns        the types of the columns, where they are known (`infer` takes them from data)
    tick           how long one step of an integer time column is: "1 second"

    >>> Schema(types={"Shelf": {"tag_id": "string"}}).attributes_of("Shelf")["tag_id"]
    <ValueType.STRING: 'string'>
    """

    type: str = "type"
    time: str = "ts"
    tie_breaker: str | None = None
    start: str | None = None
    types: Mapping[str, Mapping[str, ValueType]] = field(default_factory=dict)
    classes: Mapping[str, tree.ClassDeclaration] = field(default_factory=dict)
    columns: Mapping[str, ValueType] | None = None
    constant_type: str | None = None
    tick: str | None = None
    clock: Clock = field(default_factory=Clock)
    # Types that other queries make (RETURN … INTO S); they leave an open schema open.
    made_types: Mapping[str, Mapping[str, ValueType]] = field(default_factory=dict)
    # Of several streams in one table: the columns of each, by name; by None those of streams with types of their own.
    streams: tuple[tuple[str | None, tuple[str, ...]], ...] = ()
    _key: tuple[Any, ...] = field(init=False, repr=False, compare=False)

    def __init__(
        self,
        type: str = "type",
        time: str = "ts",
        tie_breaker: str | None = None,
        start: str | None = None,
        types: Mapping[str, ColumnTypes] | None = None,
        classes: Mapping[str, str | tree.ClassDeclaration] | None = None,
        columns: ColumnTypes | None = None,
        constant_type: str | None = None,
        tick: str | None = None,
        clock: Clock | None = None,
        made_types: Mapping[str, ColumnTypes] | None = None,
        streams: Iterable[tuple[str | None, Iterable[str]]] = (),
    ) -> None:
        assign = object.__setattr__
        assign(self, "type", type)
        assign(self, "time", time)
        assign(self, "tie_breaker", tie_breaker)
        assign(self, "start", start)
        assign(self, "types", MappingProxyType({name: _columns(entry) for name, entry in (types or {}).items()}))
        assign(
            self, "classes", MappingProxyType({name: _class(name, entry) for name, entry in (classes or {}).items()})
        )
        assign(self, "columns", None if columns is None else MappingProxyType(_columns(columns)))
        assign(self, "constant_type", constant_type)
        assign(self, "tick", tick)
        assign(self, "clock", self._clock(clock))
        composite_types = {name: _columns(entry) for name, entry in (made_types or {}).items()}
        assign(self, "made_types", MappingProxyType(composite_types))
        assign(self, "streams", tuple((name, tuple(columns)) for name, columns in streams))
        assign(self, "_key", self._make_key())

    def _clock(self, clock: Clock | None) -> Clock:
        length = None if self.tick is None else tick_length(self.tick)
        if clock is not None and clock.kind is not ClockKind.UNKNOWN:
            # Timestamps have a resolution of their own: the tick of such a column is what DUR counts.
            counted = length is not None and clock.kind is ClockKind.TICKS
            return Clock(clock.kind, length if counted else clock.nanoseconds, clock.zoned)
        kind = (self.columns or {}).get(self.time, ValueType.UNKNOWN)
        if kind is ValueType.INT or (kind is ValueType.UNKNOWN and length is not None):
            return Clock(ClockKind.TICKS, length)
        if kind in (ValueType.TIMESTAMP, ValueType.ZONED):
            return Clock(ClockKind.TIMESTAMP, None, kind is ValueType.ZONED)
        if kind is not ValueType.UNKNOWN:
            raise BadTimeColumn(
                f"column `{self.time}` holds {kind.value} values, not times",
                hint="time is an integer column or a timestamp column; name it: Schema(time='…')",
            )
        return Clock()

    def _make_key(self) -> tuple[Any, ...]:
        return (
            (self.type, self.time, self.tie_breaker, self.start, self.constant_type, self.tick, self.clock),
            tuple((name, tuple(attributes.items())) for name, attributes in self.types.items()),
            tuple((name, tuple(attributes.items())) for name, attributes in self.made_types.items()),
            tuple(self.classes.items()),
            None if self.columns is None else tuple(self.columns.items()),
            self.streams,
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def own_columns(self) -> tuple[str, ...]:
        """The columns that every event has, whatever its type."""
        named = [self.type if self.constant_type is None else None, self.time, self.start, self.tie_breaker]
        return tuple(dict.fromkeys(name for name in named if name is not None and not is_private(name)))

    @property
    def unordered(self) -> frozenset[str]:
        """The columns that order no events: whole events in composite ones, which are in the order of these already."""
        columns = (column for attributes in self.made_types.values() for column in attributes.items())
        return frozenset(name for name, kind in columns if kind is ValueType.OTHER)

    @property
    def closed(self) -> bool:
        """Whether the set of types is known."""
        return bool(self.types) or self.constant_type is not None

    @property
    def type_names(self) -> tuple[str, ...]:
        constant = () if self.constant_type is None else (self.constant_type,)
        return tuple(dict.fromkeys((*self.types, *self.made_types, *constant)))

    def attributes_of(self, type_name: str) -> Mapping[str, ValueType] | None:
        """The attributes of a type and their types; None when any name may be one."""
        declared = self.made_types.get(type_name, self.types.get(type_name))
        if declared is None:
            return self.columns
        known = self.columns or {}
        attributes = {name: self._column_type(name) for name in self.own_columns}
        for name, kind in declared.items():
            column_type = known.get(name, ValueType.UNKNOWN)
            attributes[name] = kind if column_type is ValueType.UNKNOWN else column_type
        return attributes

    def has(self, type_name: str | None, attribute: str) -> bool:
        """Whether events of a type have an attribute; those without a type have every one."""
        attributes = None if type_name is None else self.attributes_of(type_name)
        return attributes is None or attribute in attributes

    def all_have(self, attribute: str) -> bool:
        """Whether events have an attribute whatever their type, because no type declares which ones it has."""
        return not self.types and not self.made_types and (self.columns is None or attribute in self.columns)

    def _column_type(self, name: str) -> ValueType:
        kind = (self.columns or {}).get(name, ValueType.UNKNOWN)
        if name in (self.time, self.start) and kind is ValueType.UNKNOWN:
            times = {ClockKind.TICKS: ValueType.INT, ClockKind.UNKNOWN: ValueType.UNKNOWN}
            return times.get(self.clock.kind, ValueType.ZONED if self.clock.zoned else ValueType.TIMESTAMP)
        if name == self.type and kind is ValueType.UNKNOWN:
            return ValueType.STRING
        return kind

    def with_columns(self, columns: Mapping[str, ValueType], clock: Clock) -> Schema:
        """This schema on data with these columns: what was not declared is filled in, what is missing is an error."""
        for role, name in (("time", self.time), ("start", self.start), ("tie-breaker", self.tie_breaker)):
            if name is not None and name not in columns:
                raise _missing(role, name, columns)
        if self.constant_type is None and self.type not in columns:
            raise _missing("type", self.type, columns)
        self._check_clock(clock)
        self._check_attributes(columns)
        columns = {name: kind for name, kind in columns.items() if name != STREAM}
        return _replaced(self, columns=columns, clock=clock)

    def with_attributes(self, attributes: Mapping[str, ValueType]) -> Schema:
        """This schema on data with further columns, which events of all types have."""
        types = {name: {**declared, **attributes} for name, declared in self.types.items()}
        return _replaced(self, types=types, columns={**(self.columns or {}), **attributes})

    def _check_clock(self, actual: Clock) -> None:
        """Refuse a time column whose kind is not the declared one."""
        declared = self.clock.kind
        if self.tick is not None and actual.kind is ClockKind.TIMESTAMP:
            return
        if ClockKind.UNKNOWN not in (declared, actual.kind) and declared is not actual.kind:
            raise BadTimeColumn(
                f"`{self.time}` is declared to hold {declared.value}, but it holds {actual.kind.value}",
                hint="declare the type that the column has: `time ts timestamp`",
            )

    def _check_attributes(self, columns: Mapping[str, ValueType]) -> None:
        for name, attributes in self.types.items():
            for attribute, declared in attributes.items():
                actual = columns.get(attribute)
                if actual is None:
                    raise MissingColumn(
                        f"type {name} declares `{attribute}`, but the events have no such column",
                        hint=did_you_mean(attribute, columns),
                    )
                if not comparable(declared, actual, "="):
                    raise BadDeclaration(
                        f"type {name} declares `{attribute}` as {declared.value}, but the column holds {actual.value}"
                    )

    def adding_types(self, types: Mapping[str, Mapping[str, ValueType]]) -> Schema:
        """This schema with the types that other queries make."""
        return _replaced(self, made_types={**self.made_types, **types})

    def reading(self, types: Collection[str]) -> Schema:
        """This schema for a query that names these types: of several streams it reads those that it names (§3).

        Streams with types of their own are read by every query, since any type may be among theirs.
        """
        read = tuple((name, columns) for name, columns in self.streams if name is None or name in types)
        if read == self.streams or self.columns is None:
            return self
        others = {name for name, _ in self.streams}.difference(name for name, _ in read)
        own = {column for _, columns in read for column in columns}.union(self.own_columns)
        return _replaced(
            self,
            streams=read,
            columns={name: kind for name, kind in self.columns.items() if name in own},
            types={name: columns for name, columns in self.types.items() if name not in others},
            made_types={name: columns for name, columns in self.made_types.items() if name not in others},
        )

    def of_streams(self, streams: Iterable[tuple[str | None, Iterable[str]]]) -> Schema:
        """This schema for a table that holds these streams."""
        return _replaced(self, streams=streams)

    def of_composites(self) -> Schema:
        """This schema on a table that holds composite events too: they last, and have a type of their own."""
        kinds = {} if self.constant_type is None else {"type": TYPE, "constant_type": None}
        return _replaced(self, start=self.start or START, **kinds)

    def declaring_types(self, types: Mapping[str, Mapping[str, ValueType]]) -> Schema:
        """This schema with these types and their attributes."""
        return _replaced(self, types=types)

    @staticmethod
    def from_declarations(declarations: Sequence[tree.Declaration] | str) -> Schema:
        """The schema that `DECLARE …` statements describe."""
        if not isinstance(declarations, str):
            return Schema().declaring(declarations)
        text = declarations
        try:
            return Schema().declaring([_sourced(item, text) for item in parse_declarations(text)])
        except QueryError as error:
            error.locate(text, "schema")
            raise

    def declaring(self, declarations: Sequence[tree.Declaration]) -> Schema:
        """This schema changed by declarations; what they say goes before what it said."""
        entries: dict[str, Any] = {"types": dict(self.types), "classes": dict(self.classes)}
        seen: dict[str, tree.Declaration] = {}
        sinks: set[str] = set()
        streamed: set[str] = set()
        for declaration in declarations:
            if isinstance(declaration, tree.StreamDeclaration):
                said = _stream_fields(declaration)
                if streamed & said.keys():
                    raise BadDeclaration(f"`{min(streamed & said.keys())}` is declared twice", declaration.span)
                streamed |= said.keys()
                entries.update(said)
                continue
            if isinstance(declaration, tree.SinkDeclaration):
                # Results go there: no event is of a sink's type.
                declared_attributes(declaration)
                if declaration.name in sinks:
                    raise BadDeclaration(f"`{declaration.name}` is declared twice", declaration.span)
                sinks.add(declaration.name)
                continue
            if declaration.name in seen and not _type_of_source(seen[declaration.name], declaration):
                raise BadDeclaration(f"`{declaration.name}` is declared twice", declaration.span)
            seen[declaration.name] = declaration
            if isinstance(declaration, tree.TypeDeclaration | tree.SourceDeclaration):
                entries["types"][declaration.name] = declared_attributes(declaration)
            else:
                entries["classes"][declaration.name] = declaration
        if self.columns is None:
            return _replaced(self, **entries)
        # The schema is filled in from data: it has the declarations already, and its clock is more exact than theirs.
        entries.pop("clock", None)
        return _replaced(self, **entries)


def is_private(column: str) -> bool:
    """Whether a column is one of Kleene's own, which no user can name."""
    return column.startswith(_PRIVATE)


def _replaced(schema: Schema, **changes: Any) -> Schema:
    entries = {entry.name: getattr(schema, entry.name) for entry in fields(schema) if entry.init}
    return Schema(**{**entries, **changes})


def _stream_fields(declaration: tree.StreamDeclaration) -> dict[str, Any]:
    named: dict[str, Any] = {
        "type": declaration.type_column,
        "constant_type": declaration.constant_type,
        "time": declaration.time,
        "start": declaration.start,
        "tie_breaker": declaration.tie_breaker,
    }
    roles = {name: value for name, value in named.items() if value is not None}
    if declaration.time_type is not None:
        kind = _type_named(declaration.time_type, declaration)
        if kind is ValueType.INT:
            roles["clock"] = Clock(ClockKind.TICKS)
        elif kind in (ValueType.TIMESTAMP, ValueType.ZONED):
            roles["clock"] = Clock(ClockKind.TIMESTAMP, zoned=kind is ValueType.ZONED)
        else:
            raise BadDeclaration("time is an int or a timestamp", declaration.span)
    if declaration.tick is not None:
        roles["tick"] = format_duration(declaration.tick)
    return roles


def _type_of_source(earlier: tree.Declaration, later: tree.Declaration) -> bool:
    """Whether a source and a type are declared with the same attributes: a source may send what a type describes."""
    return (
        {type(earlier), type(later)} == {tree.TypeDeclaration, tree.SourceDeclaration}
        and declared_attributes(earlier) == declared_attributes(later)  # type: ignore[arg-type]
    )


def declared_attributes(
    declaration: tree.TypeDeclaration | tree.SourceDeclaration | tree.SinkDeclaration,
) -> dict[str, ValueType]:
    """The attributes that a declaration lists; those without a type hold anything."""
    attributes: dict[str, ValueType] = {}
    for name, kind in declaration.attributes:
        if name in attributes:
            raise BadDeclaration(f"attribute `{name}` is declared twice", declaration.span)
        attributes[name] = ValueType.UNKNOWN if kind is None else _type_named(kind, declaration)
    return attributes


def _type_named(name: str, at: tree.Declaration | None = None) -> ValueType:
    kind = TYPE_NAMES.get(name.casefold())
    if kind is None:
        raise BadDeclaration(
            f"unknown type of values `{name}`", None if at is None else at.span, hint=did_you_mean(name, TYPE_NAMES)
        )
    return kind


def _columns(columns: ColumnTypes) -> Mapping[str, ValueType]:
    if isinstance(columns, Mapping):
        return {name: kind if isinstance(kind, ValueType) else _type_named(kind) for name, kind in columns.items()}
    return dict.fromkeys(columns, ValueType.UNKNOWN)


def _class(name: str, declared: str | tree.ClassDeclaration) -> tree.ClassDeclaration:
    if isinstance(declared, tree.ClassDeclaration):
        return declared
    types, predicate = parse_class(declared)
    return tree.ClassDeclaration(name, types, predicate, source=declared)


def _sourced(declaration: tree.Declaration, text: str) -> tree.Declaration:
    return replace(declaration, source=text) if isinstance(declaration, tree.ClassDeclaration) else declaration


def _missing(role: str, name: str, columns: Iterable[str]) -> MissingColumn:
    names = list(columns)
    near = did_you_mean(name, names)
    separator = next((sign for sign in ";|\t" if len(names) == 1 and sign in names[0]), None)
    if separator is not None:
        near = f"the one column is {names[0]!r}: read the file with {separator!r} as its separator"
        near += f" (`--separator`, a pipeline's `options = {{ sep = {separator!r} }}`, pandas' `sep`)"
    return MissingColumn(
        f"the events have no {role} column `{name}`",
        hint=f"{near}; Schema(…) says which column is which" if near else "Schema(…) says which column is which",
    )
