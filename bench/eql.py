"""EQL on W8 and on runs without a key (`make bench-algebra`; NEXT §1.1).

An hour of card payments, 2,100 a second, one in ten out of order: two small payments with a card and then a large one,
in process, in a Spark batch and on a Spark stream, with the same matches, ids compared. On some cards the definitions
give them, too. Beside it on the same events: the main spelling's query of that shape, which has every combination and
not the first ones only, and the floor, which is reading every event for nothing.

Then `A ; B` without a key over a million events, with a B after every hundred, thousand and ten thousand A's: what
waits grows a hundredfold, and how often it is looked at for an event stays.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import kleene
from bench.measure import CountsDiffer, alternate, header, once, profile
from bench.workloads import LATE_SECONDS, PAYMENTS, fraud, fraud_in_eql, payments
from kleene.algebra.eql_query import EqlQuery
from kleene.engine.detections.engine import DetectionEngine
from kleene.frames.arrow import schema_on
from kleene.pattern.schema import Schema
from kleene.plan.settings import Budget, Settings, Stream
from kleene.testing import reference_match

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HOUR = 3_600 * PAYMENTS
WINDOW = "12 hours"
PARTS = ("engine", "batch", "stream", "next")
# Cards on which the definitions are evaluated: they look at all pairs of payments.
CARDS = 150
# Triggers of the stream: the first ones start workers.
FILES, WARM = 12, 2
# Without a key: events in all, those of a batch, and how many A's come before each B.
KEYLESS, KEYLESS_BATCH = 1_000_000, 10_000
BETWEEN = (100, 1_000, 10_000)
NOTHING = "SELECT * FROM t S1 WHERE S1.amount < 0"

Ids = set[str]


def ids_of(matches: pa.Table) -> Ids:
    return set(matches.column("match_id").to_pylist())


def check_same(name: str, found: Ids, wanted: Ids) -> None:
    if found != wanted:
        raise CountsDiffer(
            f"{name}: {len(found):,} matches, in process {len(wanted):,}; {len(found ^ wanted):,} are of one side only"
        )


# In process ----------------------------------------------------------------------------------------------------------


def in_process(table: pa.Table, repeats: int, *, profiled: bool) -> pa.Table:
    """The matches, after they were timed beside the main spelling's and beside reading."""
    texts = {"EQL": fraud_in_eql(WINDOW), "SEQ, every combination": fraud(WINDOW), "reading (floor)": NOTHING}
    works = {name: partial(_number, table, text) for name, text in texts.items()}
    timings = alternate(works, repeats, same=False)
    floor = timings["reading (floor)"].median
    for name, timing in timings.items():
        _say(name, timing.rate(table.num_rows), timing.median, timing.count, f"{timing.median / floor:.1f} × the floor")
    if profiled:
        print(profile(works["EQL"], top=25))
    return kleene.match(table, texts["EQL"])


def _number(table: pa.Table, text: str) -> int:
    return int(kleene.match(table, text).num_rows)


def on_some_cards(table: pa.Table, matches: pa.Table) -> None:
    """Cards with matches and cards without: the definitions give the same as the engine on all payments."""
    paid = matches.column("L").combine_chunks().field("acc")
    cards = pc.value_counts(table.column("acc"))
    often = cards.field("values").filter(pc.greater_equal(cards.field("counts"), 3))
    some = pa.concat_arrays([paid.unique()[:CARDS], often[:CARDS]])
    of_cards = table.filter(pc.is_in(table.column("acc"), value_set=some))
    wanted = ids_of(matches.filter(pc.is_in(paid, value_set=some)))
    found = set(reference_match(of_cards, fraud_in_eql(WINDOW)).ids)
    check_same("the definitions", found, wanted)
    sample = f"{len(some.unique())} cards, {of_cards.num_rows:,} payments"
    print(f"  {sample}: the definitions give the same {len(found):,} matches", flush=True)


# On Spark ------------------------------------------------------------------------------------------------------------


def in_a_batch(session: SparkSession, folder: Path, number: int, wanted: Ids) -> None:
    from bench.spark_batch import hand_over

    events = session.read.parquet(str(folder))
    floor = _second_time(lambda: hand_over(events))
    _say("Spark batch, reading (floor)", number / floor / 1e6, floor)
    found: list[Ids] = []
    for name, text in (("EQL", fraud_in_eql(WINDOW)), ("SEQ, every combination", fraud(WINDOW))):
        seconds = _second_time(lambda text=text: found.append(_ids(kleene.match(events, text))))  # type: ignore[misc]
        _say(f"Spark batch, {name}", number / seconds / 1e6, seconds, len(found[-1]))
        if name == "EQL":
            check_same("a Spark batch", found[-1], wanted)


def _second_time(work: Callable[[], object]) -> float:
    """Seconds of the second run: the first one starts workers."""
    work()
    return once(work)


def _ids(found: DataFrame) -> Ids:
    return ids_of(found.select("match_id").toArrow())


