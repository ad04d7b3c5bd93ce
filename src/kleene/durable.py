"""Commits by rename that outlast a power cut: the content is on the disk before the name that stands for it.

To readers a rename is one step, whatever happens to the process. To the disk it is not: names and contents reach it in
any order, so that a machine that loses power may come back with the new name and an empty file.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

# Folders of some network file systems cannot be synced; their servers keep names in order.
_NOT_FOR_FOLDERS = (errno.EINVAL, errno.ENOTSUP, errno.EBADF)
# Folders whose names this process has synced.
_on_disk: set[tuple[Path, int, int]] = set()


def commit(draft: Path, target: Path, aside: Path | None = None) -> None:
    """Put a file or a folder in its place: it is whole there, or it is not there.

    aside   where a folder that is there already is moved first, for a rename replaces files only
    """
    sync(draft)
    moved = aside if target.exists() else None
    if moved is not None:
        os.rename(target, moved)
    try:
        os.replace(draft, target)
    except OSError:
        # Put the old folder back.
        if moved is not None:
            os.rename(moved, target)
        raise
    sync_names(target.parent)


def sync(path: Path) -> None:
    """Have a file, or a folder and everything in it, on the disk."""
    if not path.is_dir():
        _sync_file(path)
        return
    for folder, _, files in os.walk(path):
        for name in files:
            _sync_file(Path(folder, name))
        sync_names(Path(folder))


def sync_names(folder: Path) -> None:
    """Have on the disk which files a folder holds, under which names."""
    if os.name == "nt":  # pragma: no cover - Windows opens no folders
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as problem:
        if problem.errno not in _NOT_FOR_FOLDERS:
            raise
    finally:
        os.close(handle)


def make_folder(folder: Path) -> None:
    """Make a folder and its parents where they do not exist, and sync all of them.

    Existing folders are synced too: a run that was killed may have made them without syncing them.
    """
    new = {part for part in (folder, *folder.parents) if not part.exists()}
    folder.mkdir(parents=True, exist_ok=True)
    for part in (folder, *folder.parents[:-1]):
        status = part.stat()
        if (part, status.st_dev, status.st_ino) in _on_disk:
            continue
        try:
            sync_names(part.parent)
        except PermissionError:
            # Another user made this folder, in a folder that this process may not open.
            if part in new:
                raise
        _on_disk.add((part, status.st_dev, status.st_ino))


def _sync_file(file: Path) -> None:
    # Windows syncs only what is open for writing.
    handle = os.open(file, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
