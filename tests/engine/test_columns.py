"""Columns as arrays: values, NULL, missing, types."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kleene.engine.intake.columns import ColumnStore, column_layout
from kleene.engine.intake.masks import mask
from kleene.engine.intake.strings import StringPool
from kleene.frames.arrow import schema_on
from kleene.kernels.opcodes import MISSING, NULL, VALUE
from kleene.pattern.query import Query
from kleene.pattern.schema import Schema
from kleene.pattern.types import ValueType
from kleene.plan.layout import Column
from kleene.plan.program import NotCompilable


def _store(columns: dict[str, Any], schema: Schema | None = None, pool: StringPool | None = None) -> ColumnStore:
    size = len(next(iter(columns.values())))
    table = pa.table({"type": pa.array(["A"] * size), "ts": pa.array(range(size)), **columns})
    known = schema_on(table.schema, schema or Schema())
    return ColumnStore.from_table(table, list(columns), known, pool or StringPool())


@pytest.mark.parametrize(
    ("column", "values"),
    [
        (pa.array([1, None, -3], pa.int8()), [1, 0, -3]),
        (pa.array([1, None, 2**63 - 1], pa.uint64()), [1, 0, 2**63 - 1]),
        (pa.array([True, None, False]), [1, 0, 0]),
        (pa.array([7, None, 7]).dictionary_encode(), [7, 0, 7]),
        (pa.array([date(1970, 1, 2), None, date(9999, 12, 31)]), [1, 0, 2_932_896]),
        (pa.array([datetime(1970, 1, 1, 0, 0, 1), None, datetime(9999, 1, 1)], pa.timestamp("s")), None),
        (pa.chunked_array([pa.array([1, None]), pa.array([], pa.int64()), pa.array([5])]), [1, 0, 5]),
    ],
)
def test_integers_and_times_keep_their_steps(column: Any, values: list[int] | None) -> None:
    store = _store({"x": column})
    assert store.events.states[0].tolist() == [VALUE, NULL, VALUE]
    assert store.events.ints[0].tolist() == (values or [1, 0, 253_370_764_800])


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.float16()])
def test_reals(kind: pa.DataType) -> None:
    column = pa.array([np.float16(0.5), None, np.float16(np.inf)], pa.float16()).cast(kind)
    store = _store({"x": column})
    assert store.events.states[0].tolist() == [VALUE, NULL, VALUE]
    assert store.events.reals[0].tolist() == [0.5, 0.0, np.inf]


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["x", None, "y", "x"]),
        pa.array(["x", None, "y", "x"], pa.large_string()),
        pa.array(["x", None, "y", "x"], pa.string_view()),
        pa.array(["x", None, "y", "x"]).dictionary_encode(),
        # NULL may stand in the dictionary, too, and a dictionary may hold a string twice.
        pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 3]), pa.array(["x", None, "y", "x"])),
        pa.chunked_array([pa.array(["x", None]), pa.array(["y", "x"])]),
    ],
)
def test_strings_share_their_codes(column: Any) -> None:
    pool = StringPool()
    store = _store({"s": column, "u": pa.array(["y", "x", None, "z"])}, pool=pool)
    assert store.events.states.tolist() == [[VALUE, NULL, VALUE, VALUE], [VALUE, VALUE, NULL, VALUE]]
    codes = store.events.ints
    assert codes[0, 0] == codes[0, 3] == codes[1, 1]
    assert codes[0, 2] == codes[1, 0] != codes[0, 0]
    assert pool.text(int(codes[1, 3])) == "z"
    later = _store({"s": pa.array(["new", "z"])}, pool=pool)
    assert later.events.ints[0, 1] == codes[1, 3]


def test_of_other_types_only_null_is_known() -> None:
    columns = {
        "money": pa.array([Decimal("1.5"), None]),
        "nested": pa.array([{"x": 1}, None]),
        "nothing": pa.array([None, None]),
    }
    store = _store(columns)
    assert store.events.states.tolist() == [[VALUE, NULL], [VALUE, NULL], [NULL, NULL]]
    assert store.events.ints.size == store.events.reals.size == 0


def test_a_column_that_is_not_there_is_null() -> None:
    table = pa.table({"type": ["A"], "ts": [1]})
    store = ColumnStore.from_table(table, ["x"], schema_on(table.schema, Schema()), StringPool())
    assert store.columns["x"] == Column(0, -1, ValueType.UNKNOWN)
    assert store.events.states.tolist() == [[MISSING]]  # the schema knows all columns, and this is none


def test_an_attribute_that_the_type_lacks_is_missing() -> None:
    table = pa.table({"type": ["A", "B", "C", None], "ts": [1, 2, 3, 4], "x": [1, 2, None, 4], "y": [1, 2, 3, None]})
    schema = schema_on(table.schema, Schema(types={"A": ["x"], "B": ["x", "y"]}))
    store = ColumnStore.from_table(table, ["x", "y", "ts"], schema, StringPool())
    assert store.events.states.tolist() == [
        [VALUE, VALUE, NULL, VALUE],
        [MISSING, VALUE, VALUE, NULL],
        [VALUE, VALUE, VALUE, VALUE],
    ]
    assert [store.types.names[code] for code in store.types.codes] == ["A", "B", "C", None]


def test_a_constant_type() -> None:
    table = pa.table({"ts": [1, 2], "x": [1, 2], "y": [1, 2]})
    schema = schema_on(table.schema, Schema(constant_type="A", types={"A": ["x"]}))
    store = ColumnStore.from_table(table, ["x", "y"], schema, StringPool())
    assert store.events.states.tolist() == [[VALUE, VALUE], [MISSING, MISSING]]


def test_types_that_are_no_strings() -> None:
    table = pa.table({"type": [1, 2, None], "ts": [1, 2, 3]})
    store = ColumnStore.from_table(table, [], schema_on(table.schema, Schema()), StringPool())
    assert [store.types.names[code] for code in store.types.codes] == ["1", "2", None]


def test_an_integer_beyond_64_bits_is_refused() -> None:
    with pytest.raises(NotCompilable, match="`x` holds an integer beyond 64 bits"):
        _store({"x": pa.array([2**63], pa.uint64())})


def test_no_rows() -> None:
    store = _store({"x": pa.array([], pa.int64()), "s": pa.chunked_array([], pa.string())})
    assert store.events.states.shape == (2, 0)
    assert store.types.size == 0


def test_places_among_integers_and_among_reals() -> None:
    kinds = [("a", pa.int64()), ("b", pa.float64()), ("c", pa.string()), ("d", pa.binary()), ("e", pa.duration("ms"))]
    layout = column_layout(pa.schema(kinds), ["a", "b", "c", "d", "e", "a"])
    assert {name: (column.index, column.place) for name, column in layout.items()} == {
        "a": (0, 0),
        "b": (1, 0),
        "c": (2, 1),
        "d": (3, -1),
        "e": (4, 2),
    }
    assert layout["e"].step == 1_000_000


def test_a_mask_is_of_one_event() -> None:
    table = pa.table({"type": ["A", "B"], "ts": [1, 2], "x": [1, 2]})
    schema, pool = schema_on(table.schema, Schema()), StringPool()
    store = ColumnStore.from_table(table, ["x"], schema, pool)
    clauses = Query("PATTERN SEQ(A a, B b) WHERE a.x < b.x").bind(schema).conditions.positive
    with pytest.raises(NotCompilable):
        mask(clauses, store, pool)
    alone = Query("PATTERN SEQ(A a, B b) WHERE b.x > 1").bind(schema).conditions.positive
    assert mask(alone, store, pool).tolist() == [False, True]
