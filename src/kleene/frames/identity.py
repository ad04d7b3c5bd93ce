"""The hashes that match ids are made of: 64 bits a value, the same whatever a value was stored as.

5, 5.0 and a decimal 5 hash alike, and times hash as nanoseconds, so that neither integer width, string encoding nor
time unit changes an id.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from decimal import Decimal
from hashlib import blake2b
from typing import Any

MASK = 2**64 - 1
LANES = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)
NULL, INT, FLOAT, BOOL = 0x1000, 0x2000, 0x3000, 0x4000


def mix(value: int) -> int:
    """The finaliser of splitmix64."""
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
    return value ^ (value >> 31)


def value_hash(value: Any) -> int:
    """Equal values hash alike: 5, 5.0 and a decimal 5 are the same number."""
    if value is None:
        return mix(NULL)
    if isinstance(value, bool):
        return mix(BOOL + value)
    if isinstance(value, Decimal) and Decimal(float(value)) == value:
        value = float(value)
    if isinstance(value, float | Decimal) and _is_integer(value):
        value = int(value)
    if isinstance(value, int):
        return mix((value & MASK) ^ INT)
    if isinstance(value, float):
        bits = struct.unpack("<Q", struct.pack("<d", value if value == value else float("nan")))[0]
        return mix(bits ^ FLOAT)
    if isinstance(value, str):
        return bytes_hash(value.encode())
    if isinstance(value, Decimal):
        value = value.normalize()
    return bytes_hash(value if isinstance(value, bytes) else repr(value).encode())


def _is_integer(value: Any) -> bool:
    return bool(value == value and abs(value) < 2**63 and value == int(value))


def bytes_hash(data: bytes) -> int:
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little")


def match_id(digest: bytes, groups: Iterable[Iterable[int]]) -> str:
    """The id of a match, 32 hexadecimal digits: its query's digest, and its events' hashes by variable."""
    listed = [list(group) for group in groups]
    seed = bytes_hash(digest)
    return "".join(f"{_match_hash(seed ^ lane, listed):016x}" for lane in LANES)


def _match_hash(seed: int, groups: Iterable[Iterable[int]]) -> int:
    result = seed
    for place, group in enumerate(groups, 1):
        result = mix((result + place) & MASK)
        for event in group:
            # A hash may come as a signed integer.
            result = mix(result ^ (event & MASK))
    return result
