"""Tables of shared matches from flat arrays: rows of their own, events by number, silent nodes, narrow integers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.frames.first_matches import first_ids
from tests.timing import quickest

import kleene
from kleene.errors import BudgetExceeded
from kleene.frames import compressed
from kleene.frames.arrow import schema_on
from kleene.frames.compressed import Events, Graphs, RowFacts, Store, compressed_table
from kleene.kernels.counting import count_paths
from kleene.pattern.query import BoundQuery
from kleene.reference.evaluator import reference_match

# The rows of the table are not in the order of time; `x` says how the events are numbered.
TABLE = pa.table({"type": ["B", "A", "B", "A", "A"], "ts": [9, 1, 5, 2, 3], "x": [4, 0, 3, 1, 2]})
QUERY = "PATTERN A+ a[] ; B b OUTPUT COMPRESSED"
ORDER = np.array([1, 3, 4, 2, 0])


def bound() -> BoundQuery:
    return kleene.Query(QUERY).bind(schema_on(TABLE.schema, kleene.Schema()))


def store() -> Store:
    ts = TABLE.column("ts").to_numpy()[ORDER]
    shared = reference_match(TABLE, QUERY).shared
    assert shared is not None
    return Store(ORDER, ts, ts, shared.store.hashes)


def graphs(kind: Any = np.int64) -> Graphs:
    """Two rows: the lists of A1 A2 A3 before B5, with a silent node, and those of A1 A3 before B9."""
    return Graphs(
        node_offsets=np.array([0, 5, 8], kind),
        variables=np.array([0, 0, -1, 0, 1, 0, 0, 1], kind),
        events=np.array([0, 1, -1, 2, 3, 0, 2, 4], kind),
        link_offsets=np.array([0, 0, 2, 4, 6, 8, 8, 10, 12], kind),
        links=np.array([-1, 0, 0, 1, -1, 2, 2, 3, -1, 5, 5, 6], kind),
        end_offsets=np.array([0, 1, 2], kind),
        ends=np.array([4, 7], kind),
    )


def counts(given: Graphs) -> list[int]:
    return count_paths(given.node_offsets, given.link_offsets, given.links, given.end_offsets, given.ends)


def graph_column(table: pa.Table, given: Graphs, known: Store) -> pa.StructArray:
    """The `graph` column, where nothing else matters."""
    facts = RowFacts(["id"] * len(given), ["1"] * len(given))
    return compressed_table(bound(), Events.of(table), given, known, facts).column("graph").combine_chunks()


@pytest.mark.parametrize("kind", [np.int64, np.int32])
def test_a_table_from_arrays(kind: Any) -> None:
    given = graphs(kind)
    assert counts(given) == [7, 3]
    ids = first_ids(bound(), given, store())
    table = compressed_table(bound(), Events.of(TABLE), given, store(), RowFacts(ids, list(map(str, counts(given)))))
    table.validate(full=True)
    assert table.select(["start", "end", "count", "last"]).to_pylist() == [
        {"start": 1, "end": 5, "count": "7", "last": {"type": "B", "ts": 5, "x": 3}},
        {"start": 1, "end": 9, "count": "3", "last": {"type": "B", "ts": 9, "x": 4}},
    ]
    assert [[event["x"] for event in row["events"]] for row in table.column("graph").to_pylist()] == [
        [0, 1, 2, 3],
        [0, 2, 4],
    ]
    found = list(kleene.decompress(table))
    assert [row["a"][0]["x"] for row in found] == [2, 1, 1, 0, 0, 0, 0, 2, 0, 0]
    assert ids == [found[0]["match_id"], found[7]["match_id"]]
    verbose = {row["match_id"]: row for row in kleene.match(TABLE, "PATTERN A+ a[] ; B b").to_pylist()}
    assert all(row == verbose[row["match_id"]] for row in found)


def test_unsigned_variables_of_graphs_without_silent_nodes() -> None:
    given = graphs()
    low, links = given.node_offsets[1], given.link_offsets[given.node_offsets[1] :]
    second = Graphs(
        node_offsets=np.array([0, 3]),
        variables=given.variables[low:].astype(np.uint8),
        events=given.events[low:],
        link_offsets=links - links[0],
        links=np.where(given.links[links[0] :] < 0, -1, given.links[links[0] :] - low),
        end_offsets=np.array([0, 1]),
        ends=given.ends[1:] - low,
    )
    whole = graph_column(TABLE, given, store())
    assert graph_column(TABLE, second, store()).to_pylist() == [whole[1].as_py()]
    assert first_ids(bound(), second, store()) == first_ids(bound(), given, store())[1:]


def test_more_links_than_arrow_can_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compressed, "_MOST", 11)
    with pytest.raises(BudgetExceeded, match="more than 11 links"):
        graph_column(TABLE, graphs(), store())


def test_many_rows_are_made_at_once() -> None:
    """A thousand graphs of a hundred nodes each take no loop over nodes."""
    rows, size = 1_000, 100
    one = np.tril_indices(size, -1)[1]
    sizes = np.tile(np.arange(size), rows)
    given = Graphs(
        node_offsets=np.arange(0, rows * size + 1, size),
        variables=np.tile(np.repeat([0, 1], [size - 1, 1]), rows),
        events=np.tile(np.arange(size), rows),
        link_offsets=np.concatenate([[0], np.cumsum(sizes)]),
        links=np.tile(one, rows) + np.repeat(np.arange(rows) * size, len(one)),
        end_offsets=np.arange(rows + 1),
        ends=np.arange(1, rows + 1) * size - 1,
    )
    table = pa.table({"type": ["A"] * (size - 1) + ["B"], "ts": np.arange(size), "x": np.zeros(size, np.int64)})
    at = np.arange(size)
    known = replace(store(), rows=at, starts=at, ends=at, hashes=at.astype(np.uint64))
    assert quickest(lambda: graph_column(table, given, known), times=1) < 2
    made = graph_column(table, given, known)
    assert len(made) == rows
    # Without −1 a list can begin with the first event only.
    assert made[999]["predecessors"].as_py() == one.tolist()
    assert set(counts(given)) == {2 ** (size - 2)}
