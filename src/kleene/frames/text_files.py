"""Text files: their bytes, their lines, and the rows of them that cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from kleene.errors import UnreadableFile, did_you_mean

# Checking a query reads its text, and must not wait for Arrow.
if TYPE_CHECKING:
    import pyarrow as pa

    from kleene.frames.rows import BadRow

_CLIP = 200
_SAMPLE = 8_192


@dataclass(frozen=True)
class TextTable:
    """What was read from a text file: the table, the rows left out, and how to find the line of a row."""

    table: pa.Table
    bad_rows: list[BadRow]
    find_lines: Callable[[], Sequence[int] | None]
    source: bytes = b""

    @cached_property
    def lines(self) -> Sequence[int] | None:
        """The line of each row of the table; None where rows and lines do not correspond."""
        numbers = self.find_lines()
        return numbers if numbers is not None and len(numbers) == self.table.num_rows else None

    def line(self, row: int) -> int | None:
        return None if self.lines is None else self.lines[row]

    def text(self, row: int) -> str:
        """The line of the file where a row begins, or the row's values where the line is not known."""
        line = self.line(row)
        if line is not None:
            return clipped(self._physical[line - 1].decode(errors="replace"))
        values = self.table.slice(row, 1).to_pylist()[0]
        return clipped(", ".join(f"{name}={value}" for name, value in values.items() if value is not None))

    @cached_property
    def _physical(self) -> list[bytes]:
        return self.source.split(b"\n")


def read_text(path: Path) -> str:
    """The text of a file, its lines ended in one way."""
    try:
        return path.read_bytes().decode().replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise UnreadableFile(f"`{path}` is no UTF-8 text") from None
    except FileNotFoundError:
        raise UnreadableFile(f"there is no file `{path}`", hint=neighbour(path)) from None
    except OSError as problem:
        raise UnreadableFile(f"`{path}` cannot be read: {problem.strerror or problem}") from None


def neighbour(path: Path) -> str | None:
    """A hint that offers the nearest name in the same folder."""
    try:
        hint = did_you_mean(path.name, (entry.name for entry in path.parent.iterdir()))
    except OSError:
        return f"there is no folder `{path.parent}` either"
    return hint if hint and hint.startswith("did") else None


def require_text(data: bytes, name: str) -> None:
    """Refuse what is no UTF-8 text at all; single lines that are not are bad rows."""
    sample = data[:_SAMPLE]
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise UnreadableFile(f"`{name}` is UTF-16 text", hint="save it as UTF-8")
    if b"\0" in sample:
        raise UnreadableFile(
            f"`{name}` holds binary data, not text", hint="name its format if its ending misleads, for example parquet"
        )


def without_mark(data: bytes) -> bytes:
    """The bytes without a UTF-8 byte order mark."""
    return data.removeprefix(b"\xef\xbb\xbf")


def clipped(text: str) -> str:
    one_line = printable(text[: 4 * _CLIP].strip("\r\n").replace("\r", "").replace("\n", "⏎"))
    return one_line if len(one_line) <= _CLIP else one_line[: _CLIP - 1] + "…"


def printable(text: str) -> str:
    """The text without what could steer a terminal."""
    return text if text.isprintable() else "".join(sign if sign.isprintable() else "�" for sign in text)
