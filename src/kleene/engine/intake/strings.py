"""Strings as numbers: one pool for all columns and all constants, so that equal strings have equal codes.

The pool grows with the data; a code never changes. Tests of strings other than equality are kept by code.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kleene.engine.state.distinct import distinct_codes
from kleene.engine.state.growing import with_room
from kleene.engine.state.memory import empty
from kleene.frames.numbers import memory, missing_in, to_arrow, to_numpy
from kleene.kernels.expression import Bytes, Ints, Texts
from kleene.kernels.opcodes import NULL, VALUE
from kleene.kernels.texts import KnownTexts, TextColumn, intern_texts, put_hashes
from kleene.plan.program import StringConstant, StringTest

# What a string takes besides its bytes: its offset, its hash, and up to four places in the table.
_PLACE_BYTES = 32
# Nobody who chooses strings knows their hashes.
_SEED = np.uint64(secrets.randbits(64))
# Bytes of strings that Arrow's shorter offsets can tell apart.
_MOST_BYTES = 2**31 - 1
_NO_BYTES, _NO_OFFSETS = np.zeros(0, np.uint8), np.zeros(1, np.int32)


class StringPool:
    def __init__(self) -> None:
        self._known = KnownTexts(
            np.empty(1024, np.uint8),
            np.zeros(65, np.int64),
            np.empty(64, np.uint64),
            np.full(256, -1, np.int32),
            np.zeros(1, np.int64),
        )
        # Codes that were asked for one by one.
        self._codes: dict[str, int] = {}
        self._ordered = False
        self._ranks: Ints = np.zeros(0, np.int64)
        self._tests: dict[tuple[StringTest, StringConstant], int] = {}
        self._passed: Bytes = np.zeros((0, 0), np.uint8)
        # [test]: for how many codes it is done.
        self._tested: list[int] = []

    @property
    def size(self) -> int:
        return int(self._known.number[0])

    @property
    def nbytes(self) -> int:
        arrays = (*self._known, self._ranks, self._passed)
        return sum(int(array.nbytes) for array in arrays)

    def nbytes_of(self, codes: Ints) -> int:
        """The bytes of the strings with these codes, each counted once."""
        codes = distinct_codes(codes)
        lengths = self._known.offsets[codes + 1] - self._known.offsets[codes]
        return int(lengths.sum()) + _PLACE_BYTES * len(codes)

    def text(self, code: int) -> str:
        begin, end = self._known.offsets[code : code + 2].tolist()
        return str(self._known.data[begin:end].tobytes(), "utf-8", "surrogatepass")

    def texts(self, codes: Ints) -> pa.Array:
        """The strings with these codes."""
        return self._from(0).take(to_arrow(codes)).cast(pa.string())

    def code(self, text: str) -> int:
        """The code of a string, which is now in the pool."""
        code = self._codes.get(text)
        if code is None:
            code = self._codes[text] = int(self.codes([text])[0])
        return code

    def codes(self, texts: list[str]) -> Ints:
        """The codes of strings, which are now in the pool."""
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        offsets = np.cumsum([0, *map(len, encoded)]).astype(np.int32)
        column = TextColumn(np.frombuffer(b"".join(encoded), np.uint8), offsets)
        return self.codes_of(column, np.full(len(texts), VALUE, np.uint8))

    def codes_of(self, column: TextColumn, states: Bytes) -> Ints:
        """The codes of strings, which are now in the pool; 0 where there is none.

        states   [row]: whether there is a string
        """
        for array in column:
            array.flags.writeable = False
        codes = empty(len(states), np.int64)
        at = 0
        while True:
            at = intern_texts(at, column, states, _SEED, self._known, codes)
            if at == len(codes):
                return codes
            self._make_room(int(column.offsets[at + 1] - column.offsets[at]))

    def _make_room(self, needed: int) -> None:
        """Grow to four times as many strings, or twice as many bytes; the hash table is at most half full."""
        known, number = self._known, self.size
        if number == len(known.hashes):
            table = np.full(4 * len(known.table), -1, np.int32)
            put_hashes(known.hashes, number, table)
            offsets, hashes = with_room(known.offsets, 4 * number + 1), with_room(known.hashes, 4 * number)
            self._known = known._replace(offsets=offsets, hashes=hashes, table=table)
        else:
            self._known = known._replace(data=with_room(known.data, 2 * len(known.data) + needed))

    def _from(self, begin: int) -> pa.Array:
        """The strings from a code on, where they are."""
        buffers = [None, pa.py_buffer(self._known.offsets[begin : self.size + 1]), pa.py_buffer(self._known.data)]
        return pa.Array.from_buffers(pa.large_string(), self.size - begin, buffers)

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
        if self._ordered and self.size > len(self._ranks):
            self._ranks = empty(self.size, np.int64)
            self._ranks[to_numpy(pc.sort_indices(self._from(0)))] = np.arange(self.size)
        return self._ranks

    def _test(self) -> Bytes:
        tests, size = self._passed.shape
        shape = _room(tests, len(self._tests)), _room(size, self.size) if self._tests else 0
        if shape != (tests, size):
            grown = np.zeros(shape, np.uint8)
            grown[:tests, :size] = self._passed
            self._passed = grown
        for (test, constant), number in self._tests.items():
            begin, end = self._tested[number], self.size
            if begin < end:
                self._passed[number, begin:end] = _passed(test, constant, self._from(begin))
                self._tested[number] = end
        return self._passed


def _room(have: int, needed: int) -> int:
    """The new size: at least twice the old one when it is too small, so that growing is cheap on average."""
    return have if have >= needed else max(2 * have, needed)


def _passed(test: StringTest, constant: StringConstant, strings: pa.Array) -> Bytes:
    if test is StringTest.CONTAINS:
        passed = to_numpy(pc.match_substring(strings, constant))
    elif isinstance(constant, str):
        passed = np.array([string in constant for string in strings.to_pylist()], np.bool_)
    else:
        passed = to_numpy(pc.is_in(strings, pa.array(constant, pa.large_string())))
    return passed.astype(np.uint8)


def is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def string_codes(chunk: pa.Array, strings: StringPool) -> tuple[Ints, Bytes]:
    """The codes of strings, and which are NULL. Each string of a dictionary is looked up once."""
    if pa.types.is_dictionary(chunk.type):
        codes, states = string_codes(chunk.dictionary, strings)
        # The last place is for NULL.
        places = to_numpy(chunk.indices.cast(pa.int64()), len(codes))
        return np.append(codes, 0)[places], np.append(states, NULL)[places]
    states = np.full(len(chunk), VALUE, np.uint8)
    if chunk.null_count:
        states[missing_in(chunk)] = NULL
    parts = [strings.codes_of(part, states[first:last]) for first, last, part in _columns(chunk)]
    return parts[0] if len(parts) == 1 else np.concatenate(parts), states


def _columns(chunk: pa.Array, first: int = 0) -> Iterator[tuple[int, int, TextColumn]]:
    """Strings by their bytes, in parts for which short offsets are enough; with their first and last rows."""
    if len(chunk) > 1 and chunk.nbytes > _MOST_BYTES:
        half = len(chunk) // 2
        yield from _columns(chunk[:half], first)
        yield from _columns(chunk[half:], first + half)
        return
    texts = chunk if pa.types.is_string(chunk.type) else chunk.cast(pa.string())
    _, offsets, data = texts.buffers()
    begins = memory(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1] if len(texts) else _NO_OFFSETS
    yield first, first + len(chunk), TextColumn(_NO_BYTES if data is None else memory(data, np.uint8), begins)
