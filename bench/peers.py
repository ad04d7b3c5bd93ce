"""The same sequences as joins in Polars and DuckDB: typed columns prepared beforehand, each peer by its best spelling.

Polars is measured twice: counting the matches, and giving them as rows, with all columns of each event. The rule for
counting: every match must exist as a row before it is counted, since ours returns them. (Counts alone could come from
prefix sums, without a single match being found.) Rows of Polars may be in any order, and have no ids.

What was tried in Polars 2.1, counting, at V = 100 / 1 000 / 10 000 of W1, in million events a second on one busy core:

- hash joins on the key, then a filter on order and window: 0.8 / 24 / 98 (joining the last two first: 0.7 / 17 / 95);
- the same with time in the key, in buckets of a window (an event is in its bucket and the one before): 28 / 97 / 105;
- buckets of half or a quarter of a window, fewer false pairs and more copies: 26 / 87 / 73 and 24 / 60 / 78;
- the copies on the probing side instead: 25 / 96 / 85;
- sorted keys, `search_sorted` and exploded ranges, no false pairs: 24 / 61 / 54;
- `join_where` on key, order and window: ahead of the others only in W4, by a tenth.

Each is run by both engines of Polars: on one core the streaming one is up to twice as fast. A small integer for the
type and 32-bit columns, which are prepared before the clock starts, are worth up to a half over the table's own
categoricals and 64 bits.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial, reduce
from typing import Literal

from bench.cores import POLARS_THREADS

os.environ.setdefault(POLARS_THREADS, "1")

import duckdb
import polars as pl
import pyarrow as pa

from bench.measure import Work, once
from bench.workloads import Sequence

# Seconds that plain hash joins may take, which can grow with the square of the stream and worse; slower ones are left
# out. DuckDB's are never its fastest spelling.
MOST_SECONDS = {"Polars hash joins": 5.0, "Polars hash joins, streaming": 5.0, "DuckDB hash joins": 1.0}
# By how much a spelling may be slower than the fastest of its peer, at a first run, to be measured at length.
MOST_SLOWER = 1.3
ENGINES: dict[str, Literal["in-memory", "streaming"]] = {"": "in-memory", ", streaming": "streaming"}


def counting(table: pa.Table, sequence: Sequence) -> dict[str, Work]:
    """The spellings in Polars that can win, by name."""
    return contenders(_affordable(polars_joins, table, sequence))


def giving_rows(table: pa.Table, sequence: Sequence, spellings: Iterable[str]) -> dict[str, Work]:
    """Polars giving rows, with the joins of these spellings: those that count fastest."""
    givers = polars_rows(table, sequence)
    works: dict[str, Work] = {f"{name}, rows": partial(_height, givers[name]) for name in spellings}
    return contenders(works)


def duckdb_counting(table: pa.Table, sequence: Sequence) -> dict[str, Work]:
    return contenders(_affordable(duckdb_joins, table, sequence))


def contenders(works: Mapping[str, Work]) -> dict[str, Work]:
    """The fastest, and what is nearly as fast, by the second of two runs."""
    if len(works) < 2:
        return dict(works)
    for work in works.values():
        work()
    spent = {name: once(work) for name, work in works.items()}
    limit = MOST_SLOWER * min(spent.values())
    return {name: work for name, work in works.items() if spent[name] <= limit}


def _affordable(
    make: Callable[[pa.Table, Sequence], dict[str, Work]], table: pa.Table, sequence: Sequence
) -> dict[str, Work]:
    """Judged by a ninth and a third of the stream, and the growth between them."""
    ninth, third = (make(table.slice(0, table.num_rows // part), sequence) for part in (9, 3))
    works = make(table, sequence)
    for name in MOST_SECONDS.keys() & works.keys():
        ninth[name]()
        first = once(ninth[name])
        expected = 9 * first
        if expected <= MOST_SECONDS[name]:
            second = once(third[name])
            expected = second * max(3.0, second / first)
        if expected > MOST_SECONDS[name]:
            print(f"  {name}: left out, would need more than {expected:.0f} s")
            del works[name]
    return works


def prepared(table: pa.Table, sequence: Sequence) -> pl.DataFrame:
    """Place of the type in the sequence (0: none), time, the key's columns, and the row's number, in 32 bits."""
    kind = table["type"].combine_chunks()
    codes = pl.Series("place", kind.indices.to_numpy())
    places = {kind.dictionary.to_pylist().index(name): place for place, name in enumerate(sequence.types, 1)}
    columns = {name: pl.Series(name, table[name].to_numpy()).cast(pl.Int32) for name in ("ts", *sequence.keys)}
    frame = pl.DataFrame([codes.replace_strict(places, default=0, return_dtype=pl.UInt8), *columns.values()])
    return frame.with_row_index("row")


# Polars


def polars_joins(table: pa.Table, sequence: Sequence) -> dict[str, Work]:
    """Each spelling, counting its matches."""
    frame = prepared(table, sequence)
    return {
        f"{name}{suffix}": partial(_count, make, engine)
        for name, make in _spellings(frame, sequence).items()
        for suffix, engine in ENGINES.items()
    }


def polars_rows(table: pa.Table, sequence: Sequence) -> dict[str, Callable[[], pl.DataFrame]]:
    """Each spelling, with a column for each variable that holds all columns of its event."""
    frame, events = prepared(table, sequence), pl.DataFrame(pl.from_arrow(table))
    return {
        f"{name}{suffix}": partial(_rows, make, events, len(sequence.types), engine)
        for name, make in _spellings(frame, sequence).items()
        for suffix, engine in ENGINES.items()
    }


def _spellings(frame: pl.DataFrame, sequence: Sequence) -> dict[str, Callable[[], pl.LazyFrame]]:
    key = _packed_key(frame, sequence)
    made: dict[str, Callable[[], pl.LazyFrame]] = {}
    if sequence.keys:
        made["Polars hash joins"] = partial(_hash_joins, frame, key, sequence)
    for parts in (1, 2):
        made[f"Polars buckets/{parts}"] = partial(_bucket_joins, frame, key, sequence, parts)
    if len(sequence.types) == 2:
        made["Polars join_where"] = partial(_inequality_join, frame, key, sequence)
    return made


def _count(make: Callable[[], pl.LazyFrame], engine: Literal["in-memory", "streaming"]) -> int:
    return int(make().select(pl.len()).collect(engine=engine).item())


def _rows(
    make: Callable[[], pl.LazyFrame], events: pl.DataFrame, places: int, engine: Literal["in-memory", "streaming"]
) -> pl.DataFrame:
    """Numbers of rows go through the joins, which is faster than the columns themselves."""
    numbers = make().select(f"r{place}" for place in range(1, places + 1)).collect(engine=engine)
    return pl.DataFrame(
        [events.select(pl.all().gather(numbers[f"r{place}"])).to_struct(f"v{place}") for place in range(1, places + 1)]
    )


def _height(make: Callable[[], pl.DataFrame]) -> int:
    return make().height


def _packed_key(frame: pl.DataFrame, sequence: Sequence) -> pl.Expr:
    """The key's columns as one number."""
    return reduce(lambda made, name: made * _values(frame, name) + pl.col(name), sequence.keys, pl.lit(0, pl.Int32))


