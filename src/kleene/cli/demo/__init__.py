"""`kleene demo`: three queries of SASE §2 over a made-up supermarket, on Spark, with the truth known beforehand."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa

from kleene.api import match
from kleene.cli.showing import print_matches
from kleene.cli.warming import working
from kleene.frames.files import write_table
from kleene.frames.supermarket import MISPLACED, OVERDOSE, SHOPLIFTING, supermarket
from kleene.pattern import Query

QUERIES = (SHOPLIFTING, MISPLACED, OVERDOSE)
_SHOWN = 12


def query_text(name: str) -> str:
    return resources.files(__package__).joinpath(f"{name}.kleene").read_text(encoding="utf-8")


@dataclass(frozen=True)
class DemoResult:
    """The matches of one query of the demo, and the seconds it took."""

    matches: pa.Table
    seconds: float


def run_demo(events: int, seed: int, output: Path, *, on_spark: bool | None) -> None:
    """Make the supermarket, ask the three questions, show and keep the answers.

    on_spark   None: where PySpark is installed
    """
    if on_spark is None:
        on_spark = find_spec("pyspark") is not None
        if not on_spark:
            print("PySpark is not installed, so this runs in this process; on Spark after pip install 'kleene[spark]'.")
    began = time.perf_counter()
    market = supermarket(events, seed)
    path = output / "supermarket.parquet"
    write_table(market.events, path)
    print(f"{market.events.num_rows:,} readings of a supermarket, written to {path}")
    source: Any = market.events
    if on_spark:
        with working("starting Spark"):
            source = _frame(path)
    truth = market.planted.column("case").to_pylist()
    for name in QUERIES:
        query = Query(query_text(name), name, origin=f"{name}.kleene")
        with working(f"looking for {name}"):
            answer = _find(source, query)
        target = output / f"{name}.parquet"
        write_table(answer.matches, target)
        _show(query, answer, truth.count(name), target)
    where = "on Spark" if on_spark else "in this process"
    print(f"\nAll of it took {time.perf_counter() - began:.1f} s {where}. The queries are in examples/retail/.")
    print("With your own events: kleene match --help, kleene run --help")


def _frame(path: Path) -> Any:
    from kleene.spark.session import brief_session

    return brief_session().read.parquet(str(path.resolve()))


def _find(source: Any, query: Query) -> DemoResult:
    began = time.perf_counter()
    matches = match(source, query)
    if not isinstance(matches, pa.Table):
        matches = matches.toArrow()
    matches = matches.sort_by([("start", "ascending"), ("end", "ascending")])
    return DemoResult(matches, time.perf_counter() - began)


def _show(query: Query, answer: DemoResult, planted: int, target: Path) -> None:
    print(f"\n{query.name}")
    for line in query.format().splitlines():
        if not line.startswith("DECLARE"):
            print(f"  {line}")
    print()
    sys.stdout.flush()
    print_matches(answer.matches, query.declared, limit=_SHOWN)
    count = answer.matches.num_rows
    print(f"{count} found, {planted} hidden, in {answer.seconds:.1f} s; written to {target}")
