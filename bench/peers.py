"""The same sequences as joins in Polars and DuckDB: one thread, typed columns prepared beforehand, only counted.

The rule for a peer: every match must exist as a row before it is counted, since ours returns them. (Counts alone could
come from prefix sums, without a single match being found.) What was tried in Polars 2.1, at V = 100 / 1 000 / 10 000 of
W1, in million events a second on one busy core:

- hash joins on the key, then a filter on order and window: 0.8 / 24 / 98 (joining the last two first: 0.7 / 17 / 95);
- the same with time in the key, in buckets of a window (an event is in its bucket and the one before): 28 / 97 / 105;
- buckets of half or a quarter of a window, fewer false pairs and more copies: 26 / 87 / 73 and 24 / 60 / 78;
- the copies on the probing side instead: 25 / 96 / 85; the streaming engine: 24 / 87 / 102;
- sorted keys, `search_sorted` and exploded ranges, no false pairs: 24 / 61 / 54.

A small integer for the type and 32-bit columns are worth up to a half over categoricals and 64 bits.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial, reduce

os.environ.setdefault("POLARS_MAX_THREADS", "1")

import duckdb
import polars as pl
import pyarrow as pa

from bench.measure import Work, once
from bench.workloads import Sequence

# Seconds that plain hash joins may take, which can grow with the square of the stream and worse; slower ones are left
# out. DuckDB's are never its fastest spelling.
MOST_SECONDS = {"Polars hash joins": 5.0, "DuckDB hash joins": 1.0}


def peers(table: pa.Table, sequence: Sequence) -> dict[str, Work]:
    """The spellings of a sequence that can be afforded, by name."""
    return {**_affordable(polars_joins, table, sequence), **_affordable(duckdb_joins, table, sequence)}


def _affordable(
    make: Callable[[pa.Table, Sequence], dict[str, Work]], table: pa.Table, sequence: Sequence
) -> dict[str, Work]:
    """Judged by a ninth and a third of the stream, and the growth between them."""
    ninth, third = (make(table.slice(0, table.num_rows // part), sequence) for part in (9, 3))
    works = make(table, sequence)
    for name in MOST_SECONDS.keys() & works.keys():
        ninth[name]()
        spent = once(ninth[name]), once(third[name])
        expected = spent[1] * max(3.0, spent[1] / spent[0])
        if expected > MOST_SECONDS[name]:
            rate = table.num_rows / 3 / spent[1] / 1e6
            print(f"  {name}: left out, would need {expected:.0f} s (a third of the events: {rate:.2f} M events/s)")
            del works[name]
    return works


def prepared(table: pa.Table, sequence: Sequence) -> pl.DataFrame:
    """Place of the type in the sequence (0: none), time, and the key's columns in 32 bits."""
    kind = table["type"].combine_chunks()
    codes = pl.Series("place", kind.indices.to_numpy())
    places = {kind.dictionary.to_pylist().index(name): place for place, name in enumerate(sequence.types, 1)}
    columns = {name: pl.Series(name, table[name].to_numpy()).cast(pl.Int32) for name in ("ts", *sequence.keys)}
    return pl.DataFrame([codes.replace_strict(places, default=0, return_dtype=pl.UInt8), *columns.values()])


# Polars


def polars_joins(table: pa.Table, sequence: Sequence) -> dict[str, Work]:
    frame = prepared(table, sequence)
    key = _packed_key(frame, sequence)
    works: dict[str, Work] = {}
    if sequence.keys:
        works["Polars hash joins"] = partial(_hash_joins, frame, key, sequence)
    for parts in (1, 2):
        works[f"Polars buckets/{parts}"] = partial(_bucket_joins, frame, key, sequence, parts)
    return works


def _packed_key(frame: pl.DataFrame, sequence: Sequence) -> pl.Expr:
    """The key's columns as one number."""
    return reduce(lambda made, name: made * _values(frame, name) + pl.col(name), sequence.keys, pl.lit(0, pl.Int32))


def _values(frame: pl.DataFrame, name: str) -> int:
    return int(frame[name].to_numpy().max(initial=0)) + 1


def _hash_joins(frame: pl.DataFrame, key: pl.Expr, sequence: Sequence) -> int:
    sides = [_side(frame, place, key) for place in range(1, len(sequence.types) + 1)]
    return _counted(sides, sequence)


def _bucket_joins(frame: pl.DataFrame, key: pl.Expr, sequence: Sequence, parts: int) -> int:
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
    return _counted([first, *spread], sequence)


def _side(frame: pl.DataFrame, place: int, key: pl.Expr) -> pl.LazyFrame:
    return frame.lazy().filter(pl.col("place") == place).select(key.alias("k"), pl.col("ts").alias(f"t{place}"))


def _counted(sides: list[pl.LazyFrame], sequence: Sequence) -> int:
    joined = sides[0]
    for place, side in enumerate(sides[1:], 2):
        last = pl.col(f"t{place}")
        joined = joined.join(side, on="k").filter(
            (last > pl.col(f"t{place - 1}")) & (last - pl.col("t1") < sequence.window)
        )
    return int(joined.select(pl.len()).collect().item())


# DuckDB


def duckdb_joins(table: pa.Table, sequence: Sequence) -> dict[str, Work]:
    frame = prepared(table, sequence).to_arrow()
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
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
