"""Counts and first matches of graphs: the kernels, compiled and not, against the graph read in Python."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from tests.kernels.conftest import Kernels
from tests.timing import quickest

from kleene.frames.graph import Graph, count, paths

Arrays = dict[str, Any]


def random_graph(rng: Random) -> Graph:
    """Events in order under ascending variables; some nodes silent, some starts, some useless."""
    nodes: list[tuple[int, int]] = []
    before: list[list[int]] = []
    variable = 0
    for event in range(rng.randint(1, 9)):
        variable = min(2, variable + rng.choice((0, 0, 1)))
        earlier = list(range(len(nodes)))
        for _ in range(rng.choice((1, 1, 2))):
            nodes.append((variable, event))
            before.append(rng.sample([-1, *earlier], rng.randint(0, len(earlier))))
        if rng.random() < 0.3:
            nodes.append((-1, -1))
            before.append(rng.sample([-1, *earlier], rng.randint(1, 1 + len(earlier))))
    able = [node for node, (variable, _) in enumerate(nodes) if variable >= 0]
    ends = rng.sample(able, rng.randint(1, min(2, len(able))))
    offsets = [sum(map(len, before[:node])) for node in range(len(nodes) + 1)]
    starts = [event // 2 for event in range(9)]
    return Graph("", [], nodes, offsets, [link for links in before for link in links], ends, [], starts, [])


def subsets(size: int) -> Graph:
    nodes = [(0, event) for event in range(size + 1)]
    links = [link for event in range(size + 1) for link in ([-1] if event < size else []) + list(range(event))]
    offsets = [event * (event + 1) // 2 for event in range(size + 1)]
    return Graph("", [], nodes, [*offsets, len(links)], links, [size], [], [], [])


def flat(graphs: list[Graph]) -> Arrays:
    """Many graphs as one, with nodes numbered through."""
    firsts = np.cumsum([0, *(len(graph.nodes) for graph in graphs)])
    links = [
        link if link < 0 else link + first
        for graph, first in zip(graphs, firsts, strict=False)
        for link in graph.predecessors
    ]
    offsets = [0]
    for graph in graphs:
        offsets += [offsets[-1] + offset for offset in graph.offsets[1:]]
    ends = [end + first for graph, first in zip(graphs, firsts, strict=False) for end in graph.ends]
    return {
        "node_offsets": firsts,
        "link_offsets": np.array(offsets),
        "links": np.array(links, np.int64),
        "end_offsets": np.cumsum([0, *(len(graph.ends) for graph in graphs)]),
        "ends": np.array(ends, np.int64),
    }


@pytest.fixture(params=["compiled", "plain"])
def kernels(request: pytest.FixtureRequest) -> Kernels:
    found: Kernels = request.getfixturevalue(request.param)
    return found


def test_counts_are_those_of_the_graph(kernels: Kernels) -> None:
    graphs = [random_graph(Random(seed)) for seed in range(300)]
    counts = kernels.counting.count_paths(**flat(graphs))
    assert counts == [count(graph) for graph in graphs]
    assert max(counts) > 100


@pytest.mark.parametrize("size", [1, 62, 63, 64, 65, 126, 127, 130, 253, 260, 600])
def test_counts_of_any_size(compiled: Kernels, size: int) -> None:
    assert compiled.counting.count_paths(**flat([subsets(size)])) == [2**size - 1]


def test_a_graph_is_counted_with_as_many_limbs_as_it_needs(kernels: Kernels) -> None:
    sizes = [3, 200, 63, 64, 1, 130]
    assert kernels.counting.count_paths(**flat(list(map(subsets, sizes)))) == [2**size - 1 for size in sizes]


def test_a_count_that_only_its_ends_make_too_large(kernels: Kernels) -> None:
    graph = subsets(63)
    twice = Graph("", [], graph.nodes, graph.offsets, graph.predecessors, [63] * 3, [], [], [])
    assert kernels.counting.count_paths(**flat([twice])) == [3 * (2**63 - 1)]


def test_no_graphs(kernels: Kernels) -> None:
    assert kernels.counting.count_paths(**flat([])) == []


def test_counting_is_quick(compiled: Kernels) -> None:
    arrays = flat([subsets(1_000)])
    assert compiled.counting.count_paths(**arrays) == [2**1_000 - 1]
    assert quickest(lambda: compiled.counting.count_paths(**arrays), times=2) < 0.5


def test_first_matches_are_those_of_the_graph(kernels: Kernels) -> None:
    graphs = [graph for seed in range(300) if next(paths(graph := random_graph(Random(seed))), None)]
    assert len(graphs) > 250
    arrays = flat(graphs)
    variables = np.array([variable for graph in graphs for variable, _ in graph.nodes])
    events = np.array([event for graph in graphs for _, event in graph.nodes])
    offsets, nodes = kernels.first_paths.first_paths(
        arrays["node_offsets"],
        variables,
        events,
        arrays["link_offsets"],
        arrays["links"],
        arrays["end_offsets"],
        arrays["ends"],
        np.array(graphs[0].starts),
    )
    for graph, low, high in zip(graphs, offsets, offsets[1:], strict=False):
        chosen = nodes[low:high]
        assert tuple(zip(variables[chosen], events[chosen], strict=True)) == next(paths(graph))
