"""A folder on a disk that fails: between any two operations, by an error, by being full, by losing power.

The folder is a real one, and what runs over it is the real code: operations on files below it go through this module,
which counts them, lets one of them fail, and knows what has been synced. What a killed process had in memory is gone,
and its locks are free. A loss of power takes what was not synced, in one of several ways.
"""

from __future__ import annotations

import builtins
import errno
import fcntl
import io
import os
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from kleene import durable

# What can be asked of a disk. A folder is opened to be synced, which counts as that.
OPERATIONS = (
    *("create", "write", "truncate", "sync file", "sync folder", "rename"),
    *("make folder", "remove file", "remove folder", "read", "lock"),
)
# Those that need room.
NEED_ROOM = ("create", "write", "make folder", "rename", "sync file")


# A first part of everything is kept; of the names in each folder a first part, and contents whole; any part, and
# contents empty, cut off or zeros.
LOSING = ("in order", "by folder", "any")
# What a task asks of the state store.
STATE = ("get", "put", "remove", "list", "set timer", "drop timer")


class Killed(BaseException):
    """The process is no more; nothing of it catches this."""


class TaskLost(Exception):
    """A worker is no more; Spark has its task done again."""


@dataclass(frozen=True)
class Failure:
    """What is to fail.

    kind        `kill`, `power`, `error` (once), `full` (from then on), or `worker` (only the task)
    operation   the operation that it hits; None: any
    after       how many of those go well before it
    """

    kind: str
    operation: str | None
    after: int


class Hit(NamedTuple):
    """A failure that has come about: its kind, the operation that it hit, and what the file is for."""

    kind: str
    operation: str
    place: str


@dataclass(eq=False)
class FileNode:
    data: bytes = b""
    synced: bytes = b""


@dataclass(eq=False)
class FolderNode:
    names: dict[str, Node] = field(default_factory=dict)
    synced: dict[str, Node] = field(default_factory=dict)


Node = FileNode | FolderNode


@dataclass(eq=False)
class Change:
    """Names that change together, or the content of a file; not on the disk yet."""

    names: tuple[tuple[FolderNode, str, Node | None], ...] = ()
    file: FileNode | None = None
    data: bytes = b""

    def apply(self) -> None:
        for folder, name, node in self.names:
            if node is None:
                folder.synced.pop(name, None)
            else:
                folder.synced[name] = node
        if self.file is not None:
            self.file.synced = self.data


