"""Graphs of shared matches: counted without finding them, found one at a time, in the order of verbose output."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, islice
from random import Random

import pytest
from tests.timing import quickest

from kleene.frames.decompress import matches_of
from kleene.frames.graph import Graph, Place, Variable, count, paths
from kleene.frames.graph_type import BEGINNING, SILENT


def made(
    nodes: Sequence[Place], before: Sequence[Sequence[int]], ends: Sequence[int], starts: Sequence[int] | None = None
) -> Graph:
    """A graph of variables a[], b and c over events at 1, 2, 3, …"""
    variables = [Variable("a", True), Variable("b", False), Variable("c", False)]
    number = 1 + max((event for _, event in nodes), default=-1)
    offsets = [sum(map(len, before[:node])) for node in range(len(nodes) + 1)]
    return Graph(
        "00" * 16,
        variables,
        nodes,
        offsets,
        [link for links in before for link in links],
        ends,
        [{"ts": event + 1} for event in range(number)],
        starts or [event + 1 for event in range(number)],
        [Random(event).getrandbits(64) - 2**63 for event in range(number)],
    )


def subsets(size: int) -> Graph:
    """`A+ a[] ; B b` over so many A and a B: each A after the beginning and after each A before it."""
    nodes = [(0, event) for event in range(size)] + [(1, size)]
    before = [[BEGINNING, *range(event)] for event in range(size)] + [list(range(size))]
    return made(nodes, before, [size])


def chain(size: int) -> Graph:
    """The same with silent nodes: a list of all that came before is the one before it and one more."""
    nodes: list[Place] = [(0, 0)]
    before: list[list[int]] = [[]]
    so_far = 0
    for event in range(1, size):
        nodes += [(0, event), (SILENT, -1)]
        before += [[BEGINNING, so_far], [so_far, len(nodes) - 2]]
        so_far = len(nodes) - 1
    return made([*nodes, (1, size)], [*before, [so_far]], [len(nodes)])


@pytest.mark.parametrize("graph", [subsets(60), chain(60)], ids=["links", "silent"])
def test_sixty_events_have_more_matches_than_can_be_listed(graph: Graph) -> None:
    last = (1, 60)
    assert count(graph) == 2**60 - 1
    assert list(islice(paths(graph), 3)) == [((0, 59), last), ((0, 58), last), ((0, 58), (0, 59), last)]
    assert quickest(lambda: (count(graph), list(islice(paths(graph), 3)))) < 0.05


@pytest.mark.parametrize("size", [201, 300])
def test_counts_have_no_bound(size: int) -> None:
    assert count(subsets(size)) == count(chain(size)) == 2**size - 1


def test_a_long_match_is_no_deep_recursion() -> None:
    nodes = [(0, event) for event in range(5_000)]
    graph = made(nodes, [[] if not event else [event - 1] for event in range(5_000)], [4_999])
    assert count(graph) == 1
    assert list(paths(graph)) == [tuple(nodes)]


def test_silent_nodes_change_nothing() -> None:
    assert list(paths(chain(7))) == list(paths(subsets(7)))


def verbose_order(path: tuple[Place, ...]) -> tuple[int, list[tuple[int, ...]]]:
    """Start from the latest, then lists by variable; an absent variable has the empty list."""
    return -path[0][1], [tuple(event for of, event in path if of == variable) for variable in range(3)]


def test_every_subset_once_and_in_order() -> None:
    expected = [
        (*((0, event) for event in chosen), (1, 6))
        for length in range(1, 7)
        for chosen in combinations(range(6), length)
    ]
    assert list(paths(subsets(6))) == sorted(expected, key=verbose_order)


def test_simultaneous_starts_go_by_their_events() -> None:
    graph = made([(0, 0), (0, 1), (1, 2)], [[], [], [0, 1]], [2], starts=[5, 5, 9])
    assert list(paths(graph)) == [((0, 0), (1, 2)), ((0, 1), (1, 2))]


def test_a_completing_event_can_stand_for_several_variables() -> None:
    # `A+ a[] ; A? b ; A? c` over two events, all that end with the second.
    graph = made([(0, 0), (0, 1), (1, 1), (2, 1)], [[], [BEGINNING, 0], [0], [0]], [1, 2, 3])
    assert list(paths(graph)) == sorted(paths(graph), key=verbose_order)
    assert set(paths(graph)) == {((0, 1),), ((0, 0), (0, 1)), ((0, 0), (1, 1)), ((0, 0), (2, 1))}
    assert count(graph) == 4


def test_equal_places_that_differ_in_what_comes_before() -> None:
    # x after p or q when c follows, after p only when b does: two nodes for x, both after p.
    p, q, x, b, c = (0, 0), (0, 1), (0, 2), (1, 3), (2, 4)
    graph = made([p, q, x, x, b, c], [[], [], [0, 1], [0], [3], [2, 4]], [5])
    found = list(paths(graph))
    assert set(found) == {(p, x, c), (q, x, c), (p, x, b, c)}
    assert found == sorted(found, key=verbose_order)
    assert count(graph) == 3


def test_what_leads_nowhere_is_left_out() -> None:
    graph = made([(0, 0), (0, 1), (0, 2), (1, 3)], [[], [], [1], [0]], [3])
    assert list(paths(graph)) == [((0, 0), (1, 3))]
    assert count(graph) == 1


def test_no_row_shares_its_events_with_another() -> None:
    graph = subsets(2)
    value = {
        "digest": graph.digest,
        "variables": [{"name": one.name, "is_list": one.is_list, "columns": None} for one in graph.variables],
        "nodes": [{"variable": variable, "event": event} for variable, event in graph.nodes],
        **{name: getattr(graph, name) for name in ("offsets", "predecessors", "ends", "events", "starts", "hashes")},
    }
    found = matches_of({"query": "q", "end": 3, "graph": value})
    first = next(found)
    assert first["a"] == [{"ts": 2}]
    first["a"][0]["ts"] = 77
    assert [row["a"] for row in found] == [[{"ts": 1}], [{"ts": 1}, {"ts": 2}]]
