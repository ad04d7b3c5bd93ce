"""Whether each Parquet and ORC file of a source fits it, by its footer, before a batch reads it.

Spark takes the columns of a source from one place and reads every file with them: a column that a file lacks is NULL, a
timestamp is read as a number where the source has numbers, and nothing tells. A file that is cut off ends the run with
a failure of Spark's. Here each of these is one error that names the file, and nothing of the batch has been read.

Of files on this machine; elsewhere a footer takes as long to fetch as a small file.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as orc
import pyarrow.parquet as pq

from kleene.errors import KleeneError, PipelineError, SourceColumn, SourceNotThere
from kleene.spark.batch import KeyColumn
from kleene.spark.pipeline.model import Source
from kleene.spark.pipeline.reading import Pipeline
from kleene.spark.pipeline.targets import from_here, local_file, placed
from kleene.spark.types import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_KINDS = ("parquet", "orc")
# With these options Spark chooses by the time of a file, or the user has chosen that damaged files are passed over.
_UNCHECKED = ("modifiedbefore", "modifiedafter", "ignorecorruptfiles")
_INSTEAD = "put a whole file in its place, under its name, or move it away, and run again: nothing of it has been read"


class SourceFile(NamedTuple):
    """A file of a source, by the number of the source."""

    number: int
    path: Path


@dataclass
class FileChecks:
    """The files of a pipeline; each is looked at once, and again when it was replaced."""

    pipeline: Pipeline
    _known: set[tuple[Path, int, int]] = field(default_factory=set)
    # Files that are whole, whose columns have not been compared.
    _whole: dict[SourceFile, pa.Schema] = field(default_factory=dict)

    def check_whole(self) -> None:
        """Raise the first file whose footer cannot be read."""
        for file in self._new():
            try:
                self._whole[file] = _footer(file.path, self._source(file).kind)
            except FileNotFoundError:
                continue
            except (OSError, pa.ArrowException) as problem:
                said = next(iter(str(problem).splitlines()), "no message").rstrip(".")
                raise self._error(SourceNotThere, file, f"cannot be read: {said}") from None

    def check_columns(self, columns: Mapping[str, StructType], keys: Sequence[KeyColumn]) -> None:
        """Raise the first file that lacks a key of a query that reads its events, or has a column of another kind.

        columns   what Spark reads each source with, by the name of the source
        """
        self.check_whole()
        for file, footer in self._whole.items():
            source = self._source(file)
            expected = columns[source.name]
            present = {name.casefold(): name for name in (*footer.names, *_from_folders(file.path))}
            for name in _lacked(self.pipeline, file, source, present, expected.names, keys):
                raise self._error(SourceColumn, file, f"has no column {name}")
            self._check_kinds(file, footer, arrow_schema(expected))
        self._whole.clear()

    def _check_kinds(self, file: SourceFile, footer: pa.Schema, columns: pa.Schema) -> None:
        wanted = {column.name.casefold(): column for column in columns}
        for column in footer:
            expected = wanted.get(column.name.casefold())
            if expected is not None and _differ(column.type, expected.type):
                what = f"holds {column.type} in column `{column.name}`, and the source has {expected.type} there"
                raise self._error(SourceColumn, file, what)

    # Files

    def _new(self) -> Iterator[SourceFile]:
        for number, source in enumerate(self.pipeline.model.sources):
            for path in _files(self.pipeline, source):
                try:
                    status = path.stat()
                except FileNotFoundError:
                    continue
                state = path, status.st_mtime_ns, status.st_size
                if state not in self._known:
                    self._known.add(state)
                    yield SourceFile(number, path)

    def _source(self, file: SourceFile) -> Source:
        return self.pipeline.model.sources[file.number]

    def _error(self, kind: type[PipelineError], file: SourceFile, what: str) -> KleeneError:
        # It is looked at again when it is still there.
        self._known = {state for state in self._known if state[0] != file.path}
        self._whole.clear()
        message = f"source `{self._source(file).name}`: `{from_here(file.path)}` {what}"
        return self.pipeline.sheet.error(kind, message, ("sources", file.number, "path"), _INSTEAD, value=True)


def _files(pipeline: Pipeline, source: Source) -> Iterator[Path]:
    """The files of a source on this machine that Spark would read."""
    options = {name.casefold(): value for name, value in source.options.items()}
    if source.kind not in _KINDS or not options.keys().isdisjoint(_UNCHECKED):
        return
    pattern = str(options.get("pathglobfilter", "*"))
    for place in source.paths:
        local = local_file(placed(pipeline, place))
        for path in glob(str(local)) if local is not None else ():
            if not os.path.isdir(path):
                yield Path(path)
                continue
            for folder, folders, names in os.walk(path):
                folders[:] = filter(_visible, folders)
                yield from (Path(folder, name) for name in names if _visible(name) and fnmatch(name, pattern))


def _visible(name: str) -> bool:
    """Spark passes over names that begin so, but for folders of a partition column."""
    return not name.startswith((".", "_")) or (name.startswith("_") and "=" in name)


def _footer(path: Path, kind: str) -> pa.Schema:
    return pq.read_schema(path) if kind == "parquet" else orc.ORCFile(path).schema


def _from_folders(path: Path) -> list[str]:
    """Columns that Spark takes from the names of folders: `day=2026-03-02`."""
    return [name.partition("=")[0] for name in path.parent.parts if "=" in name]


# Columns -------------------------------------------------------------------------------------------------------------


def _lacked(
    pipeline: Pipeline,
    file: SourceFile,
    source: Source,
    present: Mapping[str, str],
    expected: Sequence[str],
    keys: Sequence[KeyColumn],
) -> Iterator[str]:
    """What the file lacks, in words: the types of a source that has them, or a key of a query that reads its events.

    present    the file's own names of columns, by those in small letters
    expected   the columns of the source
    """

    def theirs(name: str) -> str:
        return source.columns.get(name, name)

    type_column = theirs(pipeline.schema.type)
    own_types = pipeline.schema.constant_type is None and type_column in expected
    if own_types and type_column.casefold() not in present:
        yield f"`{type_column}`, which says of what type its events are"
    missing = [key for key in keys if theirs(key.column).casefold() not in present]
    types = _types(pipeline, file, source, present.get(type_column.casefold())) if missing else ()
    for key in missing:
        if not key.types.isdisjoint(types):
            yield f"`{theirs(key.column)}`, the key of query `{key.query}`"


def _types(pipeline: Pipeline, file: SourceFile, source: Source, column: str | None) -> Collection[str]:
    """The types of a file's events; of a source without them each event is of the source's name."""
    if pipeline.schema.constant_type is not None:
        return {pipeline.schema.constant_type}
    if column is None:
        return {source.name}
    if source.kind == "parquet":
        values = pq.read_table(file.path, columns=[column], partitioning=None).column(0)
    else:
        values = orc.ORCFile(file.path).read(columns=[column]).column(0)
    return set(map(str, pc.unique(values).to_pylist()))


_FAMILIES: tuple[tuple[str, Any], ...] = (
    ("time", pa.types.is_timestamp),
    ("day", pa.types.is_date),
    ("number", lambda kind: pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)),
    ("truth", pa.types.is_boolean),
    ("text", lambda kind: any(word in str(kind) for word in ("string", "binary"))),
)


def _differ(actual: pa.DataType, expected: pa.DataType) -> bool:
    """Whether values are of another kind; within a kind Spark widens or refuses, and of other kinds it says so."""
    one, other = _family(actual), _family(expected)
    return one is not None and other is not None and one != other and (one, other) != ("day", "time")


def _family(kind: pa.DataType) -> str | None:
    if pa.types.is_dictionary(kind):
        return _family(kind.value_type)
    if pa.types.is_nested(kind):
        return None
    return next((name for name, holds in _FAMILIES if holds(kind)), None)
