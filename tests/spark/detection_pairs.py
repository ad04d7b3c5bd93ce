"""Random queries in EQL for Spark: as they are drawn, with a key on every `;`, and with a bound on their time."""

from __future__ import annotations

from random import Random

from tests.spark.stream_families import Family
from tests.streams.agreement import table_of

from kleene.algebra.eql_query import EqlQuery
from kleene.algebra.query import StreamQuery
from kleene.pattern.schema import Schema
from kleene.queries.any_query import AnyQuery, read_query
from kleene.testing.generators.detections import STRATA, random_detection_case
from kleene.testing.generators.streams import random_rows
from kleene.testing.reference_outputs import table_outputs

# Past so many matches a pair is not worth its time.
_MOST = 200


def drawn_pair(rng: Random) -> Family | None:
    """A query of any stratum."""
    case = random_detection_case(rng, rng.choice(STRATA))
    return _family([EqlQuery(case.text, "reader", spelling="next")], case.start, case.tie_breaker, rng)


def keyed_pair(rng: Random) -> Family | None:
    """A query whose events are divided by one key."""
    more = rng.choice(("", ", b.x > 1", ", FILTER(b.x <> 2)", ", a.y < 3", ", (a, b) OCCURS WITHIN 6"))
    pattern, conditions = rng.choice(
        (
            ("A a ; B b", "FILTER(a.k = b.k)"),
            ("A a ; A b ; B c", "FILTER(a.k = b.k), FILTER(b.k = c.k)"),
            ("A a ; (B b | A c)", "FILTER(a.k = b.k OR a.k = c.k)"),
            ("(A a | B d) ; B b", "FILTER(d.k = b.k)"),
            (r"A a ; (B b \ A c)", "FILTER(a.k = b.k), c.k = a.k"),
            (r"(A a ; B b) \ A c", "FILTER(a.k = b.k), c.k = a.k"),
            (r"(A a ; B b) \ (A c @ 3)", "FILTER(a.k = b.k), c.k = b.k"),
            ("(A a ; B b) @ 2", "FILTER(a.k = b.k)"),
        )
    )
    text = f"SELECT * FROM {pattern} WHERE {conditions}{more}"
    return _family([EqlQuery(text, "reader", spelling="next")], None, rng.choice((None, "seq")), rng)


def bounded_pair(rng: Random) -> Family | None:
    """A query whose detections last for a limited time."""
    pattern, first, last = rng.choice(
        (
            ("A a ; B b", "a", "b"),
            ("A a ; B b ; A c", "a", "c"),
            ("A a+ ; B b", "a", "b"),
            ("A a+", "a", "a"),
            (r"A a ; (B b \ A c)", "a", "b"),
            (r"(A a ; B b) \ (B c @ 2)", "a", "b"),
            (r"A a ; (B b \ (A c ; A d))", "a", "b"),
            ("(A a ; B b) @ 3", "a", "b"),
        )
    )
    conditions = [f"({first}, {last}) OCCURS WITHIN {rng.randint(2, 7)}"]
    if "c ; A d" in pattern:
        conditions.append("(c, d) OCCURS WITHIN 4")
    if rng.random() < 0.4 and first != last:
        conditions.append(rng.choice((f"{last}.x > 1", f"FILTER({last}.k = 1)")))
    text = f"SELECT * FROM {pattern} WHERE {', '.join(conditions)}"
    return _family([EqlQuery(text, "reader", spelling="next")], None, rng.choice((None, "seq")), rng)


def feeding_pair(rng: Random) -> Family | None:
    """A query in EQL that reads what another query makes, or makes what another one reads."""
    made = rng.choice(
        (
            "SELECT a.k AS who, b.x AS v FROM A a ; B b WHERE FILTER(a.k = b.k), (a, b) OCCURS WITHIN 9 INTO P",
            "PATTERN A a ; B b WHERE a.k = b.k WITHIN 9 RETURN a.k AS who, b.x AS v, a.y AS y, b.s AS s INTO P",
        )
    )
    reader = rng.choice(
        (
            "SELECT * FROM P p ; A c WHERE FILTER(c.k = p.who), (p, c) OCCURS WITHIN 9",
            "SELECT c.x, p.v FROM A c ; P p WHERE FILTER(p.who = c.k)",
            r"SELECT * FROM A c \ P p WHERE c.k = p.who",
        )
        if made.startswith("PATTERN") or rng.random() < 0.5
        else ("PATTERN P p ; A c WHERE p.who = c.k WITHIN 9", "P p ;{c.k = p.who AND DUR <= 20} B c")
    )
    queries = [read_query(reader, "reader"), read_query(made, "maker")]
    return _family(queries, rng.choice((None, "began")), None, rng)


def _family(queries: list[AnyQuery], start: str | None, tie_breaker: str | None, rng: Random) -> Family | None:
    from kleene.testing.generators.streams import GeneratedStreamCase

    case = GeneratedStreamCase("", random_rows(rng, start, tie_breaker), start, tie_breaker)
    table, schema = table_of(case, case.rows), Schema(start=start, tie_breaker=tie_breaker)
    assert not isinstance(queries[0], StreamQuery) or len(queries) > 1
    expected = table_outputs(table, queries, schema=schema)
    return None if expected.matches.num_rows > _MOST else Family(tuple(queries), schema, table, expected)


KINDS = (drawn_pair, keyed_pair, bounded_pair, feeding_pair)


def pairs(name: str, number: int) -> list[Family]:
    """Random pairs of every kind, most of which give something."""
    drawn: list[Family] = []
    for seed in range(40 * number):
        pair = KINDS[len(drawn) % len(KINDS)](Random(f"{name} {seed}"))
        if pair is not None and (pair.expected.matches.num_rows or seed % 8 == 0):
            drawn.append(pair)
        if len(drawn) == number:
            return drawn
    raise AssertionError(f"only {len(drawn)} pairs of {number}")
