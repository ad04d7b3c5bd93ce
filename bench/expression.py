"""The expression machine: rows a second of masks beside Arrow's own kernels, and nanoseconds an operation.

Times are of this thread's processor, the best of several runs, so that a busy machine matters less.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kleene.codegen.expression import compile_clauses
from kleene.engine.executors.linking import groups, link
from kleene.engine.intake.columns import ColumnStore
from kleene.engine.intake.masks import mask
from kleene.engine.intake.strings import StringPool
from kleene.frames.arrow import schema_on
from kleene.kernels.expression import ProgramScope, holds_each, room
from kleene.pattern.expressions import Clause
from kleene.pattern.query import Query
from kleene.pattern.schema import Schema
from kleene.plan.layout import Layout

ROWS = 1_000_000


def best(work: Callable[[], object], runs: int = 15) -> float:
    """Seconds."""
    work()
    times = []
    for _ in range(runs):
        began = time.thread_time()
        work()
        times.append(time.thread_time() - began)
    return min(times)


def events() -> pa.Table:
    draw = np.random.default_rng(7)
    names = np.array(["Google", "IBM", "Sun", "Oracle", "Microsoft", "Apple", "Intel", "AMD"])
    return pa.table(
        {
            "type": pa.array(["Stock"] * ROWS),
            "ts": pa.array(np.arange(ROWS)),
            "x": draw.integers(0, 1000, ROWS),
            "y": draw.integers(0, 1000, ROWS),
            "z": draw.integers(0, 1000, ROWS),
            "volume": draw.integers(0, 1000, ROWS),
            "price": draw.random(ROWS) * 100,
            "name": pa.array(names[draw.integers(0, len(names), ROWS)]),
        }
    )


def conditions(where: str, schema: Schema, pattern: str = "Stock a") -> tuple[Clause, ...]:
    return Query(f"PATTERN {pattern} WHERE {where}").bind(schema).conditions.positive


def masks(table: pa.Table, schema: Schema) -> None:
    strings = StringPool()
    names = ["x", "y", "z", "volume", "price", "name"]
    store = ColumnStore.from_table(table, names, schema, strings)
    print(f"masks over {ROWS:,} rows                        machine    Arrow compute  (M rows/s)")
    x, volume, name = table["x"], table["volume"], table["name"]

    def remainder() -> pa.ChunkedArray:
        # Arrow has no modulo; this one does not know its sign, nor zero.
        rest = pc.subtract(x, pc.multiply(pc.divide(x, 500), 500))
        return pc.and_kleene(pc.equal(rest, 0), pc.less(volume, 150))

    cases: list[tuple[str, Callable[[], pa.ChunkedArray]]] = [
        ("a.x > 5", lambda: pc.greater(x, 5)),
        ("a.name = 'Google'", lambda: pc.equal(name, "Google")),
        ("a.name CONTAINS 'oo'", lambda: pc.match_substring(name, "oo")),
        ("a.x % 500 = 0 and a.volume < 150", remainder),
        ("a.price * 1.05 > 60 or a.volume > 900", lambda: _either(table)),
    ]
    for where, arrow in cases:
        clauses = conditions(where, schema)
        found = mask(clauses, store, strings)
        assert found.tolist() == arrow().to_pylist(), where
        ours, theirs = (best(work) for work in (lambda: mask(clauses, store, strings), arrow))  # noqa: B023
        print(f"  {where:42} {ROWS / ours / 1e6:8.0f}    {ROWS / theirs / 1e6:8.0f}")
    for name_, columns in (("integers", ["x"]), ("reals", ["price"]), ("strings", ["name"])):
        spent = best(lambda: ColumnStore.from_table(table, columns, schema, strings), 5)  # noqa: B023
        print(f"  a column of {name_} to arrays{ROWS / spent / 1e6:32.0f}")


def _either(table: pa.Table) -> pa.ChunkedArray:
    return pc.or_kleene(pc.greater(pc.multiply(table["price"], 1.05), 60), pc.greater(table["volume"], 900))


def operations(table: pa.Table, schema: Schema) -> None:
    """Pairs of events, as an executor meets them."""
    strings = StringPool()
    store = ColumnStore.from_table(table, ["x", "y", "z", "volume", "price", "name"], schema, strings)
    pairs = np.random.default_rng(8).integers(0, 20_000, (ROWS, 2))
    out = np.zeros(ROWS, np.bool_)
    print("conditions on two events                    operations   ns each    ns an operation")
    for where in (
        "a.x = b.x",
        "a.price < b.price",
        "a.name = b.name",
        "a.name < b.name",
        "b.price > a.price * 1.05",
        "a.x + b.y + a.z < 5 * b.x + 100",
        "a.price * 1.5 + b.price * 2.5 > 200.0",
    ):
        clauses = conditions(where, schema, "SEQ(Stock a, Stock b)")
        layout = Layout.of(clauses, store.columns)
        program = compile_clauses(clauses, layout)
        code, texts = link(program, strings), strings.arrays()
        scope = ProgramScope(store.events, texts, pairs, groups(ROWS, 0), room(program.depth))
        run = lambda: holds_each(code, scope, out)  # noqa: B023, E731
        spent = best(run) / ROWS * 1e9
        number = len(program.code) // 4 - 1
        print(f"  {where:50} {number:3}     {spent:6.1f}         {spent / number:6.2f}     ({out.mean():.0%} true)")


def main() -> None:
    table = events()
    schema = schema_on(table.schema, Schema())
    masks(table, schema)
    operations(table, schema)


if __name__ == "__main__":
    main()
