"""A query of one megabyte: an answer or a clear error in less than a minute of work, and never a traceback.

In `make soak`; otherwise some of them, of an eighth of a megabyte, in an eighth of the time.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.cli.conftest import Kleene
from tests.soaking import SOAKING, some_of

pytestmark = pytest.mark.slow

SIZE = 1 << 20 if SOAKING else 1 << 17
SECONDS = 60 * SIZE / (1 << 20)


def many(template: str, separator: str) -> str:
    """So long a text of something, `{}` standing for its number."""
    number = SIZE // len(template.format(99_999) + separator)
    return separator.join(template.format(place) for place in range(number))


def where(condition: str) -> str:
    return f"PATTERN SEQ(A a, B b) WHERE {condition} WITHIN 10"


QUERIES = {
    "AND": where(many("a.x != {}", " AND ")),
    "OR of AND": where(many("(a.x = {0} AND b.y = {0})", " OR ")),
    "IN": where(f"a.x IN ({many('{}', ', ')})"),
    "chain": where(many("a.x", " = ")),
    "sum": where(f"a.x = {many('{}', ' + ')}"),
    "open parentheses": where("(" * SIZE),
    "parentheses": where("(" * (SIZE // 2) + "a.x = 1" + ")" * (SIZE // 2)),
    "equivalences": where(f"[{many('x{}', ', ')}]"),
    "components": f"PATTERN SEQ({many('A a{}', ', ')}) WHERE [id] WITHIN 10",
    "optional components": f"PATTERN SEQ(A a, {many('B? b{}', ', ')}) WITHIN 10",
    "negations": f"PATTERN SEQ(A a, {many('!(B b{})', ', ')}, C c) WHERE [id] WITHIN 10",
    "power": "PATTERN SEQ(A a, B^" + "9" * SIZE + ", C c)",
    "number": where("a.x = " + "9" * SIZE),
    "open string": where("a.x = '" + "y" * SIZE),
    "open comment": where("a.x = 1 /* " + "y" * SIZE),
    "zeros": "\0" * SIZE,
}


@pytest.mark.parametrize("name", some_of(QUERIES, 4))
def test_check_of_a_long_query(kleene: Kleene, tmp_path: Path, name: str) -> None:
    (tmp_path / "q.kleene").write_text(QUERIES[name])
    began = time.process_time()
    ended = kleene("check", "q.kleene")
    assert time.process_time() - began < SECONDS
    assert ended.code in (0, 1)
    if ended.code:
        assert ended.err.startswith("error[KL")
        assert len(ended.err) < 2_000
    else:
        assert ended.out == "ok: q.kleene\n"


def test_match_of_a_long_query_in_a_process(tmp_path: Path) -> None:
    (tmp_path / "q.kleene").write_text(QUERIES["AND"])
    (tmp_path / "e.csv").write_text("type,ts,x,y\nA,1,-5,1\nB,2,5,1\n")
    code = "from kleene.cli import main; main()"
    arguments = [sys.executable, "-c", code, "match", "-q", "q.kleene", "-i", "e.csv", "-f", "csv"]
    done = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:2_000]
    assert len(done.stdout.splitlines()) == 2
