"""The command, run in this process: exit code, stdout, stderr."""

from __future__ import annotations

import io
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest

from kleene.cli.running import run


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


class Kleene(Protocol):
    def __call__(self, *arguments: str | Path, stdin: bytes = b"") -> Ended: ...


@pytest.fixture
def kleene(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Kleene:
    """Runs the command in an empty folder; nothing may end in a traceback."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KLEENE_DEBUG", raising=False)

    def command(*arguments: str | Path, stdin: bytes = b"") -> Ended:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        shown = capsys.readouterr()
        assert "Traceback" not in shown.err
        assert "internal error" not in shown.err, shown.err
        return Ended(code, shown.out, shown.err)

    return command
