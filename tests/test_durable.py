"""Commits by rename: what must be on the disk before, that readers see nothing half, and that there is no other way."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kleene import durable
from kleene.durable import commit, make_folder
from kleene.frames.atomic import replacing
from kleene.spark.pipeline.planned_batches import PlannedBatches

SOURCES = Path(__file__).parents[1] / "src" / "kleene"
# A file that carries its digest, a launcher that is compared with its text: what is lost is noticed and made again.
# Notes between processes of one run, which end with it.
NOTICED = {"lang/parser_tables.py", "spark/java.py", "spark/streaming/heartbeats.py", "spark/streaming/slot_owner.py"}


@pytest.fixture
def done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the disk is told, in order; it is told, too."""
    told: list[str] = []

    def name(path: str | Path) -> str:
        return os.path.relpath(path, tmp_path)

    def synced(handle: int) -> None:
        told.append(f"sync {name(os.readlink(f'/proc/self/fd/{handle}'))}")
        fsync(handle)

    def renamed(what: str, real: Callable[[str | Path, str | Path], None]) -> Callable[[str | Path, str | Path], None]:
        def rename(old: str | Path, new: str | Path) -> None:
            told.append(f"{what} {name(old)} {name(new)}")
            real(old, new)

        return rename

    # As a process finds it that has synced nothing yet.
    monkeypatch.setattr(durable, "_on_disk", set())
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "rename", renamed("rename", os.rename))
    monkeypatch.setattr(os, "replace", renamed("replace", os.replace))
    return told


def test_a_file_is_on_the_disk_before_its_name(tmp_path: Path, done: list[str]) -> None:
    (tmp_path / "draft").write_text("new")
    commit(tmp_path / "draft", tmp_path / "file")
    assert done == ["sync draft", "replace draft file", "sync ."]
    assert (tmp_path / "file").read_text() == "new"


def test_a_folder_is_on_the_disk_with_everything_in_it(tmp_path: Path, done: list[str]) -> None:
    (tmp_path / "draft" / "inner").mkdir(parents=True)
    (tmp_path / "draft" / "inner" / "part").write_text("new")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "part").write_text("old")
    commit(tmp_path / "draft", tmp_path / "out", aside=tmp_path / "old")
    assert sorted(done[:3]) == ["sync draft", "sync draft/inner", "sync draft/inner/part"]
    # Syncing may take long: it is over when the old one goes.
    assert done[3:] == ["rename out old", "replace draft out", "sync ."]
    assert (tmp_path / "out" / "inner" / "part").read_text() == "new"
    assert (tmp_path / "old" / "part").read_text() == "old"


def test_what_was_there_stays_when_its_successor_cannot_take_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("draft", "out"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "part").write_text(name)

    def refused(old: Path, new: Path) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "replace", refused)
    with pytest.raises(OSError, match="Input/output"):
        commit(tmp_path / "draft", tmp_path / "out", aside=tmp_path / "old")
    assert (tmp_path / "out" / "part").read_text() == "out"
    assert not (tmp_path / "old").exists()


def test_new_folders_are_on_the_disk(tmp_path: Path, done: list[str]) -> None:
    make_folder(tmp_path / "a" / "b")
    assert done[:2] == ["sync a", "sync ."]
    # And those above, which somebody may have made and not synced.
    assert done[2:] == [f"sync {'/'.join(['..'] * up)}" for up in range(1, len(tmp_path.parts))]
    done.clear()
    make_folder(tmp_path / "a" / "b")
    assert not done


def test_a_folder_that_a_killed_run_made_is_synced_by_the_next(tmp_path: Path, done: list[str]) -> None:
    (tmp_path / "a").mkdir()
    make_folder(tmp_path / "a")
    assert done[0] == "sync ."


def test_files_that_are_replaced_are_synced(tmp_path: Path, done: list[str]) -> None:
    with replacing(tmp_path / "file") as stream:
        stream.write(b"new")
    # Before it the folders above.
    assert [word.split()[0] for word in done[-3:]] == ["sync", "replace", "sync"]
    assert done[-2].endswith(" file")


def test_what_spark_plans_is_synced_once(tmp_path: Path, done: list[str]) -> None:
    """And before results are; a file that Spark has not finished has a name that begins with a dot."""
    for name in ("offsets/0", "offsets/.1.tmp", "sources/0/0", "commits/0"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    planned = PlannedBatches(tmp_path)
    planned.sync()
    above = ["sync ."]
    synced = ["sync offsets/0", "sync offsets", *above, "sync sources/0/0", "sync sources/0", "sync sources", *above]
    assert done == synced
    done.clear()
    (tmp_path / "offsets" / ".1.tmp").rename(tmp_path / "offsets" / "1")
    planned.sync()
    planned.sync()
    assert [word for word in done if word.startswith("sync")] == ["sync offsets/1", "sync offsets"]
    PlannedBatches(None).sync()


def test_nothing_else_renames() -> None:
    renaming = []
    for file in sorted(SOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                called = ast.unparse(node.func)
                path = node.func.attr == "replace" and len(node.args) == 1 and not node.keywords
                if called in ("os.rename", "os.replace", "shutil.move") or node.func.attr == "rename" or path:
                    renaming.append(str(file.relative_to(SOURCES)))
    assert set(renaming) == {"durable.py", *NOTICED}
