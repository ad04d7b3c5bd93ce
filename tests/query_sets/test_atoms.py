"""A comparison with a constant is a closed range of atoms, for every operator and all types of both sides."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kleene.engine.query_sets.atoms import bounds, real_atoms
from kleene.pattern.types import ValueType

OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
INTEGERS = [-(2**63), -(2**63) + 1, -(2**53) - 1, -2, -1, 0, 1, 2, 2**53, 2**53 + 1, 2**62 + 1, 2**63 - 513, 2**63 - 1]
REALS = [
    -np.inf, -1e300, -(2.0**63), -(2.0**53), -1.5, -1.0, -5e-324, 0.0, -0.0, 5e-324, 0.5, 1.0, 1.5,
    2.0**53, 2.0**63 - 1024, 2.0**63, 1e300, np.inf, np.nan,
]  # fmt: skip


@pytest.mark.parametrize("sign", OPERATORS)
@pytest.mark.parametrize("columns", [INTEGERS, REALS], ids=["integers", "reals"])
@pytest.mark.parametrize("constants", [INTEGERS, REALS], ids=["with integers", "with reals"])
def test_a_value_is_within_the_range_just_if_it_compares_so(
    sign: str, columns: list[float], constants: list[float]
) -> None:
    whole = columns is INTEGERS
    given = np.array(constants, np.int64 if constants is INTEGERS else np.float64)
    low, high = bounds(sign, given, ValueType.INT if whole else ValueType.FLOAT)
    # What is no number is known not to be: events do not look anything up by it.
    values = [value for value in columns if value == value]
    atoms = np.array(values, np.int64) if whole else real_atoms(np.array(values, np.float64))
    for constant, least, most in zip(constants, low.tolist(), high.tolist(), strict=True):
        for value, atom in zip(values, atoms.tolist(), strict=True):
            # Python compares integers and reals exactly.
            assert (least <= atom <= most) == OPERATORS[sign](value, constant), (value, sign, constant)


def test_atoms_of_reals_keep_their_order() -> None:
    rng = np.random.default_rng(3)
    reals = np.sort(rng.standard_normal(10_000) * 10.0 ** rng.integers(-300, 300, 10_000))
    assert bool(np.all(np.diff(real_atoms(reals)) > 0))
    assert real_atoms(np.array([0.0])) == real_atoms(np.array([-0.0]))
