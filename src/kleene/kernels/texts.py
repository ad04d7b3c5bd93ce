"""Strings as small numbers: a table of hashes over the bytes of those met so far."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kleene.kernels.expression import Bytes, Ints
from kleene.kernels.identity import Hashes, mix
from kleene.kernels.jit import borrowed, compiled, inlined, step
from kleene.kernels.opcodes import VALUE

# Bytes are compared and hashed eight at a time.
_WORD, _ONE = np.uint64(8), np.uint64(1)


class TextColumn(NamedTuple):
    """Strings as Arrow holds them; read-only."""

    data: Bytes
    offsets: npt.NDArray[np.int32]  # [row]: where its bytes begin; they end where the next row's begin


class KnownTexts(NamedTuple):
    """The strings met so far, with room for more."""

    data: Bytes  #    the bytes of all, one string after the other
    offsets: Ints  #  [code]: where its bytes begin; one more, where the last one's end
    hashes: Hashes  # [code]
    table: npt.NDArray[np.int32]  # [hash]: codes by open addressing, −1 where there is none
    number: Ints  #   [1]: how many strings are known


@compiled
def intern_texts(
    begin: int,
    column: TextColumn,
    states: Bytes,  # [row]: whether there is a string
    seed: np.uint64,  # of the hashes, so that nobody can choose strings that collide
    known: KnownTexts,
    codes: Ints,  # [row]: out; 0 where there is no string
) -> int:
    """The code of each string; the first row for which there was no room."""
    column, known = borrowed(column), borrowed(known)
    data, mask = column.data, np.uint64(known.table.size - 1)
    for row in range(begin, codes.size):
        if states[row] != VALUE:
            codes[row] = 0
            continue
        first, last = np.uint64(column.offsets[row]), np.uint64(column.offsets[row + 1])
        hashed = _hash(data, first, last, seed)
        slot = hashed & mask
        code = known.table[slot]
        while code >= 0 and not _is_text(code, hashed, data, first, last, known):
            slot = (slot + _ONE) & mask
            code = known.table[slot]
        if code < 0:
            code = _add_text(hashed, slot, data, first, last, known)
            if code < 0:
                return row
        codes[row] = code
    return int(codes.size)


@inlined
def _word(data: Bytes, at: np.uint64) -> np.uint64:
    """Eight bytes as a number; the compiler makes one load of them."""
    word = np.uint64(data[at])
    word |= np.uint64(data[at + np.uint64(1)]) << np.uint64(8)
    word |= np.uint64(data[at + np.uint64(2)]) << np.uint64(16)
    word |= np.uint64(data[at + np.uint64(3)]) << np.uint64(24)
    word |= np.uint64(data[at + np.uint64(4)]) << np.uint64(32)
    word |= np.uint64(data[at + np.uint64(5)]) << np.uint64(40)
    word |= np.uint64(data[at + np.uint64(6)]) << np.uint64(48)
    word |= np.uint64(data[at + np.uint64(7)]) << np.uint64(56)
    return word


@step
def _hash(data: Bytes, first: np.uint64, last: np.uint64, seed: np.uint64) -> np.uint64:
    """The hash of a string; short ones of one length never share it, since nothing of them is lost."""
    size = last - first
    if size < _WORD:
        word = np.uint64(0)
        if first + _WORD <= np.uint64(data.size):
            # What follows the string is cut off: nothing to decide for each length.
            word = _word(data, first) & ((_ONE << (size << np.uint64(3))) - _ONE)
        else:
            for place in range(size):
                word |= np.uint64(data[first + np.uint64(place)]) << np.uint64(8 * place)
        hashed = mix(seed ^ word ^ (size << np.uint64(56)))
    else:
        hashed = seed ^ size
        at = first
        while at + _WORD <= last:
            hashed = mix(hashed ^ _word(data, at))
            at += _WORD
        # The last eight bytes, of which some are counted twice.
        hashed = mix(hashed ^ _word(data, last - _WORD))
    return hashed


@step
def _is_text(code: Any, hashed: np.uint64, data: Bytes, first: np.uint64, last: np.uint64, known: KnownTexts) -> bool:
    """Whether a known string has these bytes."""
    size = last - first
    begin = np.uint64(known.offsets[code])
    same = known.hashes[code] == hashed and np.uint64(known.offsets[code + 1]) - begin == size
    if same and size >= _WORD:
        place = np.uint64(0)
        while place + _WORD <= size and _word(known.data, begin + place) == _word(data, first + place):
            place += _WORD
        same = place + _WORD > size and _word(known.data, begin + size - _WORD) == _word(data, last - _WORD)
    return bool(same)


@step
def _add_text(
    hashed: np.uint64, slot: np.uint64, data: Bytes, first: np.uint64, last: np.uint64, known: KnownTexts
) -> int:
    """Put a string into the table; its code, or −1 where there is no room."""
    code = known.number[0]
    begin = np.uint64(known.offsets[code])
    if code >= known.hashes.size or 2 * code >= known.table.size or begin + last - first > np.uint64(known.data.size):
        return -1
    for place in range(last - first):
        known.data[begin + np.uint64(place)] = data[first + np.uint64(place)]
    known.offsets[code + 1] = begin + last - first
    known.hashes[code] = hashed
    known.table[slot] = code
    known.number[0] += 1
    return int(code)


@compiled
def put_hashes(hashes: Hashes, number: int, table: npt.NDArray[np.int32]) -> None:
    """Fill an empty table with the codes of known strings."""
    mask = np.uint64(table.size - 1)
    for code in range(number):
        slot = hashes[code] & mask
        while table[slot] >= 0:
            slot = (slot + _ONE) & mask
        table[slot] = code
