"""How fast queries are read: parse, print, bind, and check on cached trees, beside two other ways to do it.

Hundreds of thousands of queries will be bound at once (Cayuga §5), so what a query costs before its first event
matters. All figures come from one run: our LALR parser against the same grammar with Earley (the design not taken),
and against lexing alone (a floor for any parser built on this lexer).
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from lark import Lark

import kleene.lang.main_spelling as spelling
from kleene.lang import format_query, parse
from kleene.pattern import Query

ROOT = Path(__file__).parents[1]
REPEATS = 3


def rate(work: Callable[[str], object], texts: list[str]) -> float:
    """Texts a second: the median of three passes after one to warm up."""
    times = []
    for repeat in range(REPEATS + 1):
        began = time.perf_counter()
        for text in texts:
            work(text)
        if repeat:
            times.append(time.perf_counter() - began)
    return len(texts) / statistics.median(times)


def fresh(texts: list[str], copies: int) -> list[str]:
    """The same queries made different, so that no cache helps."""
    return [f"{text}\n-- {copy}" for copy in range(copies) for text in texts]


def main() -> int:
    files = sorted((ROOT / "examples" / "papers").glob("*.kleene"))
    texts = [path.read_text(encoding="utf-8") for path in files]
    grammar = (ROOT / "src" / "kleene" / "lang" / "kleene.lark").read_text(encoding="utf-8")
    earley = Lark(grammar, parser="earley", lexer="dynamic", start="start")
    lexer = Lark(grammar, parser="lalr", lexer="basic", start="start")
    many = fresh(texts, 4)
    trees = {text: parse(text) for text in texts}
    queries = {text: Query(text) for text in texts}
    lalr = rate(spelling.parse, many)
    rows = [
        ("lex only (floor)", rate(lambda text: list(lexer.lex(text, dont_ignore=False)), many)),
        ("parse, LALR (ours)", lalr),
        ("parse, Earley", rate(earley.parse, texts[:20])),
        ("parse, seen before", rate(parse, texts * 50)),
        ("print", rate(lambda text: format_query(trees[text]), texts * 4)),
        ("bind, parsed once", rate(lambda text: queries[text].bind(checking=True), texts * 4)),
    ]
    size = sum(map(len, texts)) / len(texts)
    print(f"{len(texts)} queries of the papers, {size:.0f} characters each on average, one core")
    for name, value in rows:
        print(f"  {name:20} {value:12,.0f} queries/s   {value / lalr:8.2f} x our parser")
    return 0


if __name__ == "__main__":
    sys.exit(main())