def _values(frame: pl.DataFrame, name: str) -> int:
    return int(frame[name].to_numpy().max(initial=0)) + 1


def _hash_joins(frame: pl.DataFrame, key: pl.Expr, sequence: Sequence) -> pl.LazyFrame:
    sides = [_side(frame, place, key) for place in range(1, len(sequence.types) + 1)]
    return _joined(sides, sequence)


def _bucket_joins(frame: pl.DataFrame, key: pl.Expr, sequence: Sequence, parts: int) -> pl.LazyFrame:
    """Time is part of the key: an event stands in its bucket and in those before it that a window may reach from."""
    width = -(-sequence.window // parts)
    buckets = frame.height // width + parts + 2
    domain = buckets
    for name in sequence.keys:
        domain *= _values(frame, name)
    wide = pl.Int32 if domain < 2**31 else pl.Int64
    bucket = key.cast(wide) * buckets + pl.col("ts") // width + parts
    first, *others = (_side(frame, place, bucket) for place in range(1, len(sequence.types) + 1))
    spread = [pl.concat([side.with_columns(pl.col("k") - back) for back in range(parts + 1)]) for side in others]
    return _joined([first, *spread], sequence)


def _inequality_join(frame: pl.DataFrame, key: pl.Expr, sequence: Sequence) -> pl.LazyFrame:
    first, second = (_side(frame, place, key) for place in (1, 2))
    follows = pl.col("t2") > pl.col("t1"), pl.col("t2") < pl.col("t1") + sequence.window
    return first.join_where(second.rename({"k": "other"}), pl.col("k") == pl.col("other"), *follows)


def _side(frame: pl.DataFrame, place: int, key: pl.Expr) -> pl.LazyFrame:
    wanted = key.alias("k"), pl.col("ts").alias(f"t{place}"), pl.col("row").alias(f"r{place}")
    return frame.lazy().filter(pl.col("place") == place).select(wanted)


def _joined(sides: list[pl.LazyFrame], sequence: Sequence) -> pl.LazyFrame:
    """What is not asked for in the end, Polars does not carry along."""
    joined = sides[0]
    for place, side in enumerate(sides[1:], 2):
        last = pl.col(f"t{place}")
        joined = joined.join(side, on="k").filter(
            (last > pl.col(f"t{place - 1}")) & (last - pl.col("t1") < sequence.window)
        )
    return joined


# DuckDB


def duckdb_joins(table: pa.Table, sequence: Sequence) -> dict[str, Work]:
    frame = prepared(table, sequence).to_arrow()
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.execute("SET enable_progress_bar = false")
    connection.execute("CREATE TABLE events AS SELECT * FROM frame")
    del frame
    works: dict[str, Work] = {}
    if sequence.keys:
        works["DuckDB hash joins"] = partial(_asked, connection, _hash_sql(sequence))
    works["DuckDB buckets/1"] = partial(_asked, connection, _bucket_sql(sequence))
    return works


def _asked(connection: duckdb.DuckDBPyConnection, sql: str) -> int:
    (count,) = connection.execute(sql).fetchone() or (0,)
    return int(count)


def _hash_sql(sequence: Sequence) -> str:
    keys = ", ".join(sequence.keys)
    places = range(1, len(sequence.types) + 1)
    sides = [f"v{place} AS (SELECT {keys}, ts FROM events WHERE place = {place})" for place in places]
    return _joined_sql(sides, sequence, sequence.keys)


def _bucket_sql(sequence: Sequence) -> str:
    width = sequence.window
    keys = "".join(f"{key}, " for key in sequence.keys)
    sides = [f"v1 AS (SELECT {keys} ts // {width} AS bucket, ts FROM events WHERE place = 1)"]
    for place in range(2, len(sequence.types) + 1):
        sides.append(
            f"v{place} AS (SELECT {keys} ts // {width} - back AS bucket, ts "
            f"FROM events, (VALUES (0), (1)) copies(back) WHERE place = {place})"
        )
    return _joined_sql(sides, sequence, (*sequence.keys, "bucket"))


def _joined_sql(sides: list[str], sequence: Sequence, keys: tuple[str, ...]) -> str:
    sql = f"WITH {', '.join(sides)} SELECT count(*) FROM v1"
    for place in range(2, len(sequence.types) + 1):
        equal = "".join(f"v{place}.{key} = v1.{key} AND " for key in keys)
        sql += f" JOIN v{place} ON {equal} v{place}.ts > v{place - 1}.ts AND v{place}.ts - v1.ts < {sequence.window}"
    return sql
