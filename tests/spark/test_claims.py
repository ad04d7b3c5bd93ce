"""Whose a folder of a stream's results is: marked in one step, whatever a run that was killed there left."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.spark.pipelines import written
from tests.spark.stream_pipelines import STREAM

from kleene.errors import BadTarget

pytest.importorskip("pyspark")


def claim(folder: Path, life: str = "life") -> None:
    written(folder, STREAM)
    claim_again(folder, life)


def claim_again(folder: Path, life: str = "life") -> None:
    """Of a pipeline file that is there."""
    from kleene.spark.pipeline.reading import read_pipeline
    from kleene.spark.pipeline.stream_sinks import StreamSinks
    from kleene.spark.pipeline.targets import targets_of

    pipeline, nothing = read_pipeline(folder / "pipeline.toml"), Any
    StreamSinks(nothing, pipeline, targets_of(pipeline), nothing).claim(life)  # type: ignore[arg-type]


def mark(folder: Path) -> dict[str, str]:
    assert [path.name for path in (folder / "out").iterdir()] == ["_kleene.json"]
    return dict(json.loads((folder / "out" / "_kleene.json").read_text()))


@pytest.mark.parametrize("step", ["fsync", "replace", "open"])
def test_a_run_killed_while_it_marks_leaves_a_folder_that_the_next_one_takes(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, STREAM)
    (tmp_path / "out").mkdir()

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, step, killed)
    with pytest.raises(KeyboardInterrupt):
        claim(tmp_path)
    monkeypatch.undo()
    # The folder itself is synced before anything is written to it.
    left = ["._kleene.json"] if step == "replace" else []
    assert [path.name for path in (tmp_path / "out").iterdir()] == left
    # The checkpoint of that run has another life: it was removed, for nothing had been done.
    claim(tmp_path, "another life")
    assert mark(tmp_path)["life"] == "another life"


def test_a_run_killed_before_it_marks_leaves_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    written(tmp_path, STREAM)
    monkeypatch.setattr(Path, "write_text", killed)
    with pytest.raises(KeyboardInterrupt):
        claim_again(tmp_path)
    monkeypatch.undo()
    assert list((tmp_path / "out").iterdir()) == []
    claim(tmp_path, "another life")
    assert mark(tmp_path)["life"] == "another life"


@pytest.mark.parametrize("step", ["mkdir", "fsync", "replace", "chmod"])
def test_a_run_killed_while_it_begins_a_checkpoint(step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next one finds a checkpoint that is not begun, whatever stands in its folder, and begins it."""
    from kleene.spark.streaming.record import Record, read_record, write_record

    checkpoint, nothing = f"file://{tmp_path}/state", Any
    real, calls = getattr(os, step), []

    def killed(*given: Any, **named: Any) -> None:
        calls.append(real(*given, **named) if step == "mkdir" else None)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, step, killed)
    with pytest.raises(KeyboardInterrupt):
        write_record(nothing, checkpoint, Record({"pairs": "digest"}, 4))  # type: ignore[arg-type]
    monkeypatch.undo()
    assert calls
    if step != "mkdir":
        # As a kill leaves it, which cleans nothing up.
        (tmp_path / "state" / "kleene" / ".part-00000.txt.abc.part").write_text('{"kleene": 1, "quer')
    assert read_record(nothing, checkpoint) is None  # type: ignore[arg-type]
    record = Record({"pairs": "digest"}, 4)
    write_record(nothing, checkpoint, record)  # type: ignore[arg-type]
    assert read_record(nothing, checkpoint) == record  # type: ignore[arg-type]


def test_a_folder_is_marked_once(tmp_path: Path) -> None:
    claim(tmp_path)
    claim(tmp_path)
    assert mark(tmp_path) == {"checkpoint": "state", "life": "life", "holds": "matches of pairs as parquet"}
    with pytest.raises(BadTarget, match="holds results of another checkpoint, begun in `state`"):
        claim(tmp_path, "another life")


@pytest.mark.parametrize("name", ["report.txt", ".hidden", "batch=0"])
def test_what_no_stream_wrote_is_still_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / name).touch()
    (tmp_path / "out" / "._kleene.json").touch()
    with pytest.raises(BadTarget, match="holds what no stream wrote"):
        claim(tmp_path)
