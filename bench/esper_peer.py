"""W5 in Esper, a CEP engine in Java: the same queries in its language EPL, in a JVM of its own, fed by one thread.

Esper is under the GPL: it is fetched from Maven when this runs, and only its public documentation was read.

What its manual offers for many queries was tried with Esper 9.0 on a busy machine of two cores, in seconds to load:

- a module for each query, of plain text: 66 for 500 single-event queries, most of it in its compiler; with a hundred
  queries a module no better;
- `statements`: a template is compiled once, with substitution parameters, and deployed for each query: 43 for 10,000,
  with classes of their own for each, which take half a gigabyte outside the heap;
- `contexts`: a statement for each template, in a context of which each query is a partition, begun by an event that
  brings its parameters: 4.3 for 10,000, of which 2.8 compile the four statements. Events go three times as fast, too.

Filter was written in three ways, with the same matches. One is the formula word by word: the next event of the same
primary value, whatever else it has, and θ2 and θ3 at the end, in the `where` clause. In the two others, a run dies with
the event that does not fit: `b=S(θ2) and not S(d1=…, not θ2)`, and the guard `b=S(d1=…) while (θ2)`. The first is
taken: in repeats it was two to four times as fast as `and not`, and mostly faster than the guard.

Where Filter means something else in Esper than here:

- Events are ordered by arrival; here the next event is never one of the same tick, and all events of the next tick that
  has one are next. W5 has one event a tick.
- `timer:within` ends a run when the clock says so; here the duration of the events does. Since the clock is set to each
  event's time before it comes, and the guard ends at `t` and not after it, both mean `end − start + 1 ≤ t`.
- A match holds its three events, where ours is a flat tuple and equal tuples count once; a tuple has the start, and no
  two events start together in W5.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

import kleene
from bench.jvm import class_path, driven
from bench.measure import CountsDiffer, header
from bench.query_workload import DISCRETE, EVENTS, Workload, queries
from bench.query_workload import events as stream_of
from kleene.spark.java import find_java

VERSION = "9.0.0"
ARTIFACTS = tuple(f"com.espertech:esper-{part}:{VERSION}" for part in ("common", "compiler", "runtime"))
SOURCES = Path(__file__).parent / "esper"
KINDS = {"single": "LinearStat", "filter": "Filter"}
WAYS = ("contexts", "statements")
SIZES = {"single": 10_000, "filter": 1_000}
COLUMNS = ("ts", *(f"{letter}{number}" for letter in "dc" for number in range(1, DISCRETE + 1)))
WARM_SECONDS, MEASURED_SECONDS, SECONDS_IN_ALL = 10, 120, 900


@dataclass(frozen=True)
class EsperRun:
    """What one JVM measured.

    load_seconds        to compile and deploy all queries, in a JVM that has just started
    events_per_second   the median of nine passes, after the same events were fed for ten seconds to warm up; each pass
                        begins when the clock has ended all runs of the one before
    matches             of one pass
    megabytes           by which the queries made the heap grow, after a collection
    class_megabytes     by which they made the classes grow, which are outside the heap
    events              of one pass: less than there are when two minutes were too short
    """

    load_seconds: float
    events_per_second: float
    matches: int
    megabytes: float
    class_megabytes: float
    events: int


def run(
    kind: str, size: int, events: pa.Table, queries: list[tuple[str, pa.Table]], *, way: str = "contexts"
) -> EsperRun:
    """Queries of W5 in Esper.

    kind      "single": θ1 alone, of queries of any template; "filter": queries of Filter
    size      how many queries there are, as a check
    queries   as `bench.query_workload.queries` has them: the number of a text says which attribute is primary
    way       "contexts": a partition for each query; "statements": a statement for each
    """
    parameters = _parameters(kind, queries)
    if parameters.num_rows != size:
        raise ValueError(f"{size} queries were meant, and {parameters.num_rows} came")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "templates.epl").write_text(_templates(kind, way, parameters), encoding="utf-8")
        plain = csv.WriteOptions(include_header=False)
        csv.write_csv(parameters, folder / "queries.csv", plain)
        csv.write_csv(events.select(COLUMNS), folder / "events.csv", plain)
        return EsperRun(**json.loads(_driven(way, folder, _typed(parameters))))


# EPL


def _parameters(kind: str, queries: list[tuple[str, pa.Table]]) -> pa.Table:
    """A row for each query: the number of its template, and the parameters that its template has."""
    numbers = range(1, 2 if kind == "single" else 4)
    names = ["primary", *(f"{name}{number}" for number in numbers for name in ("second", "low", "high"))]
    tables = []
    for number, (_, table) in enumerate(queries):
        chosen = table.select(names if kind == "single" else [*names, "t"])
        tables.append(chosen.add_column(0, "template", pa.array([number] * table.num_rows, pa.int64())))
    return pa.concat_tables(tables)


def _typed(parameters: pa.Table) -> dict[str, str]:
    return {field.name: "int" if pa.types.is_integer(field.type) else "double" for field in parameters.schema}


def _templates(kind: str, way: str, parameters: pa.Table) -> str:
    """A statement a line; with contexts, they are one module."""
    types = _typed(parameters)
    if way == "statements":
        values = {name: f"?:{name}:{type_}" for name, type_ in types.items()}
        return "\n".join(f"@name('matches') {_statement(kind, number, values)}" for number in range(DISCRETE))
    values = {name: f"context.query.{name}" for name in types}
    declared = ", ".join(f"{name} {type_}" for name, type_ in types.items())
    lines = [f"@public @buseventtype create objectarray schema Query({declared});"]
    for number in range(DISCRETE):
        lines.append(f"create context Queries{number} initiated by Query(template={number}) as query;")
        lines.append(f"@name('matches{number}') context Queries{number} {_statement(kind, number, values)};")
    return "\n".join(lines)


def _statement(kind: str, number: int, values: dict[str, str]) -> str:
    """The query whose primary attribute has this number, less one; the parameters' values as EPL writes them."""
    following = (number + 1) % DISCRETE + 1
    primary, second, low, high = f"d{number + 1}", f"d{following}", f"c{number + 1}", f"c{following}"

    def fits(step: int, event: str = "") -> list[str]:
        return [
            f"{event}{second} = {values[f'second{step}']}",
            f"{event}{low} > {values[f'low{step}']}",
            f"{event}{high} < {values[f'high{step}']}",
        ]

    same = f"{primary} = {values['primary']}"
    first = f"S({', '.join([same, *fits(1)])})"
    if kind == "single":
        return f"select * from {first}"
    # A tick is a millisecond. A number without a unit is in seconds, and a unit may not follow a context's property.
    within = f"timer:within({values['t']} / 1000.0)"
    rest = " and ".join([*fits(2, "b."), *fits(3, "c.")])
    return f"select * from pattern [every a={first} -> ((b=S({same}) -> c=S({same})) where {within})] where {rest}"