def on_a_stream(session: SparkSession, folder: Path, table: pa.Table, matches: pa.Table) -> None:
    """Ids of each trigger are collected. The last events wait for later ones: their matches may be missing."""
    from bench.spark_stream import Bench, handed_over
    from kleene.spark.streaming.live import MicroBatch

    bench = Bench(session, folder.parent)
    events = bench.files(folder.name, table, FILES)
    floor = bench.dropped(handed_over(events)).triggers[WARM:]
    rows, seconds = sum(one.events for one in floor), sum(one.seconds for one in floor)
    _say("Spark stream, reading (floor)", rows / seconds / 1e6, seconds)
    found: Ids = set()
    spent: list[float] = []
    began = [time.perf_counter()]

    def take(batch: MicroBatch, _: int) -> None:
        if batch.number("matches"):
            found.update(_ids(batch.matches("q")))
        now = time.perf_counter()
        spent.append(now - began[0])
        began[0] = now

    settings = Settings(stream=Stream(delay=f"{LATE_SECONDS:.0f} seconds"))
    live = kleene.live(events, kleene.query(fraud_in_eql(WINDOW), name="q"), settings=settings)
    with tempfile.TemporaryDirectory() as checkpoint:
        live.start(take, checkpoint=checkpoint, available_now=True).awaitTermination()
    size = -(-table.num_rows // FILES)
    warm = sum(spent[WARM:FILES])
    _say("Spark stream, EQL", (FILES - WARM) * size / warm / 1e6, warm, len(found))
    # Time has passed what every file but the last one brought, less the delay.
    before = pc.max(table.slice(0, table.num_rows - size).column("ts").cast(pa.int64())).as_py() - int(
        2e6 * LATE_SECONDS
    )
    certain = ids_of(matches.filter(pc.less(matches.column("end").cast(pa.int64()), before)))
    check_same("a Spark stream, of what is certain", found & certain, certain)
    check_same("a Spark stream, beside a table", found | ids_of(matches), ids_of(matches))


# Without a key -------------------------------------------------------------------------------------------------------


def without_a_key(number: int) -> None:
    print(f"\n`A ; B` without a key, {number:,} events, {KEYLESS_BATCH:,} a batch")
    print(f"{'A’s for a B':>12} {'waiting at most':>16} {'matches':>10} {'looks an event':>15} {'µs an event':>12}")
    for between in BETWEEN:
        _keyless(between, min(number, 2 * KEYLESS_BATCH))
        began = time.perf_counter()
        looks, waiting, matches = _keyless(between, number)
        microseconds = 1e6 * (time.perf_counter() - began) / number
        print(f"{between:>12,} {waiting:>16,} {matches:>10,} {looks / number:>15.2f} {microseconds:>12.2f}", flush=True)


def _keyless(between: int, number: int) -> tuple[int, int, int]:
    """How often something that waits was looked at, how much waited at most, and the matches."""
    kinds = np.arange(number) % (between + 1) == between
    codes = pa.array(kinds.astype(np.int32))
    table = pa.table(
        {
            "type": pa.DictionaryArray.from_arrays(codes, pa.array(["A", "B"])),
            "ts": np.arange(number),
            "x": np.arange(number),
        }
    )
    query = EqlQuery("SELECT * FROM A a ; B b").bind(schema_on(table.schema, Schema()))
    engine = DetectionEngine(query, Settings(budget=Budget(state_bytes=1 << 40)))
    looks = waiting = matches = 0
    for begin in range(0, number, KEYLESS_BATCH):
        part, network = table.slice(begin, KEYLESS_BATCH), engine.network
        before = 0 if network is None else network.looks
        found = engine.process(part, begin + part.num_rows).matches
        # A network that drops events begins to count anew.
        network = network or engine.network
        looks += 0 if network is None else network.looks - before
        matches += 0 if found is None else found.num_rows
        waiting = max(waiting, engine.alive.runs)
    return looks, waiting, matches


# -------------------------------------------------------------------------------------------------------------------


def _say(name: str, rate: float, seconds: float, matches: int | None = None, beside: str = "") -> None:
    found = "" if matches is None else f"   {matches:,} matches"
    print(f"  {name:<38}{rate:6.2f} M events/s ({seconds:.1f} s){found}   {beside}".rstrip(), flush=True)


def main(given: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.eql", description=__doc__)
    parser.add_argument("--events", type=int, default=HOUR, help="payments; by default those of an hour")
    parser.add_argument("--keyless", type=int, default=KEYLESS, help="events of the query without a key")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default=",".join(PARTS), help=f"some of {','.join(PARTS)}")
    parser.add_argument("--profile", action="store_true", help="where the time of EQL in process goes")
    arguments = parser.parse_args(given)
    parts = arguments.only.split(",")
    logging.getLogger("kleene").setLevel(logging.ERROR)
    began = time.perf_counter()
    print(header("numba", "numpy", "pyarrow") + "; one thread in process, local[2] on Spark")
    if set(parts) & {"engine", "batch", "stream"}:
        _payments(arguments.events, arguments.repeats, parts, profiled=arguments.profile)
    if "next" in parts:
        without_a_key(arguments.keyless)
    print(f"\n{time.perf_counter() - began:.0f} s in all")
    return 0


def _payments(number: int, repeats: int, parts: Sequence[str], *, profiled: bool) -> None:
    table = payments(number)
    print(f"\nW8: {number:,} payments, {fraud_in_eql(WINDOW)}")
    if "engine" in parts:
        matches = in_process(table, repeats, profiled=profiled)
        on_some_cards(table, matches)
    else:
        matches = kleene.match(table, fraud_in_eql(WINDOW))
    if not set(parts) & {"batch", "stream"}:
        return
    from bench.spark_batch import write_events
    from bench.spark_stream import STREAMING
    from kleene.spark.session import local_session

    session = local_session("local[2]", **STREAMING)
    logging.getLogger("kleene").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory(prefix="kleene-bench-") as scratch:
        if "batch" in parts:
            in_a_batch(session, write_events(table, Path(scratch) / "batch"), number, ids_of(matches))
        if "stream" in parts:
            on_a_stream(session, Path(scratch) / "stream", table, matches)
        session.stop()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
