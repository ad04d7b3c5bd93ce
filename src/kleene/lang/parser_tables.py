"""A parser's tables, kept on disk: building them in each process takes longer than parsing a hundred queries.

They are kept as JSON, beside the package where its folder can be written, else in the user's cache. A file is named
after the grammar that it was made of; one that is damaged is made again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any

import lark
from lark.grammar import Rule
from lark.lexer import TerminalDef

# The rules and terminals that all spellings have.
_SHARED = Path(__file__).with_name("shared.lark")


def parser(grammar: Path, *, start: Sequence[str], builder: lark.Transformer[lark.Token, Any]) -> lark.Lark:
    """An LALR parser that builds while it reads, from the tables of an earlier process if there are any."""
    text = _SHARED.read_text(encoding="utf-8") + grammar.read_text(encoding="utf-8")
    name = f"{grammar.name}-{_digest(repr((text, tuple(start), lark.__version__)).encode())}.json"
    for folder in _folders():
        saved = _read(folder / name)
        if saved is not None:
            return _loaded(saved, builder)
    lalr = lark.Lark(text, parser="lalr", start=list(start), transformer=builder, maybe_placeholders=True)
    content = _content(lalr)
    for folder in _folders():
        with suppress(OSError):
            _write(folder / name, content)
            break
    return lalr


def _folders() -> Iterator[Path]:
    """The folders that may hold tables; new ones are written to the first that can be written."""
    yield Path(__file__).with_name("__pycache__")
    # Path.home() fails for a user without a home folder.
    with suppress(RuntimeError):
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kleene"


def _content(lalr: lark.Lark) -> bytes:
    data, memo = lalr.memo_serialize([TerminalDef, Rule])
    data["options"] = {name: value for name, value in data["options"].items() if name != "transformer"}
    return json.dumps({"data": data, "memo": memo}, separators=(",", ":")).encode()


def _loaded(content: bytes, builder: lark.Transformer[lark.Token, Any]) -> lark.Lark:
    saved = json.loads(content)
    tables = saved["data"]["parser"]["parser"]
    tables["tokens"] = _numbered(tables["tokens"])
    tables["states"] = {state: _numbered(actions) for state, actions in _numbered(tables["states"]).items()}
    load: Callable[..., lark.Lark] = lark.Lark._load_from_dict  # as Lark's own stand-alone parsers do
    return load(saved["data"], _numbered(saved["memo"]), transformer=builder)


def _numbered(memo: Mapping[str, Any]) -> dict[int, Any]:
    """The memo with integer keys, which JSON turned into strings."""
    return {int(number): value for number, value in memo.items()}


# A file holds the digest of its content on the first line, then the content.


def _read(path: Path) -> bytes | None:
    with suppress(OSError):
        digest, _, content = path.read_bytes().partition(b"\n")
        if digest == _digest(content).encode():
            return content
    return None


def _write(path: Path, content: bytes) -> None:
    """Write a file atomically: other processes may write the same one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        unfinished.write_bytes(_digest(content).encode() + b"\n" + content)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=16).hexdigest()
