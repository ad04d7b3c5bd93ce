"""Runs what README and the documentation show, with the Kleene that is installed; prints what differs as JSON.

python pages.py [PAGE ...]      in an empty folder; each page has one of its own in it; without a name, all pages
"""

from __future__ import annotations

import doctest
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))

from tests.docs.blocks import commands_of, comparable, printed_by, sections_of, session_of

import kleene

ROOT = Path(__file__).parents[2]


def sessions(page: Path) -> Iterator[str]:
    text = session_of(page.read_text(encoding="utf-8"))
    examples = doctest.DocTestParser().get_doctest(text, {"__name__": "example"}, page.name, str(page), 0)
    report: list[str] = []
    doctest.DocTestRunner(verbose=False).run(examples, out=report.append)
    yield from report


def commands(page: Path) -> Iterator[str]:
    for command, expected in commands_of(page.read_text(encoding="utf-8")):
        program, *arguments = shlex.split(command)
        done = subprocess.run(
            [Path(sys.executable).with_name(program), *arguments], capture_output=True, text=True, check=False
        )
        found = comparable(done.stdout + done.stderr)
        if found != comparable(expected):
            yield f"$ {command}\n{found}"


def errors(page: Path) -> Iterator[str]:
    for section in sections_of(page.read_text(encoding="utf-8")):
        found = printed_by(section)
        if found != section.blocks[1][1]:
            yield f"{section.code}: {found}"


RUNS: dict[str, Callable[[Path], Iterator[str]]] = {"sessions": sessions, "commands": commands, "errors": errors}


def main() -> None:
    found: dict[str, object] = {"kleene": kleene.__file__}
    above = Path.cwd()
    named = [ROOT / name for name in sys.argv[1:]]
    for number, page in enumerate(named or [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]):
        own = above / f"page-{number}"
        own.mkdir()
        os.chdir(own)
        for kind, run in RUNS.items():
            if kind != "errors" or page.name == "errors.md":
                found[f"{page.relative_to(ROOT)} {kind}"] = list(run(page))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
