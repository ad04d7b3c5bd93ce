"""One graph of OUTPUT COMPRESSED: counts its matches, and lists them one at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from typing import Any

from kleene.frames.graph_type import BEGINNING, SILENT

# An event under a variable: the variable's place in the pattern, the event's place in canonical order.
Place = tuple[int, int]


@dataclass(frozen=True)
class Variable:
    name: str
    is_list: bool
    # None when all.
    columns: tuple[str, ...] | None = None


@dataclass(frozen=True, eq=False)
class Graph:
    """What `graph_type` describes, as Python values."""

    digest: str
    variables: Sequence[Variable]
    nodes: Sequence[Place]
    offsets: Sequence[int]
    predecessors: Sequence[int]
    ends: Sequence[int]
    events: Sequence[Mapping[str, Any]]
    starts: Sequence[Any]
    hashes: Sequence[int]
    begins: Sequence[int] = ()

    @staticmethod
    def of(value: Mapping[str, Any]) -> Graph:
        """What a row holds, whatever kind of table it was in: its own nodes, and those of rows that share them."""
        return Graph(
            value["digest"],
            [_variable(variable) for variable in value["variables"]],
            [(int(node["variable"]), int(node["event"])) for node in value["nodes"]],
            integers(value["offsets"]),
            integers(value["predecessors"]),
            integers(value["ends"]),
            list(value["events"]),
            list(value["starts"]),
            integers(value["hashes"]),
            # Results of Kleene 0.1 have none.
            integers(value.get("begins", ())),
        )

    def before(self, node: int) -> Sequence[int]:
        """A node's predecessors, with the beginning where a match can begin."""
        return self.predecessors[self.offsets[node] : self.offsets[node + 1]] or (BEGINNING,)

    @cached_property
    def latest(self) -> Sequence[int]:
        """[node]: the place in `begins` of the latest beginning from which it is reached; 0 where there is none."""
        place = {node: number for number, node in enumerate(self.begins)}
        latest: list[int] = []
        for node in range(len(self.nodes)):
            before = self.before(node)
            latest.append(max(place.get(node, 0) if one == BEGINNING else latest[one] for one in before))
        return latest

    def of_row(self, ends: Sequence[int], skipped: int) -> Graph:
        """The graph of one of the rows that share this one: what leads to its ends from what it does not skip."""
        too_early = set(self.begins[:skipped])
        links: dict[int, list[int]] = {}
        pending = list(ends)
        while pending:
            node = pending.pop()
            if node not in links:
                before = self.before(node)
                if skipped:
                    before = [
                        one
                        for one in before
                        if (node not in too_early if one == BEGINNING else self.latest[one] >= skipped)
                    ]
                links[node] = list(before)
                pending += (one for one in before if one != BEGINNING)
        chosen = sorted(links)
        number = {BEGINNING: BEGINNING, **{node: place for place, node in enumerate(chosen)}}
        lists = [[number[one] for one in links[node]] for node in chosen]
        return replace(
            self,
            nodes=[self.nodes[node] for node in chosen],
            offsets=[0, *accumulate(map(len, lists))],
            predecessors=[one for listed in lists for one in listed],
            ends=[number[end] for end in ends],
            begins=(),
        )


def _variable(value: Mapping[str, Any]) -> Variable:
    columns = value["columns"]
    return Variable(value["name"], bool(value["is_list"]), None if columns is None else tuple(columns))


def integers(values: Iterable[int]) -> list[int]:
    # pandas hands over NumPy arrays.
    return values.tolist() if hasattr(values, "tolist") else list(values)


def count(graph: Graph) -> int:
    """How many matches there are, exactly; a pass over the links."""
    ways: list[int] = []
    for node in range(len(graph.nodes)):
        ways.append(sum(1 if before == BEGINNING else ways[before] for before in graph.before(node)))
    return sum(ways[node] for node in graph.ends)


def paths(graph: Graph) -> Iterator[tuple[Place, ...]]:
    """Every match, built lazily, in the order of verbose output.

    That is: starts from the latest, then events in pattern order canonically, the shorter of two lists first. Between
    two matches lies work for the places of one match; what is kept grows with the graph, not with the matches.
    """
    steps = _Steps.of(graph)
    path: list[Place] = []
    open_ = [iter(steps.first())]
    while open_:
        step = next(open_[-1], None)
        if step is None:
            open_.pop()
            if path:
                path.pop()
            continue
        place, nodes = step
        path.append(place)
        if not steps.ends.isdisjoint(nodes):
            yield tuple(path)
        open_.append(iter(steps.after(nodes)))


# A place, and the nodes that stand for it after the same beginning of a match: one, unless they differ in what follows.
_Step = tuple[Place, tuple[int, ...]]


@dataclass(frozen=True, eq=False)
class _Steps:
    """The graph read forwards."""

    graph: Graph
    ends: frozenset[int]
    # The nodes after each node from which a match can be completed; those after the beginning under BEGINNING.
    followers: Mapping[int, Sequence[int]]
    known: dict[int, list[_Step]] = field(default_factory=dict)

    @staticmethod
    def of(graph: Graph) -> _Steps:
        followers: dict[int, list[int]] = {}
        useful = set(graph.ends)
        for node in range(len(graph.nodes) - 1, -1, -1):
            if node in useful:
                for before in graph.before(node):
                    useful.add(before)
                    followers.setdefault(before, []).append(node)
        return _Steps(graph, frozenset(graph.ends), followers)

    def first(self) -> list[_Step]:
        steps = self._reached((BEGINNING,))
        return sorted(steps, key=lambda step: self.graph.starts[step[0][1]], reverse=True)

    def after(self, nodes: tuple[int, ...]) -> list[_Step]:
        if len(nodes) > 1:
            return self._reached(nodes)
        if nodes[0] not in self.known:
            self.known[nodes[0]] = self._reached(nodes)
        return self.known[nodes[0]]

    def _reached(self, nodes: Iterable[int]) -> list[_Step]:
        """The next places, in order: a match with fewer events for a variable comes before one with more."""
        nodes_at: dict[Place, list[int]] = {}
        seen: set[int] = set()
        pending = list(nodes)
        while pending:
            for node in self.followers.get(pending.pop(), ()):
                if node in seen:
                    continue
                seen.add(node)
                place = self.graph.nodes[node]
                if place[0] == SILENT:
                    pending.append(node)
                else:
                    nodes_at.setdefault(place, []).append(node)
        return [(place, tuple(nodes_at[place])) for place in sorted(nodes_at, key=lambda place: (-place[0], place[1]))]
