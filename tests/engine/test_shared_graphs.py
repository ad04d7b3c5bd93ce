"""Rows of OUTPUT COMPRESSED that share their nodes: whole, in pieces and restored they are the reference's matches."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from tests.engine.agreement import Pair, at_once, case_of, check, eager_rebuilding, pair_of
from tests.soaking import least, rounds

import kleene
from kleene.engine.engine import Engine
from kleene.engine.output import graphs
from kleene.frames.arrow import schema_on
from kleene.frames.compressed import some_rows
from kleene.pattern import Query, Schema
from kleene.plan.settings import Settings

# Lines, of which COMPRESSED takes every output mode; those with ties and durations have several first matches.
LINES = (
    *("kleene_any", "skip_till_next_match", "partition_contiguity", "strict_contiguity", "negation", "optional"),
    *("ties", "tie_breaker", "durations", "durations_counted", "count_window", "agreeing", "nulls_missing"),
)
# Nodes and links that a block may have: none, so that every row stands alone; few; and as many as there are.
MOST = (0, 40, 200, 1 << 18)
CASES = rounds(1_300, share=52)


def cases() -> Iterator[tuple[Pair, random.Random]]:
    for number in range(CASES):
        draw = random.Random(f"shared graphs {number}")
        case = case_of(draw, LINES[number % len(LINES)])
        bare = case.query_text.replace("OUTPUT NON_OVERLAP", "").replace("OUTPUT COMPRESSED", "").rstrip()
        pair = pair_of(replace(case, query_text=f"{bare} OUTPUT COMPRESSED"))
        if pair is not None:
            yield pair, draw


@pytest.mark.slow
def test_shared_graphs_are_the_matches_of_the_reference(record_property: Callable[[str, object], None]) -> None:
    pairs = sharing = 0
    for pair, draw in cases():
        with mock.patch.object(graphs, "_MOST", draw.choice(MOST)), eager_rebuilding():
            if not check(pair, Settings(), draw):
                continue
            pairs += 1
            sharing += any("'nodes': []" in row for row in raw_rows(pair, draw))
    record_property("counted", f"rows that share nodes = reference: {pairs} pairs, {sharing} with rows that share")
    assert pairs >= least(1_000, share=52)
    assert sharing >= least(150, share=52)


def raw_rows(pair: Pair, draw: random.Random) -> list[str]:
    """The rows as they are, whose graphs `content` would unfold."""
    with mock.patch(
        "tests.engine.agreement.content", lambda table: list(map(repr, table.to_pylist())) if table else []
    ):
        return at_once(pair, Settings(), draw).matches


def compressed(text: str, table: pa.Table, pieces: int = 1) -> pa.Table:
    """A result of the engine, the last piece with `finish`."""
    engine = Engine(Query(text).bind(schema_on(table.schema, Schema())))
    size = -(-table.num_rows // pieces)
    made = [engine.process(table.slice(at, size), at + size).matches for at in range(0, table.num_rows, size)]
    return pa.concat_tables([*made, engine.finish().matches])


RISES = "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match { a[i].x > a[i-1].x } WITHIN 40"


def rises(number: int) -> pa.Table:
    draw = random.Random(11)
    kinds = [draw.choice("AAAB") for _ in range(number)]
    return pa.table({"type": kinds, "ts": range(number), "x": [draw.randrange(30) for _ in range(number)]})


@pytest.mark.parametrize("most", MOST)
@pytest.mark.parametrize("pieces", [1, 7])
def test_blocks_end_and_windows_leave_beginnings_behind(most: int, pieces: int) -> None:
    table = rises(600)
    with mock.patch.object(graphs, "_MOST", most):
        shared = compressed(f"{RISES} OUTPUT COMPRESSED", table, pieces)
    verbose = kleene.match(table, RISES).to_pylist()
    assert list(kleene.decompress(shared)) == verbose
    assert sum(int(count) for count in shared.column("count").to_pylist()) == len(verbose)
    held = [graph["shared"] for graph in shared.column("graph").to_pylist() if graph["nodes"]]
    assert len(held) == len(set(held) - {None}) + held.count(None), "each block has one host"
    assert (len(held) < shared.num_rows) == (most > 0)
    if most > 40:
        assert any(graph["skipped"] for graph in shared.column("graph").to_pylist())


def test_a_row_that_shares_nothing_stands_alone() -> None:
    rows = [{"type": kind, "ts": at} for at, kind in enumerate("ABXXAB")]
    shared = kleene.match(rows, "PATTERN SEQ(A a, B b) WITHIN 2 OUTPUT COMPRESSED")
    assert [row["graph"]["shared"] for row in shared] == [None, None]
    assert [match["a"]["ts"] for row in shared for match in kleene.decompress([row])] == [0, 4]


def test_rows_of_one_table_share_less_than_they_would_hold_alone() -> None:
    """A window of 40 events is held once, not by each of the rows that it leads to."""
    table = rises(2_000)
    text = f"{RISES} OUTPUT COMPRESSED"
    together = compressed(text, table)
    with mock.patch.object(graphs, "_MOST", 0):
        alone = compressed(text, table)
    assert together.drop_columns(["graph"]).equals(alone.drop_columns(["graph"]))
    assert 2 * together.nbytes < alone.nbytes
    assert together.nbytes < kleene.match(table, RISES).nbytes


def test_some_rows_take_over_what_rows_that_are_left_out_held() -> None:
    """A slice on Spark keeps the rows that end in it, also where their host ends in the one before."""
    shared = compressed(f"{RISES} OUTPUT COMPRESSED", rises(300))
    draw = random.Random(5)
    for least_row in range(0, shared.num_rows, 7):
        keep = np.array([row >= least_row and draw.random() < 0.8 for row in range(shared.num_rows)])
        kept = some_rows(shared, keep)
        kept.validate(full=True)
        whole = kleene.decompress(shared.filter(pa.array(keep.tolist())), within=shared)
        assert list(kleene.decompress(kept)) == list(whole)
