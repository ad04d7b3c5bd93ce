"""Random families of queries: streams that publish, and patterns and streams that read what they made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import pyarrow as pa
from tests.streams.agreement import table_of

from kleene.algebra.names import show
from kleene.algebra.nodes import AttributeName, StreamSchema
from kleene.algebra.query import StreamQuery
from kleene.errors import KleeneError
from kleene.frames.outputs import Outputs
from kleene.pattern.query import Query
from kleene.pattern.schema import Schema
from kleene.pattern.types import ValueType
from kleene.queries.any_query import AnyQuery, read_query
from kleene.testing.generators.streams import COLUMNS, GeneratedStreamCase, random_stream_case
from kleene.testing.reference_outputs import table_outputs

# Past so many composite events the reference takes too long.
_MOST = 60


@dataclass(frozen=True)
class Family:
    """Queries in one run, the first of which reads what others make, their events, and what the reference says."""

    queries: tuple[AnyQuery, ...]
    schema: Schema
    table: pa.Table
    expected: Outputs[pa.Table]

    @property
    def text(self) -> str:
        return "\n\n".join(query.text for query in self.queries)


def random_family(rng: Random) -> Family | None:
    """A family of two or three; None when one of its queries is wrong, or makes too much."""
    case = random_stream_case(rng)
    table, schema = _input(case)
    bound = StreamQuery(case.text).bind(case.schema)
    names = _published(rng, bound.root.schema)
    if not names:
        return None
    pairs = ", ".join(f"{show(name)} ↦ p{place}" for place, name in enumerate(names))
    maker = f"ρ{{{pairs}}} ∘ π{{{', '.join(map(show, names))}}}({case.text}) publish P"
    number = next((place for place, name in enumerate(names) if bound.root.schema.type_of(name) is ValueType.INT), None)
    reader = _reader(rng, number)
    queries: list[AnyQuery] = [read_query(reader, "reader"), read_query(maker, "maker")]
    if rng.random() < 0.4:
        queries.append(Query(_between(rng, number), "between"))
        queries[0] = read_query(reader.replace("P p", "R p"), "reader")
    try:
        return _family(queries, schema, table)
    except KleeneError:
        return None


def keyed_family(rng: Random) -> Family | None:
    """A family whose events are divided by one key, which has other names in places; None when it makes too much."""
    table, schema = _input(random_stream_case(rng))
    maker = rng.choice(
        [
            "ρ{a.k ↦ who, b.x ↦ v} ∘ π{a.k, b.x}(A a ;{a.k = b.k} B b)",
            "ρ{a.k ↦ who, b.x ↦ v} ∘ π{a.k, b.x}(μ{σ{b.x >= b.x.last}, a.k = b.k}(A a, B b))",
            "ρ{a.k ↦ who, c.x ↦ v} ∘ π{a.k, c.x}(A a ;{b.k = a.k AND c.k = a.k} (B b ;{b.k = c.k} A c))",
        ]
    )
    reader = rng.choice(
        [
            "PATTERN P p ; A c WHERE p.who = c.k WITHIN 9",
            "σ{c.x > p.v}(P p ;{c.k = p.who} B c)",
            "P p ;{p.who = q.who AND DUR <= 20} P q",
        ]
    )
    return _family([read_query(reader, "reader"), read_query(f"{maker} publish P", "maker")], schema, table)


def bounded_stream(rng: Random) -> Family | None:
    """One query whose results last for a limited time; None when it makes too much."""
    case = random_stream_case(rng, linear_plus=True)
    table, schema = _input(case)
    return _family([read_query(f"σ{{DUR <= {rng.randint(2, 9)}}}({case.text})", "reader")], schema, table)


def _input(case: GeneratedStreamCase) -> tuple[pa.Table, Schema]:
    return table_of(case, case.rows), Schema(start=case.start, tie_breaker=case.tie_breaker)


def _family(queries: Sequence[AnyQuery], schema: Schema, table: pa.Table) -> Family | None:
    expected = table_outputs(table, queries, schema=schema)
    many = table_outputs(table, queries, schema=schema, several=True).matches.num_rows
    return None if many > _MOST else Family(tuple(queries), schema, table, expected)


def _published(rng: Random, schema: StreamSchema) -> list[AttributeName]:
    """Some attributes, one of them an integer where there is one."""
    integers = [name for name, kind in schema.attributes if kind is ValueType.INT]
    chosen = [*rng.sample(integers, min(1, len(integers))), *rng.sample(schema.names, min(2, len(schema.names)))]
    return list(dict.fromkeys(chosen))


def _reader(rng: Random, number: int | None) -> str:
    """A pattern or a stream that reads P."""
    key = f"p.p{number} = b.x" if number is not None else "b.x > 1"
    bound = rng.choice(["", " AND DUR <= 9"])
    return rng.choice(
        [
            f"PATTERN P p ; A b WHERE {key} WITHIN {rng.randint(3, 12)}",
            f"PATTERN A b ; P p WITHIN {rng.randint(3, 9)} INCLUSIVE",
            f"PATTERN P p & B b WHERE {key} WITHIN 8",
            f"A b ;{{{key}{bound}}} P p",
            f"P p ;{{{key}{bound}}} A b",
            f"μ{{ID, b.k = 1{bound}, init b.k ↦ 1, init b.x ↦ 0, init b.y ↦ 0.0, init b.s ↦ 'p'}}(P p, B b)",
            "σ{DUR <= 12}(P p ; (A b ; B c))",
        ]
    )


def _between(rng: Random, number: int | None) -> str:
    """A pattern that reads P and makes R, with an attribute of P and all that tells its own events apart."""
    value = "a.x" if number is None else f"p.p{number}"
    own = ", ".join(f"a.{name} AS a_{name}" for name in COLUMNS)
    return f"PATTERN P p ; {rng.choice('AB')} a WITHIN 10 RETURN {value} AS p{number or 0}, {own} INTO R"
