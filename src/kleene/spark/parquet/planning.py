"""Which task reads which row groups, and what it is told: plain data, as for every task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from kleene.pattern.schema import Schema
from kleene.spark.conditions import Condition, all_of, any_of, columns_in
from kleene.spark.interpreter import in_tasks
from kleene.spark.packing import PACKED_DDL, PackedGroup
from kleene.spark.parquet.listing import ColumnPlaces, ListedFile, ListedFiles, ReadBySpark
from kleene.spark.parquet.reading import reader
from kleene.spark.parquet.tested_by_arrow import expression
from kleene.spark.routing import ByKey, Route
from kleene.spark.sending import Sent
from kleene.spark.worker import plain_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Tasks for each that runs at a time, so that they end at about the same time; and no more rows than this in one.
_TASKS_AT_A_TIME = 2
_MOST_ROWS = 1 << 22


@dataclass(frozen=True)
class RoutedGroup:
    """Which events a group of queries wants (None: all), and by what they are divided into slots."""

    wanted: Condition | None
    route: Route
    slots: int


@dataclass(frozen=True)
class RowGroup:
    """A row group of a file, by their numbers."""

    file: int
    number: int
    rows: int


def packed_by_tasks(
    listed: ListedFiles,
    columns: pa.Schema,
    schema: Schema,
    needed: Sequence[str],
    routed: Sequence[RoutedGroup],
    packing: Sequence[PackedGroup],
) -> DataFrame:
    """The events of files as packed rows: tasks read, drop and pack; `ReadBySpark` where Spark must read.

    columns   the events' columns as the driver knows them
    needed    those that go along
    """
    good = is_event(schema, columns)
    wanted = any_of([group.wanted for group in routed])
    keep = all_of((good, wanted))
    read = _columns_read(schema, columns, needed, routed, keep)
    places = listed.placed(read)
    kinds = pa.schema([columns.field(name) for name in read])
    groups = useful_row_groups(listed.files, places, kinds, keep)
    tasks = in_shares(groups, _TASKS_AT_A_TIME * listed.session.sparkContext.defaultParallelism)
    plan = {
        "files": [_described(file, place) for file, place in zip(listed.files, places, strict=True)],
        "tasks": [[(group.file, group.number) for group in task] for task in tasks],
        "columns": plain_schema(kinds),
        "needed": list(needed),
        "type": schema.type,
        "keep": keep,
        "routed": [_routed(group) for group in routed],
        "packing": [asdict(group) for group in packing],
    }
    return in_tasks(listed.session.range(0, len(tasks), 1, max(len(tasks), 1)), Sent(reader, plan), PACKED_DDL)


def is_event(schema: Schema, columns: pa.Schema) -> Condition | None:
    """What a row must satisfy to be an event: the rules of `kleene.frames.rows`."""
    own = [name for name in (schema.time, schema.start, schema.tie_breaker) if name is not None]
    parts: list[Condition] = [("is_null", ("column", name, None), True) for name in own]
    if schema.start is not None:
        if columns.field(schema.start).type != columns.field(schema.time).type:
            raise ReadBySpark(f"`{schema.start}` and `{schema.time}` have different types")
        parts.append(("compare", "<=", ("column", schema.start, None), ("column", schema.time, None)))
    return all_of(parts)


def _columns_read(
    schema: Schema,
    columns: pa.Schema,
    needed: Sequence[str],
    routed: Sequence[RoutedGroup],
    keep: Condition | None,
) -> list[str]:
    read = {*needed, *(columns_in(keep) if keep is not None else ())}
    for group in routed:
        if group.wanted is not None:
            read.update(columns_in(group.wanted))
        if isinstance(group.route, ByKey):
            read.update(name for _, names in group.route.columns for name in names)
            if _by_type(group.route):
                read.add(schema.type)
    return [name for name in columns.names if name in read]


def _by_type(route: ByKey) -> bool:
    """Whether events of different types have their keys in different columns."""
    return len({names for _, names in route.columns}) > 1


def _routed(group: RoutedGroup) -> dict[str, Any]:
    keys: list[tuple[str | None, list[str]]] = []
    if isinstance(group.route, ByKey):
        if _by_type(group.route):
            keys = [(kind, list(names)) for kind, names in group.route.columns]
        else:
            keys = [(None, list(group.route.columns[0][1]))]
    return {"wanted": group.wanted, "keys": keys, "slots": group.slots}


def _described(file: ListedFile, places: ColumnPlaces) -> dict[str, Any]:
    return {
        "path": file.path,
        "digest": file.digest,
        "columns": dict(places.columns),
        "constants": dict(places.constants),
    }


# Row groups ----------------------------------------------------------------------------------------------------------


def useful_row_groups(
    files: Sequence[ListedFile], places: Sequence[ColumnPlaces], kinds: pa.Schema, keep: Condition | None
) -> list[RowGroup]:
    """The row groups that may hold an event of use, by their statistics."""
    groups = []
    for number, (file, place) in enumerate(zip(files, places, strict=True)):
        useful = range(file.metadata.num_row_groups) if keep is None else _useful(file, place, kinds, keep)
        groups += [RowGroup(number, group, file.metadata.row_group(group).num_rows) for group in useful]
    return groups


def _useful(file: ListedFile, places: ColumnPlaces, kinds: pa.Schema, keep: Condition) -> Sequence[int]:
    """The numbers of the row groups that Arrow's own statistics do not rule out."""
    physical = file.metadata.schema.to_arrow_schema()
    tested = set(columns_in(keep))
    for name in tested:
        same = places.columns.get(name) == name and physical.field(name).type == kinds.field(name).type
        if not same and name not in places.constants:
            # Of a column that is widened, renamed or missing the statistics speak of something else.
            return range(file.metadata.num_row_groups)
    said = [_says(name, places.constants[name], kinds) for name in tested if name in places.constants]
    known = None
    for one in said:
        known = one if known is None else known & one
    fragment = ds.ParquetFileFormat().make_fragment(
        file.path, filesystem=pa.fs.LocalFileSystem(), partition_expression=known
    )
    columns = pa.schema([kinds.field(name) for name in tested])
    try:
        return [group.id for group in fragment.subset(filter=expression(keep), schema=columns).row_groups]
    except (OSError, pa.ArrowException):
        return range(file.metadata.num_row_groups)


def _says(name: str, value: Any, kinds: pa.Schema) -> pc.Expression:
    field = pc.field(name)
    return field.is_null() if value is None else field == pa.scalar(value, kinds.field(name).type)


def in_shares(groups: Sequence[RowGroup], tasks: int) -> list[list[RowGroup]]:
    """Row groups in the order of the files, in shares of about as many rows."""
    total = sum(group.rows for group in groups)
    share = min(max(-(-total // max(tasks, 1)), 1), _MOST_ROWS)
    shares: list[list[RowGroup]] = []
    before = last = 0
    for group in groups:
        # By where its middle lies, so that shares do not drift.
        number = (2 * before + group.rows) // (2 * share)
        if not shares or number > last:
            shares.append([])
        last = number
        shares[-1].append(group)
        before += group.rows
    return shares
