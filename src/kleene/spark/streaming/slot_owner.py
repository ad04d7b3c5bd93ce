"""Where workers of one machine find each other's slots: sockets of files, in a folder that only their user may enter.

A worker that has slots listens at one socket. Each slot has a link to the socket of its worker, under the random name
of its life, so a worker asks for a slot without knowing whose it is. A link of a worker that is gone leads nowhere, and
counts as none; the next worker that has the slot replaces it.
"""

from __future__ import annotations

import os
import re
import secrets
import socket
import stat
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kleene.spark.streaming.slot_messages import receive, send

if TYPE_CHECKING:
    from kleene.spark.streaming.live_slots import LiveSlots

# The life of a slot, and its number.
SlotName = tuple[str, int]

_SOCKETS = "*.socket"
_LOOK_SECONDS = 30.0
_CONNECT_SECONDS = 5.0
# What is wrong with a connection, or with what is said on it: then it counts as none.
FAILURES = (OSError, EOFError, ValueError, KeyError, TypeError)


def slots_folder(named: str | None) -> Path | None:
    """The folder in which workers of this machine meet; None: they do not.

    named   made by the driver; on another machine it is not there, and the executor's own folder is taken
    """
    if not hasattr(socket, "AF_UNIX"):
        return None
    if named is not None and _is_own(Path(named)):
        return Path(named)
    local = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
    if not local:
        return None
    folder = Path(local, "kleene-slots")
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
    return folder if _is_own(folder) else None


def _is_own(folder: Path) -> bool:
    """Whether it is a folder of this user, which nobody else may enter."""
    try:
        about = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid() and not about.st_mode & 0o077


def _link(folder: Path, name: SlotName) -> Path | None:
    """Where a slot is found; None for a name that no slot gives itself."""
    life, slot = name
    return folder / f"{life}-{slot}" if re.fullmatch("[0-9a-f]{16}", life) else None


class SlotOwner:
    """Answers other workers about the slots of this one, in threads of its own."""

    def __init__(self, folder: Path, slots: LiveSlots) -> None:
        self.folder, self._slots = folder, slots
        self._address = folder / f"{os.getpid()}-{secrets.token_hex(4)}.socket"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(str(self._address))
        self._address.chmod(0o600)
        self._socket.listen(128)
        self._socket.settimeout(_LOOK_SECONDS)
        self._links: set[Path] = set()
        self._closed = False
        self._thread = Thread(target=self._listen, name="kleene-slots", daemon=True)
        self._thread.start()

    def offer(self, name: SlotName) -> None:
        link = _link(self.folder, name)
        if link is None or (link in self._links and os.readlink(link) == self._address.name):
            return
        draft = self.folder / f".{secrets.token_hex(8)}"
        draft.symlink_to(self._address.name)
        draft.replace(link)
        self._links.add(link)

    def withdraw(self, names: Iterable[SlotName]) -> None:
        for link in {_link(self.folder, name) for name in names} & self._links:
            assert link is not None
            self._links.discard(link)
            with suppress(OSError):
                # Another worker may have the slot by now.
                if os.readlink(link) == self._address.name:
                    link.unlink()

    def close(self) -> None:
        """Listen no more, and leave no file."""
        self._stop()
        self._address.unlink(missing_ok=True)

    def _stop(self) -> None:
        # The thread waits for a connection: it is given one.
        self._closed = True
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(_CONNECT_SECONDS)
            connection.connect(str(self._address))

    def _listen(self) -> None:
        looked = time.monotonic()
        with self._socket:
            while not self._closed:
                try:
                    connection, _ = self._socket.accept()
                    Thread(target=self._answer, args=(connection,), name="kleene-slot", daemon=True).start()
                except TimeoutError:
                    pass
                except OSError:
                    return
                if time.monotonic() - looked >= _LOOK_SECONDS:
                    looked = time.monotonic()
                    self._slots.forget_unused()

    def _answer(self, connection: socket.socket) -> None:
        with connection, suppress(*FAILURES):
            connection.settimeout(None)
            asked, blobs = receive(connection)
            if asked["asks"] == "forget":
                self._slots.forget_stream(asked["stream"])
                send(connection, {"answer": "forgotten"})
            else:
                send(connection, *self._slots.update_for_other(asked, blobs))


def hand_over(
    folder: Path, name: SlotName, asked: Mapping[str, Any], blobs: Sequence[Any]
) -> tuple[dict[str, Any], list[pa.Buffer]] | None:
    """What the worker that has a slot answers; None when there is none, or it is gone before it has said all."""
    link = _link(folder, name)
    with suppress(*FAILURES):
        if link is not None and link.is_symlink():
            return _asked(link, {"asks": "update", "life": name[0], "slot": name[1], **asked}, blobs)
    return None


def forget_stream(folder: Path, stream: str) -> None:
    """Tell all workers of this machine that a stream has ended; what workers left that are gone is removed."""
    for address in folder.glob(_SOCKETS):
        with suppress(*FAILURES):
            try:
                _asked(address, {"asks": "forget", "stream": stream}, seconds=_CONNECT_SECONDS)
            except ConnectionRefusedError:
                address.unlink()
    for link in folder.iterdir():
        if link.is_symlink() and not link.exists():
            link.unlink(missing_ok=True)


def _asked(
    address: Path, message: Mapping[str, Any], blobs: Sequence[Any] = (), *, seconds: float | None = None
) -> tuple[dict[str, Any], list[pa.Buffer]]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_CONNECT_SECONDS)
        connection.connect(str(address))
        # The other worker may be at work for long; when it dies, the connection ends.
        connection.settimeout(seconds)
        send(connection, message, blobs)
        return receive(connection)