# The JVM


def _driven(way: str, folder: Path, types: dict[str, str]) -> str:
    """The line of the driver, which stops by itself."""
    columns = ",".join(f"{name}:{type_}" for name, type_ in types.items())
    limits = [str(seconds) for seconds in (WARM_SECONDS, MEASURED_SECONDS, SECONDS_IN_ALL)]
    command = ["-Xmx6g", "-cp", class_path(f"esper-{VERSION}", ARTIFACTS, SOURCES), "Driver"]
    return driven([*command, way, str(folder), columns, *limits], SECONDS_IN_ALL + 60)


# The report


def agree(kind: str, values: int, size: int = 200, length: int = 5_000) -> int:
    """The matches that Esper and Kleene both find where an attribute has few values; an error if they differ."""
    workload = Workload(values=values)
    events = stream_of(length, workload)
    asked = queries(KINDS[kind], size, workload)
    ours = kleene.QuerySet(events.schema)
    for number, (text, table) in enumerate(asked):
        ours.add_many(_single_text(number) if kind == "single" else text, table)
    counts = {"Kleene": pc.sum(ours.match(events, results="counts").counts["matches"]).as_py() or 0}
    for way in WAYS:
        counts[f"Esper with {way}"] = run(kind, size, events, asked, way=way).matches
    if len(set(counts.values())) > 1:
        raise CountsDiffer.between(counts)
    return int(counts["Kleene"])


def _single_text(number: int) -> str:
    following = (number + 1) % DISCRETE + 1
    conditions = (
        f"S1.d{number + 1} = :primary ∧ S1.d{following} = :second1",
        f"S1.c{number + 1} > :low1 ∧ S1.c{following} < :high1",
    )
    return f"σ{{{' ∧ '.join(conditions)}}}(S S1)"


def main() -> None:
    print(f"Esper {VERSION}, Java {find_java(os.environ).version}, {header('kleene')}")
    for kind, values in (("single", 8), ("filter", 8), ("filter", 3)):
        found = agree(kind, values)
        print(f"  {kind}: 200 queries, 5,000 events of {values} values: {found:,} matches in Esper and in Kleene")
    events = stream_of(EVENTS)
    for kind, size in SIZES.items():
        asked = queries(KINDS[kind], size)
        for way in WAYS:
            done = run(kind, size, events, asked, way=way)
            print(
                f"  {kind}: {size:,} queries as {way}: loaded in {done.load_seconds:.1f} s, "
                f"{done.megabytes:.1f} MB of heap and {done.class_megabytes:.1f} MB of classes, "
                f"{done.events_per_second:,.0f} events/s, {done.matches:,} matches in {done.events:,} events"
            )


if __name__ == "__main__":
    main()
