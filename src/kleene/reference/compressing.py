"""OUTPUT COMPRESSED on the reference evaluator: finds all matches first, then shares their equal beginnings.

A node is an event under a variable together with all that can come before it, so two nodes are one when exactly the
same beginnings lead to them; every match is one path then.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from kleene.frames.compressed import Graphs, Store
from kleene.frames.graph_type import BEGINNING
from kleene.reference.matches import Match
from kleene.reference.timeline import ReferenceEvent, ReferenceTimeline

# The events of a match in pattern order, each with its variable's place among the positive ones.
Sequence_ = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Compressed:
    """One row a completing event, in canonical order."""

    # The completing event, and the places of its matches in canonical order.
    groups: list[tuple[ReferenceEvent, list[int]]]
    graphs: Graphs
    store: Store


def compress(matches: Sequence[Match], timeline: ReferenceTimeline, hashes: dict[ReferenceEvent, int]) -> Compressed:
    """The matches, given in canonical order, as one graph for each completing event (SASE+ §4.2)."""
    places_by_event: dict[ReferenceEvent, list[int]] = {}
    for place, match in enumerate(matches):
        places_by_event.setdefault(match.last(timeline), []).append(place)
    groups = sorted(places_by_event.items(), key=lambda group: timeline.rank[group[0]])
    draft = _GraphDraft()
    for _, places in groups:
        draft.add({_sequence(matches[place], timeline) for place in places})
    return Compressed(groups, draft.graphs(), _store(timeline, hashes))


def _sequence(match: Match, timeline: ReferenceTimeline) -> Sequence_:
    return tuple(
        (place, timeline.rank[event])
        for place, component in enumerate(match.components)
        for event in match.selected.get(component.variable, ())
    )


def _store(timeline: ReferenceTimeline, hashes: dict[ReferenceEvent, int]) -> Store:
    events = timeline.events
    return Store(
        np.array([event.index for event in events], np.int64),
        np.array([event.start for event in events], np.int64),
        np.array([event.end for event in events], np.int64),
        np.array([hashes[event] for event in events], np.uint64),
    )


@dataclass
class _GraphDraft:
    """Graphs while they grow; a node is numbered after its predecessors."""

    nodes: list[tuple[int, int]] = field(default_factory=list)
    links: list[list[int]] = field(default_factory=list)
    ends: list[list[int]] = field(default_factory=list)
    firsts: list[int] = field(default_factory=list)
    # The nodes of the present graph, by what they stand for and what can come before them.
    known: dict[tuple[tuple[int, int], frozenset[Sequence_]], int] = field(default_factory=dict)

    def add(self, matches: Iterable[Sequence_]) -> None:
        self.firsts.append(len(self.nodes))
        self.known.clear()
        self.ends.append(self._nodes(matches))

    def _nodes(self, sequences: Iterable[Sequence_]) -> list[int]:
        """The nodes at which these sequences end; the empty one is the beginning."""
        before: dict[tuple[int, int], set[Sequence_]] = {}
        nodes = []
        for sequence in sequences:
            if sequence:
                before.setdefault(sequence[-1], set()).add(sequence[:-1])
            else:
                nodes.append(BEGINNING)
        return nodes + [self._node(last, frozenset(before[last])) for last in sorted(before)]

    def _node(self, place: tuple[int, int], before: frozenset[Sequence_]) -> int:
        if (place, before) not in self.known:
            links = self._nodes(before)
            self.known[place, before] = len(self.nodes)
            self.nodes.append(place)
            self.links.append([] if links == [BEGINNING] else links)
        return self.known[place, before]

    def graphs(self) -> Graphs:
        return Graphs(
            node_offsets=np.array([*self.firsts, len(self.nodes)], np.int64),
            variables=np.array([variable for variable, _ in self.nodes], np.int64),
            events=np.array([event for _, event in self.nodes], np.int64),
            link_offsets=_offsets(self.links),
            links=np.array([link for links in self.links for link in links], np.int64),
            end_offsets=_offsets(self.ends),
            ends=np.array([end for ends in self.ends for end in ends], np.int64),
        )


def _offsets(lists: Sequence[Sequence[int]]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.cumsum([0, *map(len, lists)], dtype=np.int64)
