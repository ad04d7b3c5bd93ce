"""The names of many queries: their bytes one after the other, and a table that finds a query by its name."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kleene.kernels.expression import Bytes, Ints
from kleene.kernels.identity import mix
from kleene.kernels.jit import borrowed, compiled, inlined

Numbers = NDArray[np.int32]

# What a place in the table holds besides the number of a query: nothing yet, or one that is gone.
EMPTY, GONE = -1, -2


class NameTable(NamedTuple):
    text: Bytes  #    [byte]: names in UTF-8
    begins: Ints  #   [query + 1]: where the name of each query begins
    places: Numbers  # [bucket]: queries by the hash of their names, by open addressing; a power of two of them


@inlined
def _hash(text: Bytes, begin: int, end: int) -> np.uint64:
    value = np.uint64(end - begin)
    for place in range(begin, end):
        value = (value ^ np.uint64(text[place])) * np.uint64(0x100000001B3)
    return mix(value)


@inlined
def _place(names: NameTable, text: Bytes, begin: int, end: int) -> int:
    """Where a name stands in the table, or the empty place where its search ends."""
    mask = names.places.size - 1
    place = np.int64(_hash(text, begin, end) & np.uint64(mask))
    while names.places[place] != EMPTY:
        query = names.places[place]
        if query >= 0 and _same(names, query, text, begin, end):
            return int(place)
        place = (place + 1) & mask
    return int(place)


@inlined
def _same(names: NameTable, query: int, text: Bytes, begin: int, end: int) -> bool:
    first = names.begins[query]
    if names.begins[query + 1] - first != end - begin:
        return False
    same = True
    for place in range(end - begin):
        same &= names.text[first + place] == text[begin + place]
    return bool(same)


@compiled
def find_name(names: NameTable, text: Bytes) -> int:
    """The query of a name; EMPTY when there is none."""
    return int(names.places[_place(names, text, 0, text.size)])


@compiled
def add_names(names: NameTable, first: int, count: int, known: Ints) -> None:
    """Enter the names of queries, which are among the bytes already; `known` [query] gets who has a name already.

    Nothing is entered for those.
    """
    names = borrowed(names)
    for query in range(first, first + count):
        place = _place(names, names.text, names.begins[query], names.begins[query + 1])
        known[query - first] = names.places[place]
        if names.places[place] == EMPTY:
            names.places[place] = query


@compiled
def enter_again(names: NameTable, templates: Numbers, size: int) -> None:
    """Enter the names of all queries that are there into a table that is new and empty; −1 is no template."""
    names = borrowed(names)
    for query in range(size):
        if templates[query] >= 0:
            names.places[_place(names, names.text, names.begins[query], names.begins[query + 1])] = query


@compiled
def remove_name(names: NameTable, query: int) -> None:
    names.places[_place(names, names.text, names.begins[query], names.begins[query + 1])] = GONE
