"""`kleene format`: queries in one canonical layout.

The layout comes from the syntax tree, which holds no comments: those above the query are kept, and a file with others
is not overwritten.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

from kleene.cli.inputs import read_text
from kleene.cli.running import DATA, USAGE
from kleene.errors import KleeneError, QueryError, UnreadableFile
from kleene.frames.atomic import replacing
from kleene.lang import format_query, parse, parse_declarations
from kleene.lang.format import format_declaration

_COMMENT = r"/\*[^*]*(?:\*(?!/)[^*]*)*\*/|--[^\n]*"
_QUOTED = r"'[^']*(?:''[^']*)*'|\"[^\"]*(?:\"\"[^\"]*)*\"|‘[^’]*’|“[^”]*”|`[^`\n]+`"
_HEAD = re.compile(rf"(?:\s|{_COMMENT})*")
_COMMENTS = re.compile(rf"{_QUOTED}|(?P<comment>{_COMMENT})")


def format_files(files: Sequence[str], *, write: bool) -> int:
    """Format each file; returns the exit code."""
    code = 0
    for path in files:
        try:
            code = max(code, _format_file(path, write=write))
        except UnreadableFile as error:
            print(error.render(), file=sys.stderr)
            code = USAGE
        except KleeneError as error:
            error.origin = "stdin" if path == "-" else path
            print(error.render(), file=sys.stderr)
            code = max(code, DATA)
    return code


def _format_file(path: str, *, write: bool) -> int:
    text, origin = read_text(path)
    laid_out = formatted(text)
    lost = _inner_comment(text)
    if not write or path == "-":
        sys.stdout.write(laid_out)
        if lost is not None:
            print(f"warning: {origin}:{lost}: comments inside the query are left out", file=sys.stderr)
        return 0
    if lost is not None:
        print(f"error: {origin}:{lost}: this comment would be lost", file=sys.stderr)
        print("  = hint: move it above the query", file=sys.stderr)
        return DATA
    if laid_out != text:
        with replacing(path) as stream:
            stream.write(laid_out.encode())
        print(f"formatted: {origin}")
    return 0


def formatted(text: str) -> str:
    """The text in canonical layout, below the comments that stand above it.

    >>> print(formatted("-- pairs\\nevent a x;b y"), end="")
    -- pairs
    PATTERN SEQ(a x, b y)
    """
    try:
        body = format_query(parse(text))
    except QueryError as error:
        try:
            body = "\n".join(format_declaration(declaration) for declaration in parse_declarations(text))
        except QueryError:
            raise error from None
    head = _head(text).strip()
    blank = "\n" if _head(text).rstrip(" \t").endswith("\n\n") else ""
    return (f"{head}\n{blank}" if head else "") + body + "\n"


def _head(text: str) -> str:
    match = _HEAD.match(text)
    return "" if match is None else match[0]


def _inner_comment(text: str) -> int | None:
    """The line of the first comment that is not above the query."""
    for match in _COMMENTS.finditer(text, len(_head(text))):
        if match["comment"] is not None:
            return text.count("\n", 0, match.start()) + 1
    return None
