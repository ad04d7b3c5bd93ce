"""Pipeline files for tests: a right one, which tests change in one place."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from kleene.errors import KleeneError
from kleene.spark.pipeline.reading import Pipeline, read_pipeline
from kleene.spark.pipeline.targets import check_sources, check_targets, targets_of

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


def error_of(text: str, **files: str) -> str:
    """The whole message for a pipeline file in this folder."""
    written(Path(), text, **files)
    with pytest.raises(KleeneError) as caught:
        check(read_pipeline("pipeline.toml"))
    return str(caught.value)


def check(pipeline: Pipeline) -> None:
    """What is checked of a file before Spark starts."""
    targets = targets_of(pipeline)
    check_sources(pipeline)
    check_targets(pipeline, targets)


def shown(code: str, message: str, line: int, column: int, source: str, width: int, hint: str | None = None) -> str:
    gutter = " " * len(str(line))
    lines = [
        f"error[{code}]: {message}",
        f" {gutter}--> pipeline.toml:{line}:{column}",
        f" {gutter} |",
        f" {line} | {source}",
        f" {gutter} | {' ' * (column - 1)}{'^' * width}",
    ]
    return "\n".join([*lines, *([f"  = hint: {hint}"] if hint else [])])


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
