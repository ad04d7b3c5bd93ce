"""The queries of a set as rows of flat arrays: no object is kept for each of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kleene.engine.query_sets.lasting_arrays import taken, with_some_room
from kleene.engine.query_sets.packed_column import PackedColumn
from kleene.frames.numbers import memory
from kleene.kernels import query_names as kernel
from kleene.kernels.expression import Bytes, Ints
from kleene.kernels.query_names import NameTable
from kleene.kernels.shared_nodes import Numbers

_FIRST_ROOM = 64
# A query of no template: it is gone.
GONE = -1
# The moment from which on queries live that came before all events.
ALWAYS_THERE = -(2**63)


class StoredQueries:
    """Names, templates, constants and lives of queries, by their numbers."""

    def __init__(self) -> None:
        self.size = 0
        self.live = 0
        # [query]
        self.template: Numbers = np.full(_FIRST_ROOM, GONE, np.int32)
        self.row: Numbers = np.zeros(_FIRST_ROOM, np.int32)
        self.node: Numbers = np.zeros(_FIRST_ROOM, np.int32)
        # Empty as long as all queries were there before all events.
        self._since: Ints = np.zeros(0, np.int64)
        # Of match ids, where they were asked for; 0: not known yet.
        self._digest = np.zeros(0, np.uint64)
        # By template and parameter, [row]: constants, reals as their bits, strings by code.
        self._constants: list[list[PackedColumn]] = []
        self._used: list[int] = []
        self._names = NameTable(
            np.zeros(0, np.uint8), np.zeros(_FIRST_ROOM + 1, np.int64), np.full(2 * _FIRST_ROOM, -1, np.int32)
        )

    def new_template(self, parameters: int) -> int:
        """The number of one more template."""
        self._constants.append([PackedColumn() for _ in range(parameters)])
        self._used.append(0)
        return len(self._used) - 1

    # Coming

    def reserve(self, names: pa.Array) -> tuple[Ints, Ints]:
        """Enter names for queries to come; their numbers, and [name]: who has it already (−1: nobody).

        A name that somebody has is not entered again, and its number goes to no query.
        """
        texts = names.cast(pa.large_string())
        offsets = memory(texts.buffers()[1], np.dtype(np.int64))[texts.offset : texts.offset + len(texts) + 1]
        data = (
            memory(texts.buffers()[2], np.dtype(np.uint8)) if texts.buffers()[2] is not None else np.zeros(0, np.uint8)
        )
        text: Bytes = data[offsets[0] : offsets[-1]]
        first, count = self.size, len(texts)
        begins = with_some_room(self._names.begins, first + count + 1)
        used = int(begins[first])
        stored = with_some_room(self._names.text, used + len(text))
        stored[used : used + len(text)] = text
        begins[first + 1 : first + count + 1] = used + offsets[1:] - offsets[0]
        self._names = NameTable(stored, begins, self._names.places)
        if 2 * (first + count) > len(self._names.places):
            self.grow_names(first + count)
        known = np.zeros(count, np.int64)
        kernel.add_names(self._names, first, count, known)
        return np.arange(first, first + count), known

    def put(self, numbers: Ints, template: int, constants: Ints, nodes: Numbers, since: int | Ints) -> None:
        """Keep queries of a template under numbers of which `reserve` has entered the names."""
        needed = int(numbers.max(initial=-1)) + 1
        self.template = with_some_room(self.template, needed, GONE)
        self.row, self.node = with_some_room(self.row, needed), with_some_room(self.node, needed)
        used = self._used[template]
        for column, values in zip(self._constants[template], constants.T, strict=True):
            column.append(values)
        self._used[template] += len(numbers)
        self.template[numbers] = template
        self.row[numbers] = np.arange(used, used + len(numbers))
        self.node[numbers] = nodes
        self.size = max(self.size, needed)
        if len(self._since) or bool(np.any(np.asarray(since) != ALWAYS_THERE)):
            self._since = with_some_room(self._since, self.size, ALWAYS_THERE)
            self._since[numbers] = since
        self.live += len(numbers)

    def trim(self) -> None:
        """Give back the room for more queries."""
        self.template, self.row, self.node = (taken(array, self.size) for array in (self.template, self.row, self.node))
        names = self._names
        used = int(names.begins[self.size])
        self._names = names._replace(text=taken(names.text, used), begins=taken(names.begins, self.size + 1))

    def grow_names(self, needed: int) -> None:
        """Make room in the table of names for so many."""
        places = np.full(1 << (2 * max(needed, _FIRST_ROOM)).bit_length(), kernel.EMPTY, np.int32)
        self._names = self._names._replace(places=places)
        kernel.enter_again(self._names, self.template, self.size)

    @property
    def since(self) -> Ints:
        """[query]: the moment from which on it lives."""
        return self._since if len(self._since) else np.full(self.size, ALWAYS_THERE)

    @property
    def digest(self) -> npt.NDArray[np.uint64]:
        """[query]: the hash that identifies it in match ids, for the caller to fill in; 0: not known yet."""
        self._digest = with_some_room(self._digest, self.size)
        return self._digest

    # Going

    def remove(self, number: int) -> None:
        kernel.remove_name(self._names, number)
        self.template[number] = GONE
        self.live -= 1

    # Looking up

    def find(self, name: str) -> int | None:
        """The number of the query with a name."""
        number = int(kernel.find_name(self._names, np.frombuffer(name.encode(), np.uint8).copy()))
        return number if number >= 0 else None

    def names(self, numbers: Ints | Numbers) -> pa.Array:
        """The names of queries."""
        whole = pa.LargeStringArray.from_buffers(
            self.size, pa.py_buffer(self._names.begins[: self.size + 1]), pa.py_buffer(self._names.text)
        )
        return whole.take(pa.array(numbers)).cast(pa.string())

    @property
    def numbers(self) -> Ints:
        """Those of the queries that are there."""
        return np.flatnonzero(self.template[: self.size] != GONE)

    def constants_of(self, number: int) -> Ints:
        constants: Ints = self.rows_of(int(self.template[number]), np.array([number]))[0]
        return constants

    def rows_of(self, template: int, numbers: Ints) -> Ints:
        """[row, parameter]: the constants of queries of one template."""
        columns = [column.take(self.row[numbers]) for column in self._constants[template]]
        return np.stack(columns, axis=1) if columns else np.zeros((len(numbers), 0), np.int64)

    @property
    def nbytes(self) -> int:
        arrays: Sequence[np.ndarray] = (self.template, self.row, self.node, self._since, self._digest, *self._names)
        packed = sum(column.nbytes for columns in self._constants for column in columns)
        return packed + sum(int(array.nbytes) for array in arrays)
