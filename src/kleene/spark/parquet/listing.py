"""The files behind a data frame, as the driver finds them: their footers, and what folders say.

What is not certain is left to Spark, with the reason; `kleene.explain` shows it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from kleene.spark.parquet.fitting import has_our_calendar, is_temporal, reads_alike
from kleene.spark.parquet.footers import digest_of, footer_of
from kleene.spark.parquet.opening import OpenedParquet, remembered
from kleene.spark.parquet.partition_folders import UnclearValue, folder_values, value_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

# The driver reads the footer of each file, which takes a millisecond.
_MOST_FILES = 5_000
_CODECS = ("UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD")
# Settings under which Spark reads files in ways of its own.
_AS_USUAL = {
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.parquet.fieldId.read.enabled": "false",
}
_TIMES_AS_USUAL = {
    "spark.sql.parquet.int96TimestampConversion": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
}


class ReadBySpark(Exception):
    """The events are to be read by Spark; its text is the reason."""


@dataclass(frozen=True)
class ListedFile:
    """A file, and what its folders say; `digest` tells whether it is still the same."""

    path: str
    metadata: pq.FileMetaData
    digest: str
    folders: Mapping[str, str]

    @cached_property
    def fields(self) -> Mapping[str, pq.ColumnSchema]:
        """Its columns that are not nested, by name; a nested one stands here under a name with a dot."""
        schema = self.metadata.schema
        return {column.path: column for column in (schema.column(place) for place in range(len(schema)))}

    @cached_property
    def top_names(self) -> list[str]:
        return list(dict.fromkeys(path.split(".", 1)[0] for path in self.fields))


@dataclass(frozen=True)
class ListedFiles:
    """All files of a data frame. `columns` are its columns, by our names, as Spark describes them."""

    session: SparkSession
    files: tuple[ListedFile, ...]
    columns: StructType
    in_files: Mapping[str, str]

    @property
    def row_groups(self) -> int:
        return sum(file.metadata.num_row_groups for file in self.files)

    def placed(self, names: Sequence[str]) -> list[ColumnPlaces]:
        """Where each file has these columns; `ReadBySpark` where Spark might read one of them otherwise."""
        kinds = {field.name: field.dataType for field in self.columns if field.name in names}
        if any(is_temporal(kind) for kind in kinds.values()):
            _check_settings(self.session, _TIMES_AS_USUAL)
        beside = self._folder_columns
        return [self._places(file, kinds, beside) for file in self.files]

    @cached_property
    def _folder_columns(self) -> frozenset[str]:
        """The columns that folders have: they are the data frame's, and no file's."""
        in_some_file = {name for file in self.files for name in file.top_names}
        beside = frozenset(self.in_files[field.name] for field in self.columns) - in_some_file
        for file in self.files:
            both = in_some_file.intersection(file.folders)
            if both & set(self.in_files.values()):
                raise ReadBySpark(f"`{sorted(both)[0]}` is a column of files and of folders")
            if not beside <= file.folders.keys():
                raise ReadBySpark(f"`{sorted(beside - file.folders.keys())[0]}` is in no file")
        return beside

    def _places(self, file: ListedFile, kinds: Mapping[str, Any], beside: frozenset[str]) -> ColumnPlaces:
        if not file.metadata.num_rows:
            # Nothing is read of it, whatever its columns are.
            return ColumnPlaces({}, {})
        folded = [name.lower() for name in file.top_names]
        columns, constants = {}, {}
        for name, kind in kinds.items():
            theirs = self.in_files[name]
            if theirs in beside:
                constants[name] = _folder_value(file, theirs, kind)
            elif "." in theirs or folded.count(theirs.lower()) > 1:
                raise ReadBySpark(f"column `{theirs}` may be meant in several ways")
            elif theirs in file.top_names:
                self._check(file, theirs, kind)
                columns[name] = theirs
            elif theirs.lower() in folded:
                raise ReadBySpark(f"column `{theirs}` is spelled otherwise in {Path(file.path).name}")
        return ColumnPlaces(columns, constants)

    def _check(self, file: ListedFile, name: str, kind: Any) -> None:
        column = file.fields.get(name)
        if column is None or not reads_alike(kind, column):
            raise ReadBySpark(f"column `{name}` is no plain {kind.simpleString()} in {Path(file.path).name}")
        if not has_our_calendar(kind, file.metadata.metadata):
            raise ReadBySpark(f"times in {Path(file.path).name} are of an older calendar")


@dataclass(frozen=True)
class ColumnPlaces:
    """Of the columns that are read, by our names: what a file calls them, and those that its folders say.

    One that is in neither is NULL.
    """

    columns: Mapping[str, str]
    constants: Mapping[str, Any]


def listed_files(events: DataFrame | Mapping[str, DataFrame]) -> ListedFiles:
    """The files of a data frame that is known to be these; `ReadBySpark` otherwise."""
    if isinstance(events, Mapping):
        raise ReadBySpark("there are several streams")
    frame = events
    opened = remembered(frame)
    if opened is None:
        raise ReadBySpark("only files that `kleene.parquet(spark, path)` opened are read by tasks")
    if opened.doubt is not None:
        raise ReadBySpark(opened.doubt)
    session = frame.sparkSession
    # The client of Spark Connect may be far from the files, and finds others under the same names.
    if getattr(session, "sparkContext", None) is None:
        raise ReadBySpark("the session is Spark Connect's")
    if frame.is_cached:
        raise ReadBySpark("the data frame is cached")
    _check_settings(session, _AS_USUAL)
    return _listed(frame, session, opened)


def _listed(frame: DataFrame, session: SparkSession, opened: OpenedParquet) -> ListedFiles:
    paths = sorted(local_path(place) for place in frame.inputFiles())
    if len(paths) > _MOST_FILES:
        raise ReadBySpark(f"{len(paths):,} files are too many to look at one by one")
    return ListedFiles(session, tuple(map(_file, paths)), frame.schema, opened.columns)


def local_path(place: str) -> str:
    """The path of a file that Spark names; `ReadBySpark` where it is not on this machine's file system."""
    parts = urlsplit(place, allow_fragments=False)
    if parts.scheme != "file" or parts.netloc or parts.query:
        raise ReadBySpark(f"files are on `{parts.scheme}:`, not on a local file system")
    return unquote(parts.path)


def _file(path: str) -> ListedFile:
    try:
        footer = footer_of(path)
        metadata = pq.read_metadata(pa.BufferReader(footer))
    except (OSError, pa.ArrowException) as problem:
        raise ReadBySpark(f"{Path(path).name} cannot be looked at ({type(problem).__name__})") from None
    for codec in _codecs(metadata):
        if codec not in _CODECS:
            raise ReadBySpark(f"{Path(path).name} is compressed by {codec}")
    return ListedFile(path, metadata, digest_of(footer), folder_values(path))


def _codecs(metadata: pq.FileMetaData) -> Iterator[str]:
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        yield from {group.column(place).compression for place in range(group.num_columns)}


def _folder_value(file: ListedFile, name: str, kind: Any) -> Any:
    try:
        return value_of(file.folders[name], kind)
    except UnclearValue as problem:
        raise ReadBySpark(f"`{name}` may be read in several ways in the folder `{name}={problem}`") from None


def _check_settings(session: SparkSession, expected: Mapping[str, str]) -> None:
    for name, value in expected.items():
        said = str(session.conf.get(name, value))
        if said.lower() != value.lower():
            raise ReadBySpark(f"{name} is {said}")
