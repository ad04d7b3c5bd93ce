"""The Arrow types of the attributes of streams, and the columns of their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from kleene.algebra.nodes import (
    AttributeName,
    Carried,
    Compute,
    Fold,
    Next,
    Node,
    Rename,
    StreamSchema,
    StreamSource,
    StreamUnion,
)
from kleene.algebra.query import BoundStreamQuery
from kleene.frames.arrow import arrow_type
from kleene.pattern.expressions import Attribute, Value
from kleene.pattern.schema import FIRST_TIE, LAST_TIE
from kleene.pattern.types import ValueType

ArrowTypes = dict[AttributeName, pa.DataType]


def attribute_types(node: Node, columns: pa.Schema, carried: ArrowTypes | None = None) -> ArrowTypes:
    """The Arrow type of each attribute of a stream over events with these columns: that of its column, where it is
    one as it is, and otherwise that of computed values.

    carried   inside the step of a fold: the types before it
    """
    match node:
        case StreamSource(columns=own):
            return {name: _column_type(column, columns) for name, column in own}
        case Carried():
            assert carried is not None, "what a fold carries is known inside its step alone"
            return carried
        case Rename(operand, names):
            new = dict(names)
            return {new.get(name, name): kind for name, kind in attribute_types(operand, columns, carried).items()}
        case Compute(operand, assignments):
            known = attribute_types(operand, columns, carried)
            return known | {name: value_arrow_type(value, known) for name, value in assignments}
        case StreamUnion(parts, schema):
            return _common(schema, *(attribute_types(part, columns) for part in parts))
        case Next(left, right):
            return attribute_types(left, columns) | attribute_types(right, columns)
        case Fold():
            return _folded(node, columns)
    known = attribute_types(node.operand, columns, carried)
    return {name: _as(known[name], kind) for name, kind in node.schema.attributes}


def _folded(node: Fold, columns: pa.Schema) -> ArrowTypes:
    left, right = attribute_types(node.left, columns), attribute_types(node.right, columns)
    first = left | {name: value_arrow_type(value, left) for name, value in node.init}
    types = _common(node.schema, first, right)
    stepped = attribute_types(node.step, columns, types)
    return _common(node.schema, types, stepped)


def _column_type(column: str, columns: pa.Schema) -> pa.DataType:
    at = columns.get_field_index(column)
    return pa.null() if at < 0 else columns.field(at).type


def value_arrow_type(value: Value, known: Mapping[AttributeName, pa.DataType]) -> pa.DataType:
    """The type of a column of values of attributes with these types."""
    if isinstance(value, Attribute):
        return known[value.variable, value.attribute]
    return arrow_type(value.type)


def _common(schema: StreamSchema, *streams: Mapping[AttributeName, pa.DataType]) -> ArrowTypes:
    """The types that hold the values of several streams."""
    types: ArrowTypes = {}
    for name, kind in schema.attributes:
        some = {stream[name] for stream in streams if name in stream and not pa.types.is_null(stream[name])}
        types[name] = _as(some.pop(), kind) if len(some) == 1 else arrow_type(kind) if some else pa.null()
    return types


def _as(known: pa.DataType, kind: ValueType) -> pa.DataType:
    """A column of integers that is one of reals by now."""
    is_real = kind is ValueType.FLOAT and not pa.types.is_floating(known) and not pa.types.is_null(known)
    return arrow_type(kind) if is_real else known


def stream_result_schema(query: BoundStreamQuery, columns: pa.Schema) -> pa.Schema:
    """The columns of a query's results over events with these columns.

    A struct for each stream id, and a column for each attribute that was renamed or introduced; where others read the
    results, also the tie-breakers of the first and the last event, which they need.
    """
    types = attribute_types(query.root, columns)
    time = columns.field(query.schema.time).type
    fields = [
        *(pa.field(name, pa.string()) for name in ("match_id", "query")),
        *(pa.field(name, time) for name in ("start", "end")),
    ]
    for column, attributes in query.result_columns.items():
        if attributes[0][0]:
            fields.append(pa.field(column, pa.struct([(name, types[stream, name]) for stream, name in attributes])))
        else:
            fields.append(pa.field(column, types[attributes[0]]))
    if query.publish is not None and query.schema.tie_breaker is not None:
        tie = columns.field(query.schema.tie_breaker).type
        fields += [pa.field(FIRST_TIE, tie), pa.field(LAST_TIE, tie)]
    return pa.schema(fields)


def result_column(attributes: Sequence[AttributeName], values: Mapping[AttributeName, pa.Array]) -> pa.Array:
    """A column of results: the attributes of a stream id as structs, or one attribute without an id."""
    if not attributes[0][0]:
        return values[attributes[0]]
    return pa.StructArray.from_arrays([values[each] for each in attributes], [name for _, name in attributes])
