"""OUTPUT COMPRESSED and OUTPUT ALL are the same matches: the same ids and contents, in the same order for each row."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from tests.frames.first_matches import first_ids
from tests.soaking import few_of, least, rounds

import kleene
from kleene import Query, Schema
from kleene.errors import OutputNotAvailable
from kleene.frames.graph import Graph, count
from kleene.frames.kinds import to_arrow
from kleene.kernels.counting import count_paths
from kleene.reference.evaluator import reference_match
from kleene.reference.tables import match_table
from kleene.testing.generators import STRATA, GeneratedCase, random_case, schema_of
from kleene.testing.reference_outputs import table_outputs

CASES_A_STRATUM = rounds(240)
# Strata of lines; the others are refused, or mix lines in.
NO_LINES = ("conjunction", "disjunction", "nested", "closure", "closures", "negated_groups")
LINES = [name for name in STRATA if name not in NO_LINES]

pairs: list[int] = []


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    log = logging.getLogger("kleene")
    before = log.level
    log.setLevel(logging.ERROR)
    yield
    log.setLevel(before)


def texts_of(case: GeneratedCase) -> tuple[str, str]:
    """The query with OUTPUT ALL, and with OUTPUT COMPRESSED."""
    bare = case.query_text.replace("OUTPUT NON_OVERLAP", "").replace("OUTPUT COMPRESSED", "").rstrip()
    return f"{bare} OUTPUT ALL", f"{bare} OUTPUT COMPRESSED"


def table_of(case: GeneratedCase, text: str) -> Any:
    schema = Schema(**schema_of(case))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return table_outputs(case.events, [Query(text, params=case.params)], schema=schema).matches


def explained(case: GeneratedCase) -> str:
    return "\n".join([case.query_text, str(schema_of(case)), *(f"  {row}" for row in case.events)])


@pytest.mark.parametrize("stratum", few_of(LINES, 4))
def test_decompressed_rows_are_verbose_rows(stratum: str) -> None:
    done, matched = 0, 0
    for number in range(CASES_A_STRATUM):
        case = random_case(Random(f"compressed {stratum} {number}"), stratum)
        all_, compressed = texts_of(case)
        try:
            shared = table_of(case, compressed)
        except OutputNotAvailable:
            continue
        verbose = table_of(case, all_).to_pylist()
        known = {row["match_id"]: row for row in verbose}
        assert len(known) == len(verbose)
        seen: list[str] = []
        for row in shared.to_pylist():
            found = list(kleene.decompress([row]))
            ids = [match["match_id"] for match in found]
            seen += ids
            assert found == [match for match in verbose if match["match_id"] in set(ids)], explained(case)
            assert [list(match) for match in found] == [list(known[name]) for name in ids], "columns in the same order"
            assert row["count"] == str(len(found)) == str(count(Graph.of(row["graph"])))
            assert row["match_id"] == ids[0]
            assert (row["query"], row["end"]) == (found[0]["query"], found[0]["end"])
            assert row["start"] == min(match["start"] for match in found)
            assert row.get("key") == found[0].get("key")
        assert sorted(seen) == sorted(known), explained(case)
        done += 1
        matched += bool(verbose)
    pairs.append(done)
    assert matched >= CASES_A_STRATUM // 6


@pytest.mark.parametrize("stratum", ["compressed", "optional", "ties"])
def test_kernels_say_the_same_of_counts_and_first_matches(stratum: str) -> None:
    for number in range(CASES_A_STRATUM):
        case = random_case(Random(f"kernels {stratum} {number}"), stratum)
        query = Query(texts_of(case)[1], params=case.params)
        try:
            result = reference_match(case.events, query, schema=Schema(**schema_of(case)))
        except OutputNotAvailable:
            continue
        assert result.shared is not None
        graphs, store = result.shared.graphs, result.shared.store
        counts = count_paths(graphs.node_offsets, graphs.link_offsets, graphs.links, graphs.end_offsets, graphs.ends)
        assert counts == [number for _, number in result.compressed]
        assert first_ids(result.query, graphs, store) == [result.ids[places[0]] for _, places in result.shared.groups]


def test_the_pairs_are_many() -> None:
    """Runs after the pairs and counts them."""
    if len(pairs) == len(LINES):
        assert sum(pairs) >= least(1_800)


def test_equal_beginnings_are_shared() -> None:
    rows = [{"type": "A", "ts": ts} for ts in range(8)] + [{"type": "B", "ts": 9}]
    result = reference_match(rows, "PATTERN A+ a[] ; B b OUTPUT COMPRESSED")
    assert result.compressed == [(8, 255)]
    assert result.shared is not None
    assert len(result.shared.graphs.events) == 9, "one node an event"
    graph = match_table(result, to_arrow(rows)).column("graph")[0].as_py()
    assert len(graph["events"]) == 9


def test_a_tie_breaker_decides_which_event_completes() -> None:
    rows = [{"type": kind, "ts": 1, "seq": seq} for seq, kind in enumerate("AB")]
    found = kleene.match(rows, "PATTERN A a ; B b OUTPUT COMPRESSED", schema=Schema(tie_breaker="seq"))
    assert [row["last"] for row in found] == [rows[1]]
