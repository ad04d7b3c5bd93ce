"""Match ids: a hash of the query, and of the content of the events under their variables.

Built so that an engine can compute it column by column: each value gives a 64-bit hash, an event folds its columns by
name, a match folds its events in pattern order; two lanes make 128 bits. The same events have the same id in every
executor and in every replay, whatever integer width, string encoding or time unit they were stored in.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterable
from decimal import Decimal
from hashlib import blake2b
from typing import Any

from kleene.pattern.query import BoundQuery
from kleene.testing.matches import Match
from kleene.testing.timeline import Event, Timeline

_MASK = 2**64 - 1
_LANES = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)
_NULL, _INT, _FLOAT, _BOOL = 0x1000, 0x2000, 0x3000, 0x4000


def match_ids(query: BoundQuery, matches: Iterable[Match], timeline: Timeline) -> list[str]:
    """The ids of matches, 32 hexadecimal digits each."""
    events = _event_hashes(query, timeline)
    seeds = [_bytes_hash(query.digest) ^ lane for lane in _LANES]
    return ["".join(f"{_match_hash(match, events, seed):016x}" for seed in seeds) for match in matches]


def mix(value: int) -> int:
    """The finaliser of splitmix64."""
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


def value_hash(value: Any) -> int:
    """Equal values hash alike: 5, 5.0 and a decimal 5 are the same number."""
    if value is None:
        return mix(_NULL)
    if isinstance(value, bool):
        return mix(_BOOL + value)
    if isinstance(value, float | Decimal) and _is_integer(value):
        value = int(value)
    if isinstance(value, int):
        return mix((value & _MASK) ^ _INT)
    if isinstance(value, float):
        bits = struct.unpack("<Q", struct.pack("<d", value if value == value else float("nan")))[0]
        return mix(bits ^ _FLOAT)
    if isinstance(value, str):
        return _bytes_hash(value.encode())
    return _bytes_hash(value if isinstance(value, bytes) else repr(value).encode())


def _is_integer(value: Any) -> bool:
    return bool(value == value and abs(value) < 2**63 and value == int(value))


def _bytes_hash(data: bytes) -> int:
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little")


def _event_hashes(query: BoundQuery, timeline: Timeline) -> dict[Event, int]:
    """A hash of each event's content; identical events are numbered."""
    names = {name: _bytes_hash(name.encode()) for name in timeline.columns}
    seen: dict[int, int] = defaultdict(int)
    hashes: dict[Event, int] = {}
    for event in timeline.events:
        if event.identity is not None:
            content = _bytes_hash(event.identity.encode())
        else:
            content = 0
            for name, name_hash in names.items():
                if timeline.has_attribute(event, name):
                    content = mix((content ^ name_hash) + value_hash(event.values.get(name)) & _MASK)
        hashes[event] = mix((content + seen[content]) & _MASK)
        seen[content] += 1
    return hashes


def _match_hash(match: Match, events: dict[Event, int], seed: int) -> int:
    result = seed
    for place, component in enumerate(match.components):
        result = mix((result + place + 1) & _MASK)
        for event in match.selected.get(component.variable, ()):
            result = mix(result ^ events[event])
    return result
