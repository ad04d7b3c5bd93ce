"""Match ids: a hash of the query, and of the content of the events under their variables.

Built so that an engine can compute it column by column: each value gives a 64-bit hash, an event folds its columns by
name, a match folds its events in pattern order; two lanes make 128 bits. The same events have the same id in every
executor and in every replay, whatever integer width, string encoding or time unit they were stored in.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from kleene.frames.identity import MASK, bytes_hash, match_id, mix, value_hash
from kleene.pattern.query import BoundQuery
from kleene.reference.matches import Match
from kleene.reference.timeline import ReferenceEvent, ReferenceTimeline


def match_ids(query: BoundQuery, matches: Iterable[Match], hashes: dict[ReferenceEvent, int]) -> list[str]:
    """The ids of matches, 32 hexadecimal digits each."""
    return [match_id(query.digest, _event_groups(match, hashes)) for match in matches]


def _event_groups(match: Match, hashes: dict[ReferenceEvent, int]) -> list[list[int]]:
    """The hashes of a match's events by variable."""
    return [[hashes[event] for event in match.selected.get(component.variable, ())] for component in match.components]


def event_hashes(timeline: ReferenceTimeline) -> dict[ReferenceEvent, int]:
    """A hash of each event's content; identical events are numbered."""
    names = {name: bytes_hash(name.encode()) for name in timeline.columns}
    seen: dict[int, int] = defaultdict(int)
    hashes: dict[ReferenceEvent, int] = {}
    for event in timeline.events:
        if event.identity is not None:
            content = bytes_hash(event.identity.encode())
        else:
            content = 0
            for name, name_hash in names.items():
                if timeline.has_attribute(event, name):
                    content = mix((content ^ name_hash) + value_hash(event.values.get(name)) & MASK)
        hashes[event] = mix((content + seen[content]) & MASK)
        seen[content] += 1
    return hashes
