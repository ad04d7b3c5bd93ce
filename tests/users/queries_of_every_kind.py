"""A program: queries of every kind on data of every kind; it prints what was compiled for them, and what they found."""

from __future__ import annotations

import decimal
import json
from importlib.util import find_spec
from typing import Any

import numpy as np
import pyarrow as pa
from numba.core import event

import kleene
from kleene import Schema

compiled: list[str] = []


class Listener(event.Listener):  # type: ignore[misc]
    def on_start(self, happened: Any) -> None:
        compiled.append(happened.data["dispatcher"].py_func.__name__)

    def on_end(self, happened: Any) -> None:
        pass


event.register("numba:compile", Listener())

steps = np.arange(40)
made = {"ts": steps // 2, "began": steps // 2 - steps % 2, "k": steps % 3, "x": steps * 7 % 11, "y": steps / 3}
columns = {
    **{name: pa.array(values) for name, values in made.items()},
    "type": pa.array([*"ABCD"]).take(pa.array(steps % 4)),
    "flag": pa.array(steps % 2 == 0),
    "text": pa.array([None if step % 5 == 0 else f"{step:03}" for step in steps], pa.large_string()),
    "day": pa.array(steps, pa.int32()).cast(pa.date32()),
    "at": pa.array(steps, pa.int64()).cast(pa.timestamp("ms", "UTC")),
    "long": pa.array(steps, pa.int64()).cast(pa.duration("s")),
    "unsigned": pa.array(steps, pa.uint64()),
    "half": pa.array(steps, pa.float32()),
    "money": pa.array([decimal.Decimal(int(step)) for step in steps]),
    "few": pa.DictionaryArray.from_arrays(pa.array(steps % 3, pa.int8()), pa.array([*"pqr"])),
}
table = pa.table(columns)
pieces = pa.concat_tables([table.slice(1, 17), table.slice(18, 0), table.slice(18)])
sink = pa.BufferOutputStream()
with pa.ipc.new_stream(sink, table.schema) as stream:
    stream.write_table(table)
read = pa.ipc.open_stream(sink.getvalue()).read_all()

queries = [
    "PATTERN A a ; B b ; C c WITHIN 6",
    "PATTERN A a ; B b WHERE a.x < b.x WITHIN 6",
    "PATTERN SEQ(A a, B b, C c, D d) WHERE [k] WITHIN 30 RETURN a.text, b.money, d.half AS half, c.few AS few, a",
    "PATTERN A a ; !(B b) ; C c WHERE b.text >= a.text AND [few] WITHIN 8 INCLUSIVE",
    "PATTERN !(D d) ; A a ; C c WHERE d.flag WITHIN 3",
    "PATTERN A+ a[] ; D d WHERE skip_till_next_match { [k] AND a[i].y > sum(a[..i-1].half) } WITHIN 9",
    "PATTERN A+ a[] ; !(C c) ; D d WHERE a[i].text CONTAINS '0' AND c.x > d.x WITHIN 4",
    "PATTERN A a ; B? b ; C c WHERE [unsigned] OR b.x > 0 WITHIN 4 RETURN b.x, c.at - a.at AS gap, a.long AS long",
    "PATTERN A+ a[] ; B b WHERE [k] WITHIN 7 OUTPUT COMPRESSED",
    "PATTERN A a ; B{2,3} b[] ; C c WITHIN 9 TIMEOUTS INTO Late",
    "PATTERN A+ a[] ; C c WITHIN 5 RETURN avg(a.y) AS mean, min(a.text) AS least, max(a.at) AS latest",
    "PATTERN A a & B b WHERE a.x < b.x WITHIN 6",
    "PATTERN (A a ; B b) & (C c | D d) WHERE [k] AND a.few = c.few WITHIN 9 RETURN a.text, c.money, d.half AS half",
    "PATTERN A a ; B* ; D d WHERE B.y > a.half AND count(B) < 3 WITHIN 9",
    "PATTERN A a ; B^2 k ; (C c & D d) WHERE [k] AND sum(k.x) > c.x WITHIN 12",
    "PATTERN A a ; !(B b) ; (C c & D d) WHERE b.text > c.text WITHIN 9 INCLUSIVE",
    "PATTERN (A a & D d) ; !(B b) ; C c WHERE [k] AND b.x > a.x WITHIN 9",
    "PATTERN A+ a[] & B b WHERE a[i].x > a[i-1].x AND b.y > sum(a.half) WITHIN 5",
    "PATTERN (A a & B b) ; !(C c) WHERE c.half > a.half WITHIN 5",
    "PATTERN !(C c) ; (A a & B b) WHERE [k] AND c.x > a.x WITHIN 5",
    "PATTERN (A a & B b) ; D+ WHERE D.at > a.at WITHIN 4 OUTPUT NON_OVERLAP",
    "SELECT * FROM A",
    "SELECT * FROM A a ; B b WHERE FILTER(a.k = b.k), FILTER(a.flag = b.flag), b.y > a.half",
    "SELECT a.text, c.money, b.half AS half FROM A a ; B b ; C c WHERE FILTER(a.few = b.few and b.x > a.x), c.x > a.x",
    "SELECT * FROM A a ; B b WHERE FILTER(a.text < b.text), (a, b) OCCURS WITHIN 9",
    "SELECT last(t.x) AS top, c.few FROM A t+ ; C c"
    " WHERE ALL(t.x) < 9, FILTER(PREV(t.y) < 5), FILTER(c.day > PREV(t.day))",
    r"SELECT * FROM (A a | B b) ; (C c \ D d) WHERE FILTER(a.k = c.k), d.text > a.text",
    r"SELECT * FROM (A a ; C c) \ B b WHERE b.k = a.k, b.unsigned > 3",
    r"SELECT * FROM (A a ; C c)+ \ B b",
]
others = {
    "PATTERN A a ; B* b[] ; C c WHERE partition_contiguity { [half] } WITHIN 3 EVENTS OUTPUT NON_OVERLAP": Schema(),
    "PATTERN A+ a[] ; B b WHERE strict_contiguity { a[1].x > 0 } WITHIN 3 EVENTS": Schema(tie_breaker="x"),
    "PATTERN A+ a[] ; !(B b) ; D d WHERE skip_till_next_match { } WITHIN 9 milliseconds": Schema(time="at"),
    "PATTERN A a ; C c ; !(B b) WHERE a.x > b.x WITHIN 5 days": Schema(time="day"),
    "PATTERN (A a & B b) ; !(D d) ; C c WHERE [k] WITHIN 9 EVENTS": Schema(tie_breaker="x"),
    "PATTERN (A a | B+ b[]) ; (C c & D d) WHERE b[i].x > b[1].x WITHIN 9 milliseconds": Schema(time="at"),
}
asked = [(query, Schema(start=start)) for query in queries for start in (None, "began")] + list(others.items())
given = [table, pieces, read, *([table.to_pandas()] if find_spec("pandas") else [])]
found = [len(kleene.match(events, query, schema=schema)) for events in given for query, schema in asked]
# More strings than are known at first.
many = pa.table({"type": ["A", "B"] * 100, "ts": list(range(200)), "k": [str(step // 2) for step in range(200)]})
found.append(len(kleene.match(many, "PATTERN SEQ(A a, B b) WHERE [k] WITHIN 6")))
print(json.dumps({"compiled": compiled, "found": found}))
