"""The files and folders of a stream beside its results: what it reads, its checkpoint, its measures."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path as File
from typing import Any

from kleene.errors import BadTarget, BadValue, PipelineError, SourceNotThere
from kleene.spark.pipeline.failures import room_hint
from kleene.spark.pipeline.model import StreamEntry
from kleene.spark.pipeline.reading import Pipeline
from kleene.spark.pipeline.slot_record import NAME
from kleene.spark.pipeline.targets import Target, check_sources, local_file, overlap, placed
from kleene.spark.run_lock import LockedPlace


def entry_of(pipeline: Pipeline) -> StreamEntry:
    assert pipeline.model.stream is not None, "the file is of a stream"
    return pipeline.model.stream


def checkpoint_of(pipeline: Pipeline) -> str:
    """The path of the checkpoint, as Spark takes it."""
    return placed(pipeline, entry_of(pipeline).checkpoint)


def checkpoint_place(pipeline: Pipeline) -> LockedPlace:
    """The checkpoint as something that one run at a time writes to."""
    checkpoint = checkpoint_of(pipeline)
    return LockedPlace(checkpoint, entry_of(pipeline).checkpoint, local_file(checkpoint))


def slots_file(pipeline: Pipeline) -> File | None:
    """The file with what the slots of the stream hold; None where the checkpoint is not on this machine."""
    folder = local_file(checkpoint_of(pipeline))
    return None if folder is None else folder / NAME


def check_places(pipeline: Pipeline, targets: Sequence[Target]) -> None:
    """Check the places of a stream as far as that is possible before Spark starts."""
    check_sources(pipeline)
    for number, source in enumerate(pipeline.model.sources):
        for path in source.paths:
            file = local_file(placed(pipeline, path))
            if file is not None and file.is_file():
                message = f"source `{source.name}`: a stream reads the files of a folder, and `{path}` is one file"
                hint = "name its folder, or a pattern such as `day*.csv`"
                raise pipeline.sheet.error(SourceNotThere, message, ("sources", number, "path"), hint, value=True)
    _check_checkpoint(pipeline, targets)


def _check_checkpoint(pipeline: Pipeline, targets: Sequence[Target]) -> None:
    """Neither sources nor sinks are in the checkpoint, nor it in them."""
    checkpoint = checkpoint_of(pipeline)
    read = [placed(pipeline, path) for source in pipeline.model.sources for path in source.paths]
    written = [target.place for target in targets if target.sink.path is not None]
    for what, places in (("read", read), ("written", written)):
        if any(overlap(place, checkpoint) for place in places):
            message = f"`{entry_of(pipeline).checkpoint}` is {what}, and cannot hold the checkpoint"
            raise pipeline.sheet.error(BadValue, message, ("stream", "checkpoint"), "name another folder", value=True)


def metrics_file(pipeline: Pipeline) -> File | None:
    """The file to which measures are added, if any; it is there now."""
    path = entry_of(pipeline).metrics
    if path is None:
        return None
    file = pipeline.folder / path
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    except OSError as problem:
        raise _unwritten(pipeline, problem) from None
    return file


def add_measures(pipeline: Pipeline, file: File, measures: Mapping[str, Any]) -> None:
    """Add a line of measures to their file."""
    try:
        with file.open("a") as lines:
            lines.write(json.dumps(measures) + "\n")
    except OSError as problem:
        raise _unwritten(pipeline, problem) from None


def _unwritten(pipeline: Pipeline, problem: OSError) -> PipelineError:
    message = f"`{entry_of(pipeline).metrics}` cannot be written: {problem.strerror or problem}"
    return pipeline.sheet.error(BadTarget, message, ("stream", "metrics"), room_hint(problem), value=True)