@dataclass
class Disk:
    """The disk of one machine on which processes come and go.

    losing     what a loss of power takes of what was not synced: one of `LOSING`
    place      what a file is for, by its path below the root
    """

    root: Path
    draw: random.Random
    losing: str
    place: Callable[[str], str] = lambda path: "file"
    failure: Failure | None = None
    # Called after each operation with its path, as a reader that polls.
    look: Callable[[Path], None] = lambda path: None

    def __post_init__(self) -> None:
        self.tree = FolderNode()
        self._below = str(self.root)
        self.dead = self.full = self.dark = False
        self.hit: Hit | None = None
        self.done: Counter[str] = Counter()
        self._pending: list[Change] = []
        self._open: dict[int, tuple[Path, Node]] = {}
        self._left = 0
        self._looking = False

    # A process ------------------------------------------------------------------------------------------------------

    def restart(self, failure: Failure | None) -> None:
        """A new process on the disk as it is now, which has room again."""
        durable._on_disk.clear()
        for handle in list(self._open):
            _CLOSE(handle)
        self._open.clear()
        if self.dark:
            self._lose()
        self.dead = self.full = self.dark = False
        self.hit = None
        self.arm(failure)

    def arm(self, failure: Failure | None) -> None:
        """Let something fail from now on."""
        self.failure, self._left = failure, 0 if failure is None else failure.after

    def step(self, operation: str, path: Path | str, torn: Callable[[], None] | None = None) -> bool:
        """Count an operation; when its time has come it fails. Whether the process dies when it is done.

        torn   does a part of the operation
        """
        if self.dead:
            raise Killed
        self.done[operation] += 1
        if self.full and operation in NEED_ROOM:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        failure = self.failure
        if failure is None or failure.operation not in (None, operation):
            return False
        if failure.kind == "full" and operation not in NEED_ROOM:
            return False
        if failure.kind == "error" and operation in STATE:
            return False
        if self._left:
            self._left -= 1
            return False
        self.failure = None
        self.hit = Hit(failure.kind, operation, self.place(os.path.relpath(path, self.root)))
        if failure.kind == "worker":
            raise TaskLost
        if torn is not None and self.draw.random() < 0.5:
            torn()
        if failure.kind == "error":
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
        if failure.kind == "full":
            self.full = True
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        self.dark = failure.kind == "power"
        if self.draw.random() < 0.5:
            return True
        self.die()
        return False

    def die(self) -> None:
        self.dead = True
        raise Killed

    @contextmanager
    def operation(self, operation: str, path: Path | str, torn: Callable[[], None] | None = None) -> Iterator[None]:
        dies = self.step(operation, path, torn)
        yield
        if dies:
            self.die()
        # A reader is another process: what he does neither counts nor fails.
        self._looking = True
        try:
            self.look(Path(path))
        finally:
            self._looking = False

    # The disk's own memory --------------------------------------------------------------------------------------------

    def _here(self, path: Any) -> Path | None:
        if isinstance(path, int) or self._looking:
            return None
        given = os.fspath(path)
        return Path(given) if isinstance(given, str) and given.startswith(self._below) else None

    def _folder(self, path: Path) -> FolderNode:
        node: Node = self.tree
        for name in path.relative_to(self.root).parts:
            assert isinstance(node, FolderNode)
            node = node.names[name]
        assert isinstance(node, FolderNode)
        return node

    def _node(self, path: Path) -> Node:
        return self.tree if path == self.root else self._folder(path.parent).names[path.name]

    def _change(self, *names: tuple[FolderNode, str, Node | None]) -> None:
        for folder, name, node in names:
            if node is None:
                folder.names.pop(name, None)
            else:
                folder.names[name] = node
        self._pending.append(Change(names=names))

    def _set(self, file: FileNode, data: bytes) -> None:
        file.data = data
        self._pending.append(Change(file=file, data=data))

    def _sync(self, node: Node) -> None:
        now: list[Change] = []
        later: list[Change] = []
        for change in self._pending:
            concerned = change.file is node or any(folder is node for folder, _, _ in change.names)
            (now if self.losing == "in order" or concerned else later).append(change)
        for change in now:
            change.apply()
        self._pending = later

    def _lose(self) -> None:
        """The folder as it is found when power is back."""
        kept_data: list[Change] = []
        if self.losing == "in order":
            kept = self._pending[: self.draw.randint(0, len(self._pending))]
        elif self.losing == "by folder":
            kept = [change for change in self._pending if change.file is not None]
            folders = {id(change.names[-1][0]): change.names[-1][0] for change in self._pending if change.names}
            for folder in folders.values():
                own = [change for change in self._pending if change.names and change.names[-1][0] is folder]
                kept += own[: self.draw.randint(0, len(own))]
        else:
            kept = [change for change in self._pending if change.names and self.draw.random() < 0.5]
            for file in {id(change.file): change.file for change in self._pending if change.file is not None}.values():
                data = self.draw.choice(
                    [file.synced, b"", file.data, _cut(self.draw, file.data), bytes(len(file.data))]
                )
                kept_data.append(Change(file=file, data=data))
        for change in (*kept, *kept_data):
            change.apply()
        self._pending = []
        for path in list(self.root.iterdir()):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        self.tree = self._found(self.tree, self.root)

    def _found(self, folder: FolderNode, path: Path) -> FolderNode:
        fresh = FolderNode()
        for name, node in folder.synced.items():
            if isinstance(node, FileNode):
                (path / name).write_bytes(node.synced)
                fresh.names[name] = FileNode(node.synced, node.synced)
            else:
                (path / name).mkdir()
                fresh.names[name] = self._found(node, path / name)
        fresh.synced = dict(fresh.names)
        return fresh

    def check(self) -> None:
        """What is remembered is what is there: nothing has gone past this module."""
        assert _shape(self.tree) == _real_shape(self.root)

    # As a process sees it ---------------------------------------------------------------------------------------------

    @contextmanager
    def mounted(self) -> Iterator[None]:
        """Operations below the root go through this disk."""
        with (
            mock.patch.multiple(
                os,
                open=self._os_open,
                close=self._close,
                write=self._write,
                ftruncate=self._truncate,
                fsync=self._fsync,
                fdopen=self._fdopen,
                rename=self._rename,
                replace=self._rename,
                mkdir=self._mkdir,
                unlink=self._unlink,
                rmdir=self._rmdir,
            ),
            mock.patch.object(io, "open", self._io_open),
            mock.patch.object(builtins, "open", self._io_open),
            mock.patch.object(fcntl, "flock", self._flock),
            # So that it removes by paths.
            mock.patch.object(shutil, "_use_fd_functions", False),
        ):
            yield

    def _os_open(self, path: Any, flags: int, mode: int = 0o777, **options: Any) -> int:
        here = self._here(path)
        if here is None:
            return _OPEN(path, flags, mode, **options)
        if self.dead:
            raise Killed
        if not flags & os.O_CREAT or here.exists():
            handle = _OPEN(path, flags, mode)
            node = self._node(here)
            if flags & os.O_TRUNC and isinstance(node, FileNode):
                self._set(node, b"")
        else:
            folder = self._folder(here.parent)
            with self.operation("create", here):
                handle = _OPEN(path, flags, mode)
                node = FileNode()
                self._change((folder, here.name, node))
        self._open[handle] = here, node
        return handle

    def _close(self, handle: int) -> None:
        self._open.pop(handle, None)
        _CLOSE(handle)

    def _write(self, handle: int, data: Any) -> int:
        if handle not in self._open:
            return _WRITE(handle, data)
        path, node = self._open[handle]
        assert isinstance(node, FileNode)
        given = bytes(data)

        def put(some: bytes) -> None:
            _WRITE(handle, some)
            self._set(node, node.data + some)

        with self.operation("write", path, torn=lambda: put(_cut(self.draw, given))):
            put(given)
        return len(given)

    def _truncate(self, handle: int, length: int) -> None:
        if handle not in self._open:
            _TRUNCATE(handle, length)
            return
        path, node = self._open[handle]
        assert isinstance(node, FileNode)
        with self.operation("truncate", path):
            _TRUNCATE(handle, length)
            self._set(node, node.data[:length])

    def _fsync(self, handle: int) -> None:
        if handle not in self._open:
            _FSYNC(handle)
            return
        path, node = self._open[handle]
        with self.operation("sync file" if isinstance(node, FileNode) else "sync folder", path):
            self._sync(node)

    def _flock(self, handle: int, how: int) -> None:
        path = self._open[handle][0] if handle in self._open else None
        if path is None:
            _FLOCK(handle, how)
            return
        with self.operation("lock", path):
            _FLOCK(handle, how)

    def _rename(self, old: Any, new: Any) -> None:
        source, target = self._here(old), self._here(new)
        if source is None or target is None:
            _REPLACE(old, new)
            return
        with self.operation("rename", target):
            _REPLACE(old, new)
            node = self._node(source)
            self._change(
                (self._folder(source.parent), source.name, None), (self._folder(target.parent), target.name, node)
            )

    def _mkdir(self, path: Any, mode: int = 0o777, **options: Any) -> None:
        here = self._here(path)
        if here is None:
            _MKDIR(path, mode, **options)
            return
        if here.exists() or not here.parent.exists():
            _MKDIR(path, mode)  # which says so
        with self.operation("make folder", here):
            _MKDIR(path, mode)
            self._change((self._folder(here.parent), here.name, FolderNode()))

    def _unlink(self, path: Any, **options: Any) -> None:
        self._removed("remove file", _UNLINK, path, options)

    def _rmdir(self, path: Any, **options: Any) -> None:
        self._removed("remove folder", _RMDIR, path, options)

    def _removed(self, operation: str, real: Callable[..., None], path: Any, options: dict[str, Any]) -> None:
        here = self._here(path)
        if here is None or not (here.exists() or here.is_symlink()):
            if here is not None and self.dead:
                raise Killed
            real(path, **options)
            return
        with self.operation(operation, here):
            real(path)
            self._change((self._folder(here.parent), here.name, None))

    def _fdopen(self, handle: int, mode: str = "r", *given: Any, **options: Any) -> Any:
        if handle not in self._open:
            return _IO_OPEN(handle, mode, *given, **options)
        assert mode == "wb"
        return io.BufferedWriter(_Raw(self, handle))

    def _io_open(self, file: Any, mode: str = "r", *given: Any, **options: Any) -> Any:
        here = self._here(file)
        if here is None:
            return _IO_OPEN(file, mode, *given, **options)
        if mode in ("r", "rb", "rt"):
            with self.operation("read", here):
                return _IO_OPEN(file, mode, *given, **options)
        assert mode.strip("bt") in ("w", "a", "x"), mode
        flags = {"w": os.O_TRUNC, "a": os.O_APPEND, "x": os.O_EXCL}[mode.strip("bt")]
        handle = self._os_open(file, os.O_WRONLY | os.O_CREAT | flags, 0o666)
        raw = io.BufferedWriter(_Raw(self, handle))
        return raw if "b" in mode else io.TextIOWrapper(raw, encoding=options.get("encoding") or "utf-8")


