"""Pipeline files for tests: a right one, which tests change in one place."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kleene.spark.pipeline.reading import Pipeline, read_pipeline

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kleene.spark.pipeline.targets import Target

RIGHT = """\
[[sources]]
name = "readings"
kind = "csv"
path = "day.csv"
schema = { ts = "long", x = "long" }

[[queries]]
name = "pairs"
text = "PATTERN SEQ(A a, B b) WHERE [x] WITHIN 10"

[[sinks]]
kind = "parquet"
path = "out"
"""
DAY = "type,ts,x\nA,1,5\nB,2,5\nA,3,6\nB,20,6\nB,4,6\n"


def changed(*changes: tuple[str, str], added: str = "") -> str:
    """The right file with replacements, each of which must find its place, and something at its end."""
    text = RIGHT
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text + added


def written(folder: Path, text: str = RIGHT, **files: str) -> Path:
    """A pipeline file in a folder, with a day of events and other files beside it."""
    (folder / "day.csv").write_text(files.pop("day", DAY))
    for name, content in files.items():
        (folder / name.replace("_", ".")).write_text(content)
    path = folder / "pipeline.toml"
    path.write_text(text)
    return path


def read(folder: Path, text: str = RIGHT, **files: str) -> Pipeline:
    return read_pipeline(written(folder, text, **files))


class Told:
    """A report that remembers what it was told."""

    def __init__(self) -> None:
        self.stages: list[str] = []
        self.shown: list[tuple[str, list[dict[str, Any]], int]] = []

    @contextmanager
    def stage(self, text: str, tasks: Any = None) -> Iterator[None]:
        self.stages.append(text)
        yield

    def show(self, target: Target, rows: pa.Table, total: int) -> None:
        self.shown.append((target.what, rows.to_pylist(), total))
