"""The record of what a checkpoint was begun with, kept in it so that no other stream goes on with it by mistake."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kleene.durable import make_folder, sync_names
from kleene.errors import BadSnapshot, UnreadableFile
from kleene.frames.atomic import replacing
from kleene.queries.meaning import first_change, is_meaning, is_whole, meaning_of
from kleene.spark.streaming.segments import MEANING_HINT, VERSION

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kleene.spark.streaming.preparing import PreparedStream

# One file, named as Spark names them, which reads it where it must.
_PART = "part-00000.txt"


@dataclass(frozen=True)
class Record:
    """The queries by name, with digests of what they mean, and how many buckets their events go to.

    buckets    None where nothing is divided by key, and in the record of a Kleene that did not write a single one
    meanings   by query what its columns and its output mean; nothing in the record of a Kleene that did not say so
    life       made at random for each checkpoint, so that results of two can be told apart
    """

    queries: Mapping[str, str]
    buckets: int | None
    life: str = field(default_factory=lambda: secrets.token_hex(8))
    meanings: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def of(prepared: PreparedStream) -> Record:
        digests = {query.name: query.digest.hex()[:16] for query in prepared.bound}
        meanings = {query.name: meaning_of(query) for query in prepared.bound}
        return Record(digests, prepared.buckets, meanings=meanings)

    def check(self, now: Record) -> None:
        """Refuse to go on with something else."""
        changed = [name for name, digest in self.queries.items() if now.queries.get(name, digest) != digest]
        gone = [name for name in self.queries if name not in now.queries]
        new = [name for name in now.queries if name not in self.queries]
        for names, what in ((changed, "has changed"), (gone, "is gone"), (new, "is new")):
            if names:
                raise BadSnapshot(
                    f"query `{names[0]}` {what} since this checkpoint was begun",
                    hint="restore the queries, or begin with a new checkpoint, which starts without open windows",
                )
        for name, known in self.meanings.items():
            change = first_change(known, now.meanings[name])
            if change is not None:
                raise BadSnapshot(f"{change} when this checkpoint was begun", hint=MEANING_HINT)
        if self.buckets is not None and self.buckets != now.buckets:
            raise BadSnapshot(
                f"this checkpoint was begun with {self.buckets} buckets, and {now.buckets} are asked for now",
                hint="leave the number out, or begin with a new checkpoint",
            )


def read_record(session: SparkSession, checkpoint: str) -> Record | None:
    """The record of a checkpoint; None when it is new."""
    folder = _folder(checkpoint)
    text = _read_by_spark(session, checkpoint) if folder is None else _read(folder)
    if text is None:
        return None
    said = _said(text)
    version = said.pop("kleene")
    if version != VERSION:
        raise BadSnapshot(
            f"this checkpoint has version {version}, and this Kleene reads version {VERSION}",
            hint="finish it with the Kleene that began it, or begin with a new checkpoint",
        )
    return Record(**said)


def _said(text: str) -> dict[str, Any]:
    """The fields of a record, with the version that wrote it."""
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        said = None
    if isinstance(said, dict) and said.get("kleene", VERSION) != VERSION:
        return said  # what another version says is its own
    known = {"kleene", *(field.name for field in fields(Record))}
    if isinstance(said, dict) and {"kleene", "queries", "buckets"} <= said.keys() <= known:
        queries, buckets, meanings = said["queries"], said["buckets"], said.get("meanings", {})
        sound = (
            isinstance(queries, dict)
            and all(isinstance(digest, str) for digest in queries.values())
            and (buckets is None or is_whole(buckets))
            and isinstance(said.get("life", ""), str)
            and isinstance(meanings, dict)
            and meanings.keys() <= queries.keys()
            and all(map(is_meaning, meanings.values()))
        )
        if sound:
            return said
    raise BadSnapshot(
        "the record of this checkpoint is not what Kleene keeps there", hint="begin with a new checkpoint"
    )


def write_record(session: SparkSession, checkpoint: str, record: Record) -> None:
    text = json.dumps({"kleene": VERSION, **asdict(record)})
    folder = _folder(checkpoint)
    if folder is not None:
        with replacing(folder / _PART) as stream:
            stream.write(f"{text}\n".encode())
        return
    session.createDataFrame([(text,)], "value string").coalesce(1).write.mode("overwrite").text(_place(checkpoint))


def _folder(checkpoint: str) -> Path | None:
    """The folder of the record, where it is said to be on this machine: a job of Spark's would take seconds there."""
    if not checkpoint.startswith("file:"):
        return None
    return Path("/" + _place(checkpoint).removeprefix("file:").lstrip("/"))


def _read(folder: Path) -> str | None:
    """As Spark reads it: the file of a name that it does not take for hidden."""
    try:
        texts = [file.read_text() for file in sorted(folder.glob("part-*"))]
        if texts:
            # Its writer may have been killed before its name was on the disk; results will be marked with it.
            make_folder(folder)
            sync_names(folder)
    except OSError as problem:
        raise UnreadableFile(f"`{folder}` cannot be read: {problem.strerror or problem}") from None
    return texts[0] if texts else None


def _read_by_spark(session: SparkSession, checkpoint: str) -> str | None:
    from pyspark.errors import AnalysisException

    try:
        rows = session.read.text(_place(checkpoint), wholetext=True).collect()
    except AnalysisException:
        return None
    return str(rows[0]["value"]) if rows else None


def _place(checkpoint: str) -> str:
    return f"{checkpoint.rstrip('/')}/kleene"
