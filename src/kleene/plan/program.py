"""Compiled conditions as data: flat arrays that the expression machine runs, and what they read.

Strings stand outside the arrays: a program is linked to the pool of strings where it runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from kleene.kernels import opcodes

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]


class NotCompilable(Exception):
    """This condition has no program; the reference evaluator knows what it means."""


class StringTest(Enum):
    """A test of one string against a constant one, or a set of them."""

    CONTAINS = "contains it"
    PART_OF = "is part of it"
    AMONG = "is one of them"


StringConstant = str | frozenset[str]


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A conjunction of clauses (`kernels.opcodes` says what the words mean)."""

    # [word]: opcodes.WIDTH words an instruction.
    code: Ints
    # [place]: constants; zero where linking puts the code of a string or the number of a string test.
    ints: Ints
    reals: Reals
    # How many values the stack must hold.
    depth: int
    # What it reads: slots of identifiers, slots of aggregates, columns by name.
    slots: tuple[int, ...]
    groups: tuple[int, ...]
    columns: tuple[str, ...]
    # Where constants that are strings, and tests against such constants, belong among the integers.
    strings: tuple[tuple[int, str], ...] = ()
    tests: tuple[tuple[int, StringTest, StringConstant], ...] = ()
    # Whether it asks for the order of strings.
    ordered: bool = False
    # Values that it is given later: whether each stands among the reals or the integers, where, and its name.
    parameters: tuple[tuple[bool, int, str], ...] = ()

    def listing(self) -> str:
        """The program for people: one instruction a line."""
        lines = []
        for at in range(0, len(self.code), opcodes.WIDTH):
            operation, *operands = self.code[at : at + opcodes.WIDTH].tolist()
            lines.append(" ".join(map(str, (at, _OPERATIONS[operation], *operands))))
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, eq=False)
class AggregationPlan:
    """What is kept in each slot of a group (`kernels.aggregates`), and which slots an event of a variable changes."""

    functions: Ints
    kinds: Ints
    columns: Ints
    places: Ints
    slots: Mapping[str, Ints]
    # Whether it asks for the order of strings.
    ordered: bool = False


_DEFINED = list(vars(opcodes))
_OPERATIONS = _DEFINED[_DEFINED.index("LOAD_INT") : _DEFINED.index("FAIL") + 1]