class _Raw(io.RawIOBase):
    """A file that is open for writing; of a killed process nothing more is written."""

    def __init__(self, disk: Disk, handle: int) -> None:
        self._disk, self._handle = disk, handle
        # Numbers of files are given again: those of another process are not this one.
        self._opened = disk._open[handle]

    @property
    def _alive(self) -> bool:
        return not self._disk.dead and self._disk._open.get(self._handle) is self._opened

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._handle

    def write(self, data: Any) -> int:
        if not self._alive:
            return len(bytes(data))
        return self._disk._write(self._handle, data)

    def close(self) -> None:
        if not self.closed:
            super().close()
            if self._alive:
                self._disk._close(self._handle)


def _cut(draw: random.Random, data: bytes) -> bytes:
    return data[: draw.randint(0, len(data))]


def _shape(folder: FolderNode) -> dict[str, Any]:
    return {
        name: node.data if isinstance(node, FileNode) else _shape(node) for name, node in sorted(folder.names.items())
    }


def _real_shape(folder: Path) -> dict[str, Any]:
    return {path.name: _real_shape(path) if path.is_dir() else path.read_bytes() for path in sorted(folder.iterdir())}


_OPEN, _CLOSE, _WRITE, _TRUNCATE, _FSYNC = os.open, os.close, os.write, os.ftruncate, os.fsync
_REPLACE, _MKDIR, _UNLINK, _RMDIR = os.replace, os.mkdir, os.unlink, os.rmdir
_IO_OPEN, _FLOCK = io.open, fcntl.flock
