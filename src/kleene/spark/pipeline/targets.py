"""What each sink writes, and where: one target for each result. Checked before Spark starts, as far as files are here.

A target on this machine is written beside its place and swapped in when everything is written: `swap_in`. Why this and
not another way is in docs/decisions/010-pipeline-sinks.md.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from glob import glob, has_magic
from itertools import combinations
from os.path import normpath
from pathlib import Path as File

from kleene.durable import commit, sync_names
from kleene.errors import BadTarget, BadValue, SourceNotThere
from kleene.frames.text_files import neighbour
from kleene.spark.pipeline.declared_streams import takes
from kleene.spark.pipeline.model import QUERY_PLACE, Sink, place_key
from kleene.spark.pipeline.reading import Pipeline
from kleene.spark.run_lock import LockedPlace

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_NAMES = {
    "table": re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*){0,2}\Z"),
    "topic": re.compile(r"[A-Za-z0-9._-]{1,249}\Z"),
}
_MARKER = "_SUCCESS"


@dataclass(frozen=True)
class Target:
    """One result and its place: a folder, a table, a topic, or the console."""

    sink: Sink
    # Its place among the sinks of the file; None: the folder of [bad_rows].
    number: int | None
    query: str | None
    # As Spark takes it: a path with its scheme, or the name of a table or a topic.
    place: str
    # The folder, where it is on this machine.
    local: File | None = None

    @property
    def key(self) -> tuple[str | int, ...]:
        return ("bad_rows", "path") if self.number is None else ("sinks", self.number, place_key(self.sink.kind))

    @property
    def shown(self) -> str:
        return self.place if self.local is None else from_here(self.local)

    @property
    def what(self) -> str:
        words = _WORDS.get(self.sink.output, self.sink.output)
        return words if self.query is None else f"{words} of {self.query}"


_WORDS = {"bad_rows": "bad rows", "late": "late events", "compressed": "compressed matches"}


def targets_of(pipeline: Pipeline) -> tuple[Target, ...]:
    """Everything that the run will write, in the order of the file; none of it stands in the way of another."""
    targets = tuple(_targets(pipeline))
    for target in targets:
        _check_beside(pipeline, target)
    # Results may share a topic: each row says of which query it is.
    alone = [target for target in targets if target.place and target.sink.kind != "kafka"]
    for first, second in combinations(alone, 2):
        if overlap(first.place, second.place):
            message = f"`{second.shown}` is written by another sink already"
            raise pipeline.sheet.error(BadValue, message, second.key, _BRACES_HINT, value=True)
    return targets


_BRACES_HINT = f"`{QUERY_PLACE}` in a path stands for the query's name"


def _targets(pipeline: Pipeline) -> Iterator[Target]:
    for number, sink in enumerate(pipeline.model.sinks):
        if sink.output in ("bad_rows", "late"):
            yield _target(pipeline, sink, number, None)
            continue
        for query in pipeline.queries:
            if takes(sink, query) and (sink.output != "timeouts" or query.tree.timeouts is not None):
                yield _target(pipeline, sink, number, query.name)
    path = pipeline.model.bad_rows.path
    if path is not None:
        yield _target(pipeline, Sink(output="bad_rows", kind="json", path=path), None, None)


def _target(pipeline: Pipeline, sink: Sink, number: int | None, query: str | None) -> Target:
    if sink.kind == "console":
        return Target(sink, number, query, "")
    key = place_key(sink.kind)
    name = getattr(sink, key) or ""
    if query is not None:
        name = name.replace(QUERY_PLACE, query if key != "table" else query.replace("-", "_"))
    if key in _NAMES:
        if not _NAMES[key].match(name) or (sink.kind == "memory" and "." in name):
            path = ("sinks", number or 0, key)
            raise pipeline.sheet.error(BadValue, f"`{name}` cannot be a {key}'s name", path, value=True)
        return Target(sink, number, query, name)
    place = placed(pipeline, name)
    return Target(sink, number, query, place, local_file(place))


# Places --------------------------------------------------------------------------------------------------------------


def placed(pipeline: Pipeline, path: str) -> str:
    """A path as Spark takes it: relative ones start at the pipeline file, local ones say that they are local."""
    file = local_file(path)
    if file is None and _SCHEME.match(path):
        return path
    if file is None and File(path).is_absolute() and not pipeline.model.spark.is_local:
        return path  # on the cluster's own file system
    return f"file://{normpath(file or pipeline.folder / path)}"


def local_file(place: str) -> File | None:
    """The file or folder of a place, where that is on this machine."""
    if not place.startswith("file:"):
        return None
    return File("/" + place.removeprefix("file:").lstrip("/"))


def from_here(file: File) -> str:
    """A file of this machine as a person in this folder names it."""
    return str(file.relative_to(File.cwd()) if file.is_relative_to(File.cwd()) else file)


def check_sources(pipeline: Pipeline) -> None:
    """Files of this machine that are not there are missed before Spark starts."""
    for number, source in enumerate(pipeline.model.sources):
        for path in source.paths:
            file = local_file(placed(pipeline, path))
            if file is None or file.exists() or (has_magic(str(file)) and glob(str(file))):
                continue
            key = ("sources", number, "path")
            message = f"source `{source.name}`: there is no `{from_here(file)}`"
            raise pipeline.sheet.error(SourceNotThere, message, key, neighbour(file), value=True)


def check_targets(pipeline: Pipeline, targets: Sequence[Target]) -> None:
    """Refuse to replace what no run wrote; `mode = "error"` replaces nothing."""
    for target in targets:
        file = target.local
        if file is None or not file.exists():
            continue
        if target.sink.mode == "error":
            hint = 'mode = "overwrite" replaces it'
            raise pipeline.sheet.error(BadTarget, f"`{target.shown}` is there already", target.key, hint, value=True)
        if not file.is_dir() or (any(file.iterdir()) and not (file / _MARKER).exists()):
            raise pipeline.sheet.error(
                BadTarget,
                f"`{target.shown}` is no result of an earlier run, and would be replaced",
                target.key,
                "name another folder, or remove this one",
                value=True,
            )


def _check_beside(pipeline: Pipeline, target: Target) -> None:
    """A result must not replace what is read."""
    for source in pipeline.model.sources:
        read = {"table": [source.table], "memory": [], "kafka": [source.topic]}.get(target.sink.kind)
        read = [placed(pipeline, path) for path in source.paths] if read is None else read
        if target.place and any(one is not None and overlap(one, target.place) for one in read):
            does = "replaces" if pipeline.model.stream is None else "adds to"
            message = f"source `{source.name}` is read from `{target.shown}`, which this sink {does}"
            raise pipeline.sheet.error(BadValue, message, target.key, value=True)


def overlap(first: str, second: str) -> bool:
    one, other = (place.rstrip("/") + "/" for place in (first, second))
    return one.startswith(other) or other.startswith(one)


def folders_of(targets: Sequence[Target]) -> list[LockedPlace]:
    """The folders that a run writes to, which no other run may write to meanwhile."""
    return [LockedPlace(target.place, target.shown, target.local) for target in targets if target.sink.path is not None]


# The swap ------------------------------------------------------------------------------------------------------------


def staging(file: File) -> File:
    """Where a result is written until it is whole; readers skip names that begin with a dot."""
    return file.with_name(f".{file.name}.staging")


def _retired(file: File) -> File:
    return file.with_name(f".{file.name}.old")


def swap_in(file: File) -> None:
    """Put the result that was written beside `file` in its place; it is absent for a moment, and never half."""
    old = _retired(file)
    commit(staging(file), file, aside=old)
    shutil.rmtree(old, ignore_errors=True)


def recover(file: File) -> None:
    """Undo what a killed run left: the old result comes back if the new one did not take its place."""
    old = _retired(file)
    if old.exists():
        if file.exists():
            # Until the disk knows the new result by its name, the old one is all that a loss of power would leave.
            sync_names(file.parent)
        else:
            commit(old, file)
    for left in (old, staging(file)):
        if left.exists():
            shutil.rmtree(left)
