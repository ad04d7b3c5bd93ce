"""Every `console` block of the documentation is run: the commands of a page, in order, in one empty folder.

A line `$ …` is a command, lines `> …` go on with it, and what follows is its stdout and then its stderr. Times differ.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kleene.cli.running import run

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```console\n(.*?)\n```$", re.MULTILINE | re.DOTALL)
_SECONDS = re.compile(r" in \d+\.\d s$", re.MULTILINE)


def commands_of(text: str) -> Iterator[tuple[str, str]]:
    """Each command and what it prints."""
    for block in _BLOCK.findall(text):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            first, *rest = part.splitlines()
            number = next((at for at, line in enumerate(rest) if not line.startswith("> ")), len(rest))
            command = "\n".join([first, *(line.removeprefix("> ") for line in rest[:number])])
            yield command, "\n".join(rest[number:]).strip("\n")


def _pages() -> Iterator[Any]:
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        if "```console" in path.read_text(encoding="utf-8"):
            yield pytest.param(path, id=str(path.relative_to(ROOT)))


@pytest.mark.parametrize("page", list(_pages()))
def test_commands_of_a_page(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    commands = list(commands_of(page.read_text(encoding="utf-8")))
    assert commands
    for command, expected in commands:
        program, *arguments = shlex.split(command)
        assert program == "kleene"
        capsys.readouterr()
        run(arguments)
        shown = capsys.readouterr()
        found = _SECONDS.sub(" in 0.0 s", f"{shown.out}{shown.err}".strip("\n"))
        found = "\n".join(line.rstrip() for line in found.splitlines())
        assert found == _SECONDS.sub(" in 0.0 s", expected), f"$ {command}\n{found}"
