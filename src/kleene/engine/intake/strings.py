"""Strings as numbers: one pool for all columns and all constants, so that equal strings have equal codes.

The pool grows with the data; a code never changes. Tests of strings other than equality are kept by code.
"""

from __future__ import annotations

from sys import getsizeof

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kleene.frames.numbers import to_numpy
from kleene.kernels.expression import Bytes, Ints, Texts
from kleene.kernels.opcodes import NULL, VALUE
from kleene.plan.program import StringConstant, StringTest

# About what a string takes besides itself: in the list, in the table of codes, and for its code.
_PLACE_BYTES = 120


class StringPool:
    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        # All strings; a code is a place in it.
        self._texts: list[str] = []
        # The bytes of all strings, and of their entries in list and table.
        self._text_bytes = 0
        self._ordered = False
        # Codes in the order of their strings, as of the last call of `arrays`.
        self._order: list[int] = []
        self._ranks: Ints = np.zeros(0, np.int64)
        self._tests: dict[tuple[StringTest, StringConstant], int] = {}
        self._passed: Bytes = np.zeros((0, 0), np.uint8)
        # [test]: for how many codes it is done.
        self._tested: list[int] = []

    @property
    def size(self) -> int:
        return len(self._texts)

    @property
    def nbytes(self) -> int:
        """About: strings by their length, with their places in the list and in the table of codes."""
        return self._text_bytes + 8 * len(self._order) + int(self._ranks.nbytes) + int(self._passed.nbytes)

    def nbytes_of(self, codes: Ints) -> int:
        """The bytes of the strings with these codes, each counted once."""
        return sum(_bytes_of(self._texts[code]) for code in np.unique(codes).tolist())

    def text(self, code: int) -> str:
        return self._texts[code]

    def code(self, text: str) -> int:
        """The code of a string, which is now in the pool."""
        code = self._codes.get(text)
        if code is None:
            code = self._codes[text] = len(self._texts)
            self._texts.append(text)
            self._text_bytes += _bytes_of(text)
        return code

    def codes(self, texts: list[str]) -> Ints:
        return np.array([self.code(text) for text in texts], np.int64)

    def keep_order(self) -> None:
        """Keep the order of strings from now on."""
        self._ordered = True

    def test(self, test: StringTest, constant: StringConstant) -> int:
        """The number of a test, which from now on is done on every string."""
        number = self._tests.setdefault((test, constant), len(self._tests))
        if number == len(self._tested):
            self._tested.append(0)
        return number

    def arrays(self) -> Texts:
        """The arrays that programs read: ranks and test results of the strings in the pool."""
        return Texts(self._rank(), self._test())

    def _rank(self) -> Ints:
        new = range(len(self._order), len(self._texts))
        if self._ordered and new:
            # Two sorted runs: merging them takes little more than looking at each.
            self._order.extend(sorted(new, key=self._texts.__getitem__))
            self._order.sort(key=self._texts.__getitem__)
            self._ranks = np.empty(len(self._order), np.int64)
            self._ranks[self._order] = np.arange(len(self._order))
        return self._ranks

    def _test(self) -> Bytes:
        tests, size = self._passed.shape
        shape = _room(tests, len(self._tests)), _room(size, len(self._texts)) if self._tests else 0
        if shape != (tests, size):
            grown = np.zeros(shape, np.uint8)
            grown[:tests, :size] = self._passed
            self._passed = grown
        for (test, constant), number in self._tests.items():
            begin, end = self._tested[number], len(self._texts)
            if begin < end:
                self._passed[number, begin:end] = _passed(test, constant, self._texts[begin:end])
                self._tested[number] = end
        return self._passed


def _bytes_of(text: str) -> int:
    return getsizeof(text) + _PLACE_BYTES


def _room(have: int, needed: int) -> int:
    """The new size: at least twice the old one when it is too small, so that growing is cheap on average."""
    return have if have >= needed else max(2 * have, needed)


def _passed(test: StringTest, constant: StringConstant, strings: list[str]) -> Bytes:
    if test is not StringTest.CONTAINS:
        # Part of a string, or one of a set.
        return np.array([string in constant for string in strings], np.uint8)
    contains = pc.match_substring(pa.array(strings, pa.large_string()), constant)
    return to_numpy(contains).astype(np.uint8)


def string_codes(chunk: pa.Array, strings: StringPool) -> tuple[Ints, Bytes]:
    """The codes of strings, and which are NULL. Each distinct string is looked up once."""
    encoded = chunk if pa.types.is_dictionary(chunk.type) else chunk.dictionary_encode()
    distinct = encoded.dictionary.to_pylist()
    # The last place is for NULL.
    codes = np.zeros(len(distinct) + 1, np.int64)
    states = np.full(len(distinct) + 1, NULL, np.uint8)
    known = [place for place, text in enumerate(distinct) if text is not None]
    codes[known] = strings.codes([distinct[place] for place in known])
    states[known] = VALUE
    places = to_numpy(encoded.indices.cast(pa.int64()), len(distinct))
    return codes[places], states[places]
