"""Parquet files that tasks read themselves: what Spark would read gives the same matches, ids and counts."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.soaking import rounds
from tests.spark.comparing import KEYED, rows, run_together, setting

import kleene
from kleene.plan.settings import Exchange, Settings
from kleene.queries.any_query import AnyQuery

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kleene.spark.batch import Prepared

FIRST = datetime(2024, 3, 31, tzinfo=UTC)
QUERIES = [
    "PATTERN SEQ(A a, B b) WHERE [id] WITHIN {far}",
    "PATTERN SEQ(A a, B b) WHERE [id] AND a.v > 1 AND b.city != 'x' WITHIN {far}",
    "PATTERN SEQ(A a, !(C c), B b) WHERE [city] AND a.price < b.price WITHIN {near}",
    "PATTERN SEQ(A a, B b) WHERE a.id = b.other WITHIN {near}",
    "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match { [id] } WITHIN {near}",
    "PATTERN SEQ(A a, B b) WHERE strict_contiguity { a.id != b.id } WITHIN 3 EVENTS",
    "PATTERN SEQ(A a, B b) WHERE [day] AND b.kind = 'q:r' WITHIN {near}",
    "PATTERN SEQ(A a, B b) WHERE [amount] AND a.at < b.at AND a.real != b.real WITHIN {far} TIMEOUTS INTO Late",
    "PATTERN SEQ(A a, B b) WHERE a.id + b.id = 7 AND a.flag = true WITHIN {near}",
]


def some_events(chance: random.Random, count: int, timed: str) -> pa.Table:
    """Events of one file: NULLs, identical rows and rows that are no events; times of one kind."""

    def often(*values: Any) -> list[Any]:
        return [chance.choice([None, *values * 4]) for _ in range(count)]

    numbers = [chance.choice([None, *[chance.randrange(400)] * 30]) for _ in range(count)]
    if timed == "long":
        times = pa.array(numbers, pa.int64())
    else:
        moments = [None if number is None else FIRST + timedelta(seconds=number) for number in numbers]
        kind = {"int96": "us", "micros": "us", "millis": "ms"}[timed]
        times = pa.array(moments, pa.timestamp(kind, "Asia/Tokyo" if timed == "millis" else "UTC"))
    local = [chance.choice([None, datetime(2024, 1, 1, chance.randrange(24))]) for _ in range(count)]
    return pa.table(
        {
            "type": pa.array(often("A", "B", "C"), pa.string()),
            "ts": times,
            "id": pa.array(often(*range(9)), pa.int64()),
            "other": pa.array(often(*range(9)), pa.int64()),
            "v": pa.array(often(1, 2, 3), pa.int32()),
            "city": pa.array(often("x", "y", "a longer name than eight bytes", ""), pa.string()),
            "price": pa.array(often(1.5, 2.5, 0.0, -0.0, float("nan")), pa.float64()),
            "real": pa.array(often(1.5, 2.5), pa.float32()),
            "at": pa.array(local, pa.timestamp("us")),
            "amount": pa.array(often(Decimal("1.50"), Decimal("-0.01")), pa.decimal128(12, 2)),
            "on": pa.array(often(date(2024, 3, 31), date(1999, 1, 1)), pa.date32()),
            "flag": pa.array(often(True, False), pa.bool_()),
            "raw": pa.array(often(b"\xff", b""), pa.binary()),
            "unread": pa.array([{"deep": 1}] * count, pa.struct([("deep", pa.int64())])),
        }
    )


def written(folder: Path, seed: int) -> Path:
    """Files in folders, whose columns have come and gone, changed their order and their width."""
    chance = random.Random(seed)
    kinds = ["long"] if seed % 2 else ["int96", "micros", "millis"]
    days = ["1", "02", "__HIVE_DEFAULT_PARTITION__"] if seed % 3 else ["2024-03-31", "2024-02-29"]
    for number in range(6):
        place = folder / f"day={chance.choice(days)}" / f"kind={chance.choice(['q%3Ar', 'é s', 'A'])}"
        place.mkdir(parents=True, exist_ok=True)
        timed = kinds[-1 - number % min(len(kinds), 2)]
        table = some_events(chance, 0 if number == 4 else 40, timed)
        if number % 3 == 1:
            table = table.drop_columns(["v", "flag"])
            table = table.set_column(table.column_names.index("id"), "id", table.column("id").cast(pa.int32()))
            table = table.set_column(table.column_names.index("price"), "price", table.column("real"))
        if number % 3 == 2:
            names = sorted(table.column_names)
            city = table.column("city").cast(pa.large_string()).dictionary_encode()
            table = table.set_column(table.column_names.index("city"), "city", city).select(names)
            table = table.append_column("added", pa.array([number] * table.num_rows))
        pq.write_table(
            table,
            place / f"{number}.parquet",
            row_group_size=9,
            compression=["snappy", "zstd", "none"][number % 3],
            use_dictionary=number % 2 == 0,
        )
    if "int96" in kinds:
        table = some_events(chance, 40, "int96").drop_columns(["at"])
        place = next(folder.glob("day=*/kind=*"))
        pq.write_table(table, place / "int96.parquet", row_group_size=9, use_deprecated_int96_timestamps=True)
    # Spark takes the columns of the first file.
    first = min(folder.glob("day=*/kind=*"), key=str)
    pq.write_table(some_events(chance, 40, kinds[-1]), first / "0-first.parquet", row_group_size=9)
    (folder / "_SUCCESS").touch()
    (folder / "_temporary").mkdir()
    (folder / "_temporary" / "0.parquet").write_bytes(b"no file of ours")
    return folder


def texts(seed: int) -> list[str]:
    far, near = ("300", "40") if seed % 2 else ("300 seconds", "40 seconds")
    return [text.replace("{far}", far).replace("{near}", near) for text in QUERIES]


def is_read_by_tasks(prepared: Prepared) -> bool:
    """Spark knows of no file behind the events then."""
    return not prepared.packed.inputFiles()


def both_ways(spark: SparkSession, folder: Path, queries: list[Any], **options: Any) -> tuple[list[Any], list[Any]]:
    """What tasks find that read the files, and what they find behind Spark."""
    from kleene.spark.batch import prepare

    settings = Settings(exchange=Exchange(buckets=3))
    ways: list[Callable[[], DataFrame]] = [
        lambda: kleene.parquet(spark, folder, **options),
        lambda: spark.read.options(**options).parquet(str(folder)),
    ]
    prepared = [
        prepare(way(), query if isinstance(query, list) else [query], schema=None, several=False, settings=settings)
        for way in ways
        for query in queries
    ]
    half = len(queries)
    assert [is_read_by_tasks(one) for one in prepared] == [True] * half + [False] * half
    found = run_together(prepared)
    kinds = ("matches", "timeouts")
    given = [[rows(found[n, kind]) if (n, kind) in found else [] for kind in kinds] for n in range(2 * half)]
    return given[:half], given[half:]


@pytest.mark.parametrize("seed", range(rounds(32)))
def test_the_same_matches_by_either_way(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    folder = written(tmp_path / "events", seed)
    columns = "a.ts AS from_ts, b.ts AS to_ts, b.id AS b_id, b.city AS city, b.day AS day, b.on AS on_day, b.raw AS raw"
    columns += ", b.price AS price, b.v AS v, b.kind AS kind, b.amount AS amount"
    queries: list[AnyQuery] = [
        kleene.query(f"{text} RETURN {columns}") for text in texts(seed) if "TIMEOUTS" not in text and "a[]" not in text
    ]
    tasks, behind_spark = both_ways(spark, folder, queries)
    for query, one, other in zip(queries, tasks, behind_spark, strict=True):
        # As text, in which NaN is itself.
        assert repr(one) == repr(other), query.text
    assert sum(len(matches) for matches, _ in tasks) > 100


def test_all_outputs_and_counts_of_a_run(spark: SparkSession, tmp_path: Path) -> None:
    """Timeouts, bad rows and totals, several queries in one pass, events whole."""
    from kleene.spark.batch_run import together

    folder = written(tmp_path / "events", 1)
    for file in folder.glob("day=*/kind=*/*.parquet"):
        table = pq.read_table(file, partitioning=None)
        pq.write_table(table.drop_columns(["unread"]), file, row_group_size=9)
    queries = [kleene.query(text, name=f"q{n}") for n, text in enumerate(texts(1)) if n in (0, 3, 4, 5, 7)]
    answers = []
    for events in (kleene.parquet(spark, folder), spark.read.parquet(str(folder))):
        run = together(events, queries)
        totals = run.run()
        outputs = [rows(run.matches(query.name or "")) for query in queries]
        late = run.timeouts("q7")
        assert late is not None
        answers.append((totals, outputs, rows(late), rows(run.bad_rows)))
        run.close()
    # As text, in which NaN is itself.
    assert repr(answers[0]) == repr(answers[1])
    assert all(answers[0])
    assert answers[0][0].timeouts["q7"] > 0


def simple(folder: Path, **changed: Any) -> Path:
    """Two files of four events."""
    folder.mkdir(exist_ok=True)
    table = pa.table({"type": ["A", "B"] * 2, "ts": [1, 2, 3, 4], "id": [1, 1, 2, 2], "x": [1.5] * 4, **changed})
    for number in range(2):
        pq.write_table(table, folder / f"{number}.parquet", row_group_size=2)
    return folder


def test_explain_names_the_reader(spark: SparkSession, tmp_path: Path) -> None:
    events = kleene.parquet(spark, simple(tmp_path / "e"))
    assert "read       by tasks, 2 files, 4 row groups" in kleene.explain(KEYED, events=events).text
    derived = kleene.explain(KEYED, events=events.where("id = 1")).text
    assert "read       by Spark: only files that `kleene.parquet(spark, path)` opened are read by tasks" in derived


def refusals(spark: SparkSession, folder: Path) -> dict[str, Callable[[], DataFrame]]:
    """Data frames of which something is not certain, by what is said of each."""
    folder.mkdir()
    uints = simple(folder / "u", x=pa.array([1] * 4, pa.uint32()))
    cased = simple(folder / "c")
    pq.write_table(pq.read_table(cased / "1.parquet").rename_columns(["type", "ts", "ID", "x"]), cased / "1.parquet")
    moments = folder / "m" / "at=2024-03-31 00%3A00%3A00"
    moments.parent.mkdir()
    simple(moments)
    local = simple(folder / "l", x=pa.array([FIRST] * 4, pa.timestamp("ns", "UTC")).cast(pa.timestamp("us", "UTC")))
    old = pa.table({"type": ["A"], "ts": [1], "id": [1], "x": pa.array([FIRST], pa.timestamp("us", "UTC"))})
    pq.write_table(old.replace_schema_metadata({"org.apache.spark.version": "2.4.0"}), local / "0.parquet")
    both = folder / "b" / "id=1"
    both.parent.mkdir()
    simple(both)
    plain = simple(folder / "e")
    cached = kleene.parquet(spark, plain).cache()

    return {
        "column `x` is no plain bigint": lambda: kleene.parquet(spark, uints),
        "column `id` is spelled otherwise": lambda: kleene.parquet(spark, cased),
        "`at` may be read in several ways": lambda: kleene.parquet(spark, moments.parent),
        "of an older calendar": lambda: kleene.parquet(spark, local),
        "is a column of files and of folders": lambda: kleene.parquet(spark, both.parent),
        "its option `datetimeRebaseMode`": lambda: kleene.parquet(spark, plain, datetimeRebaseMode="LEGACY"),
        "a file may be meant twice": lambda: kleene.parquet(spark, plain, plain / "0.parquet"),
        "a file may be meant twice by": lambda: kleene.parquet(spark, f"{folder}/{{e,e/0.parquet}}"),
        "cached": lambda: cached,
    }


def test_what_is_not_certain_goes_through_spark(spark: SparkSession, tmp_path: Path) -> None:
    from kleene.spark.parquet.listing import ReadBySpark, listed_files

    for said, opened in refusals(spark, tmp_path / "r").items():
        events = opened()
        with pytest.raises(ReadBySpark, match=said):
            listed_files(events).placed(events.columns)
        explained = kleene.explain(KEYED, events=events).text
        assert "read       by Spark: " in explained
        assert said in explained
    with setting(spark, "spark.sql.files.ignoreCorruptFiles", "true"), pytest.raises(ReadBySpark, match="Corrupt"):
        listed_files(kleene.parquet(spark, tmp_path / "r" / "e"))
    with setting(spark, "spark.sql.parquet.datetimeRebaseModeInRead", "EXCEPTION"):
        moments = kleene.parquet(spark, simple(tmp_path / "d", x=[date(2024, 1, 1)] * 4))
        with pytest.raises(ReadBySpark, match="datetimeRebaseModeInRead is EXCEPTION"):
            listed_files(moments).placed(["x"])
        # Columns of no time are not concerned.
        assert listed_files(moments).placed(["id"])


def test_a_file_meant_twice_is_read_twice(spark: SparkSession, tmp_path: Path) -> None:
    folder = simple(tmp_path / "e")
    events = kleene.parquet(spark, folder / "0.parquet", folder / "0.parquet")
    assert kleene.match(events, KEYED).count() == 2 * 2 * 2


@pytest.mark.parametrize("change", ["rewritten", "deleted"])
def test_a_file_that_changed_is_an_error(spark: SparkSession, tmp_path: Path, change: str) -> None:
    folder = simple(tmp_path / "e")
    matches = kleene.match(kleene.parquet(spark, folder), KEYED)
    if change == "deleted":
        (folder / "1.parquet").unlink()
    else:
        simple(folder, ts=[1, 2, 3, 5])
    with pytest.raises(Exception, match=r"KL714.*is not (there any more|as it was)"):
        matches.collect()
    again = kleene.match(kleene.parquet(spark, folder), KEYED)
    assert again.count() > 0


def test_row_groups_that_hold_nothing_are_not_read(spark: SparkSession, tmp_path: Path) -> None:
    """By their statistics, and by what folders say."""
    from kleene.spark.parquet.listing import listed_files
    from kleene.spark.parquet.planning import useful_row_groups

    for name in ("A", "B", "C"):
        place = tmp_path / "e" / f"type={name}"
        place.mkdir(parents=True)
        pq.write_table(pa.table({"ts": list(range(20)), "id": [1] * 20}), place / "0.parquet", row_group_size=5)
    listed = listed_files(kleene.parquet(spark, tmp_path / "e"))
    kinds = pa.schema([("ts", pa.int64()), ("type", pa.string())])
    late = ("compare", ">", ("column", "ts", None), ("constant", 12, "int"))
    of_b = ("compare", "=", ("column", "type", None), ("constant", "B", "string"))
    groups = useful_row_groups(listed.files, listed.placed(kinds.names), kinds, ("all", [late, of_b]))
    assert [(group.file, group.number) for group in groups] == [(1, 2), (1, 3)]


def test_pipelines_and_the_command_open_files_so(spark: SparkSession, tmp_path: Path) -> None:
    from kleene.cli.on_spark import find_on_spark
    from kleene.spark.parquet.listing import listed_files
    from kleene.spark.pipeline.reading import read_pipeline
    from kleene.spark.pipeline.sources import open_source

    folder = simple(tmp_path / "e")
    (tmp_path / "p.toml").write_text("""
[[sources]]
name = "events"
kind = "parquet"
path = "e"
columns = { tag = "id" }

[[sources]]
name = "cast"
kind = "parquet"
path = "e"
casts = { id = "string" }

[[queries]]
name = "q"
text = "PATTERN SEQ(A a, B b) WHERE [tag] WITHIN 10"

[[sinks]]
kind = "console"
""")
    pipeline = read_pipeline(str(tmp_path / "p.toml"))
    opened = open_source(spark, pipeline, 0).frame
    assert listed_files(opened).placed(["tag"])[0].columns == {"tag": "id"}
    found = kleene.match(opened, "PATTERN SEQ(A a, B b) WHERE [tag] WITHIN 10")
    assert found.count() == kleene.match(spark.read.parquet(str(folder)), KEYED).count() == 8
    assert "only files" in kleene.explain(KEYED, events=open_source(spark, pipeline, 1).frame).text

    table = pq.read_table(folder / "0.parquet")
    files = {"": [str(folder / "0.parquet")]}
    there = find_on_spark(table, files, kleene.query(KEYED), kleene.Schema(), kleene.Schema())
    assert rows(there.matches) == rows(kleene.match(table, KEYED))
