"""The disk that fails: what it keeps and loses is what it says."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from tests.chaos.disk import Disk, Failure, Killed


def lost(folder: Path, losing: str, seed: int) -> dict[str, bytes]:
    """What is there after a loss of power: one file was synced with its name, one only itself, one not at all."""
    root = folder / f"{losing} {seed}"
    root.mkdir()
    disk = Disk(root, random.Random(seed), losing)
    disk.restart(Failure("power", "lock", 0))
    with disk.mounted():
        for name in ("whole", "nameless", "loose"):
            (root / name).write_text(name)
            if name != "loose":
                handle = os.open(root / name, os.O_RDONLY)
                os.fsync(handle)
                os.close(handle)
            if name == "whole":
                handle = os.open(root, os.O_RDONLY)
                os.fsync(handle)
                os.close(handle)
        with pytest.raises(Killed), disk.operation("lock", root):
            pass
        # A dead process does nothing more, whatever it still tries.
        with pytest.raises(Killed):
            (root / "whole").unlink()
    disk.check()
    disk.restart(None)
    disk.check()
    return {path.name: path.read_bytes() for path in root.iterdir()}


def test_what_is_synced_is_kept_and_nothing_else_is_sure(tmp_path: Path) -> None:
    found = [lost(tmp_path, "any", seed) for seed in range(60)]
    assert all(files["whole"] == b"whole" for files in found)
    assert {files.get("nameless") for files in found} == {None, b"nameless"}
    assert {None, b"", b"loose", bytes(5)} < {files.get("loose") for files in found}


def test_in_order_a_later_change_is_not_kept_without_an_earlier_one(tmp_path: Path) -> None:
    found = [lost(tmp_path, "in order", seed) for seed in range(40)]
    # To sync the second file has everything before it on the disk.
    assert all(files["nameless"] == b"nameless" for files in found)
    assert {files.get("loose") for files in found} == {None, b"", b"loose"}


@pytest.mark.parametrize("kind", ["error", "full"])
def test_an_error_comes_once_and_a_full_disk_stays_full(tmp_path: Path, kind: str) -> None:
    disk = Disk(tmp_path, random.Random(0), losing="any")
    disk.restart(Failure(kind, "create", 1))
    with disk.mounted():
        (tmp_path / "first").touch()
        with pytest.raises(OSError, match="error" if kind == "error" else "space"):
            (tmp_path / "second").write_text("text")
        if kind == "full":
            with pytest.raises(OSError, match="space"):
                (tmp_path / "third").mkdir()
        (tmp_path / "first").unlink()
    assert disk.hit is not None
    disk.restart(None)
    with disk.mounted():
        (tmp_path / "third").mkdir()
    disk.check()


def test_a_killed_process_holds_no_lock(tmp_path: Path) -> None:
    import fcntl

    disk = Disk(tmp_path, random.Random(1), losing="any")
    disk.restart(Failure("kill", "make folder", 0))
    with disk.mounted():
        handle = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with pytest.raises(Killed):
            (tmp_path / "folder").mkdir()
    disk.restart(None)
    with disk.mounted():
        other = os.open(tmp_path / "lock", os.O_RDWR)
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(other)
