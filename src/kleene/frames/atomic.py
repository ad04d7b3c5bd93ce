"""Write a file so that a reader sees the old one or the whole new one, nothing between, also after a power cut."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from kleene.durable import commit, make_folder
from kleene.errors import UnreadableFile


@contextmanager
def replacing(path: str | Path) -> Iterator[IO[bytes]]:
    """A stream whose content becomes the file at `path` when the block ends well, and nothing otherwise."""
    target = Path(path)
    temporary = None
    try:
        make_folder(target.parent)
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
        with os.fdopen(handle, "wb") as stream:
            yield stream
        os.chmod(temporary, 0o666 & ~_umask())
        commit(Path(temporary), target)
    except OSError as problem:
        raise UnreadableFile(f"`{path}` cannot be written: {problem.strerror or problem}") from None
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def _umask() -> int:
    """The process's mask for new files; there is no other way to ask."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
