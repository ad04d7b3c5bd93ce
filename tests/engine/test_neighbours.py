"""A query's answer does not depend on its neighbours: streams that it does not name are no part of its input."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterator

import pytest
from tests.engine.neighbours import neighbours
from tests.soaking import least, rounds

import kleene
from kleene.pattern import Query
from kleene.testing.reference_outputs import table_outputs

Record = Callable[[str, object], None]
STREAMS = {"T": [{"ts": 1, "k": 1}, {"ts": 3, "k": 1}], "F": [{"ts": 2, "z": "a"}, {"ts": 9, "z": "b"}]}
TWICE = "PATTERN T^2 t[] WHERE strict_contiguity { [k] } WITHIN 10"


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Thousands of queries warn of themselves."""
    log = logging.getLogger("kleene")
    log.setLevel(logging.ERROR)
    yield
    log.setLevel(logging.NOTSET)


def _compare(seeds: range, *, with_reference: int) -> tuple[int, int]:
    """How many lists were compared, and how many of them have matches that a neighbour could have changed."""
    compared = changeable = 0
    for seed in seeds:
        made = neighbours(random.Random(f"neighbours {seed}"))
        if made is None:
            continue
        compared += 1
        made.check(made.run(*made.queries))
        if seed % with_reference == 0:
            made.check(table_outputs(made.streams, made.queries, schema=made.schema, several=True))
        changeable += made.could_change
    return compared, changeable


@pytest.mark.soak
def test_queries_in_lists_answer_as_they_do_alone(record_property: Record) -> None:
    compared, changeable = _compare(range(rounds(4400)), with_reference=7)
    said = f"{compared} lists, {changeable} of them with matches that a neighbour could have changed"
    record_property("counted", f"lists of queries over several streams, each as alone: {said}")
    assert compared >= least(2000)
    assert changeable > compared / 2


@pytest.mark.slow
def test_queries_in_lists_answer_as_they_do_alone_at_a_glance() -> None:
    compared, changeable = _compare(range(10_000, 10_060), with_reference=2)
    assert compared >= 20
    assert changeable > compared / 2


def test_events_of_a_neighbours_stream_break_no_contiguity() -> None:
    alone = kleene.match(STREAMS, TWICE)
    beside = kleene.match(STREAMS, [TWICE, "PATTERN F f"])
    assert [(row["start"], row["end"]) for row in alone] == [(1, 3)]
    assert [row["match_id"] for row in beside if row["end"] == 3] == [alone[0]["match_id"]]


def test_a_query_that_reads_what_others_make_is_given_only_the_streams_that_it_names() -> None:
    """F9 stands between the two S: a neighbour reads it, and so does not the query of the pairs."""
    makers = ["PATTERN T t RETURN t.k AS k INTO S", "PATTERN F f"]
    pairs = kleene.query("PATTERN S a ; S b WHERE strict_contiguity { }", name="pairs")
    found = kleene.match(STREAMS, [*makers, pairs])
    assert [(row["start"], row["end"]) for row in found if row["query"] == "pairs"] == [(1, 3)]


def test_what_queries_of_a_list_return_is_a_field_each() -> None:
    z = kleene.query("PATTERN F f RETURN f.z AS what", name="letters")
    gap = kleene.query("PATTERN T t ; T u RETURN u.ts - t.ts AS what, t", name="gaps")
    found = kleene.match(STREAMS, [z, kleene.query(TWICE, name="plain"), gap])
    assert [(row["query"], row["returned"]) for row in found] == [
        ("letters", {"letters": {"what": "a"}, "gaps": None}),
        ("letters", {"letters": {"what": "b"}, "gaps": None}),
        ("plain", None),
        ("gaps", {"letters": None, "gaps": {"what": 2, "t": {"ts": 1, "k": 1, "type": "T"}}}),
    ]
    assert "returned" not in kleene.match(STREAMS, [TWICE, "PATTERN F f"])[0]


def test_two_queries_of_one_name_return_the_same_columns() -> None:
    one = Query("PATTERN F f RETURN f.z AS z", name="same")
    with pytest.raises(kleene.errors.UnknownKind, match="two queries are called `same`"):
        kleene.match(STREAMS, [one, Query("PATTERN T t RETURN t.k AS k", name="same")])
    assert len(kleene.match(STREAMS, [one, one])) == 4


def test_declared_types_of_streams_that_a_query_does_not_name_need_no_columns() -> None:
    schema = kleene.Schema(types={"T": {"k": "int"}, "F": {"z": "string"}})
    assert len(kleene.match(STREAMS, "PATTERN T t", schema=schema)) == 2
    assert len(kleene.match(STREAMS, ["PATTERN T t", "PATTERN F f"], schema=schema)) == 4
