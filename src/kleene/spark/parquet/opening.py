"""Data frames of which it is known that they are Parquet files and nothing else.

A data frame tells which files it reads, but not what it does with their rows. So Kleene remembers the frames that it
opened itself; whatever is made of such a frame is another frame, which nobody remembers. Nothing keeps a frame alive.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Options that say which files there are, or which columns: Spark has heeded them before we see either.
_HARMLESS_OPTIONS = frozenset(name.lower() for name in ("mergeSchema", "pathGlobFilter", "recursiveFileLookup"))
_PATTERNS = frozenset("*?[]{}\\")
_REMEMBERED: WeakKeyDictionary[Any, OpenedParquet] = WeakKeyDictionary()


@dataclass(frozen=True)
class OpenedParquet:
    """What is known of a data frame that Kleene opened.

    columns   its columns by the names that files and folders have for them
    doubt     why its rows may be others than those of its files; None: they are not
    """

    columns: Mapping[str, str]
    doubt: str | None


def open_parquet(session: SparkSession, paths: Sequence[str], options: Mapping[str, Any]) -> DataFrame:
    """Parquet files as a data frame that is remembered."""
    frame = session.read.options(**options).parquet(*paths)
    remember(frame, frame.columns, paths, options)
    return frame


def remember(frame: DataFrame, in_files: Sequence[str], paths: Sequence[str], options: Mapping[str, Any]) -> None:
    """Remember a frame that has the rows of Parquet files.

    in_files   the names that its columns have in the files
    paths      what Spark was told to open, with these options
    """
    columns = dict(zip(frame.columns, in_files, strict=True))
    _REMEMBERED[frame] = OpenedParquet(columns, _doubt(paths, options))


def remembered(frame: DataFrame) -> OpenedParquet | None:
    return _REMEMBERED.get(frame)


def _doubt(paths: Sequence[str], options: Mapping[str, Any]) -> str | None:
    unknown = sorted(name for name in options if name.lower() not in _HARMLESS_OPTIONS)
    if unknown:
        return f"its option `{unknown[0]}` is Spark's own"
    return None if _are_apart(paths) else "a file may be meant twice by these paths"


def _are_apart(paths: Sequence[str]) -> bool:
    """Whether no file can lie under two of the paths: Spark reads it twice then, and names it once.

    Stars never stand for a slash, so that what one pattern names is apart.
    """
    if len(paths) == 1:
        return "{" not in paths[0]
    plain = [path.removeprefix("file://").removeprefix("file:") for path in paths]
    if any(_PATTERNS.intersection(path) or ".." in path or ":" in path for path in plain):
        return False
    if len({path.startswith("/") for path in plain}) > 1:
        # Spark's working folder need not be ours.
        return False
    folders = sorted(f"{posixpath.normpath(path)}/" for path in plain)
    return not any(after.startswith(before) for before, after in pairwise(folders))
