"""Every `console` block of the documentation is run: the commands of a page, in order, in one empty folder.

A line `$ …` is a command, lines `> …` go on with it, and what follows is its stdout and then its stderr. Times differ.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.docs.blocks import commands_of, comparable

from kleene.cli.running import run

ROOT = Path(__file__).parents[2]


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
        found = comparable(f"{shown.out}{shown.err}")
        assert found == comparable(expected), f"$ {command}\n{found}"
